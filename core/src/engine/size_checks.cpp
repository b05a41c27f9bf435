#include "engine/size_checks.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace plugrad::engine {
namespace {

// Waits for the size where only the device knows it.
int32_t size_of(const SizeCheck& check) {
  int32_t size = check.value->size.value_or(0);
  if (!check.value->size && check.value->buffer) check.value->buffer->copy_out(&size, sizeof size);
  return size;
}

bool is_within(const SizeCheck& check) {
  const int32_t size = size_of(check);
  return size >= check.least && size <= check.most;
}

}  // namespace

void SizeChecks::expect(const ValuePtr& value, int64_t least, int64_t most) {
  int32_t size = 0;
  if (value->host.size() == sizeof size) {
    std::memcpy(&size, value->host.data(), sizeof size);
    value->size = size;
  }
  if (value->size && *value->size >= least && *value->size <= most) return;
  const auto is_same = [&](const SizeCheck& c) {
    return c.value == value && c.least == least && c.most == most;
  };
  if (std::ranges::any_of(checks_, is_same)) return;
  checks_.push_back({value, least, most});
  if (checks_.size() < kMost) return;
  // Nobody reads: the older half is done by now, and of it what is to be told is kept.
  const auto middle = checks_.begin() + kMost / 2;
  checks_.erase(std::remove_if(checks_.begin(), middle, is_within), middle);
}

void require_within(const std::vector<SizeCheck>& checks) {
  const SizeCheck* bad = nullptr;
  for (const SizeCheck& check : checks)
    if (!is_within(check)) bad = &check;
  require(bad == nullptr,
          "[read] values were computed with a variable size which is {}: it lies outside of its "
          "bounds, {} to {}; what depends on it is of the nearest size from 0 on",
          bad ? size_of(*bad) : 0, bad ? bad->least : 0, bad ? bad->most : 0);
}

}  // namespace plugrad::engine

#include "engine/size_checks.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace plugrad::engine {

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
  // Nobody reads: the older half is done by now.
  const std::vector<SizeCheck> older(checks_.begin(), checks_.begin() + kMost / 2);
  checks_.erase(checks_.begin(), checks_.begin() + kMost / 2);
  require_within(older);
}

void require_within(const std::vector<SizeCheck>& checks) {
  const SizeCheck* bad = nullptr;
  int32_t wrong = 0;
  for (const SizeCheck& check : checks) {
    int32_t size = check.value->size.value_or(0);
    if (!check.value->size && check.value->buffer)
      check.value->buffer->copy_out(&size, sizeof size);
    if (size >= check.least && size <= check.most) continue;
    bad = &check;
    wrong = size;
  }
  require(bad == nullptr,
          "[read] values were computed with a variable size which is {}: it lies outside of its "
          "bounds, {} to {}; what depends on it is of the nearest size from 0 on",
          wrong, bad ? bad->least : 0, bad ? bad->most : 0);
}

}  // namespace plugrad::engine

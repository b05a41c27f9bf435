#include "engine/size_checks.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace plugrad::engine {
namespace {

// Of values that nobody reads for long, the older half is done by now.
constexpr size_t kMostOpen = 256;

// Waits for the size where only the device knows it; says what is wrong with it.
std::string problem_of(const SizeCheck& check) {
  int32_t size = check.size.value_or(0);
  if (!check.size) check.buffer->copy_out(&size, sizeof size);
  if (size >= check.least && size <= check.most) return {};
  return fmt::format(
      "values were computed with a variable size which is {}: it lies outside of its bounds, {} to "
      "{}; what depends on it is of the nearest size from 0 on",
      size, check.least, check.most);
}

std::string first_problem(std::span<const SizeCheck> checks) {
  for (const SizeCheck& check : checks)
    if (std::string problem = problem_of(check); !problem.empty()) return problem;
  return {};
}

void add(std::vector<SizeCheck>& checks, SizeCheck check) {
  if (check.size && *check.size >= check.least && *check.size <= check.most) return;
  if (std::ranges::find(checks, check) == checks.end()) checks.push_back(std::move(check));
}

}  // namespace

// Others may ask and add meanwhile: nobody holds the lock who waits for a device.
void SizeDoubts::require_within() {
  std::vector<SizeCheck> checks;
  std::string problem;
  {
    const std::lock_guard lock(mutex_);
    checks = open_;
    problem = problem_;
  }
  if (problem.empty()) problem = first_problem(checks);
  {
    const std::lock_guard lock(mutex_);
    open_.clear();
    problem_ = problem;
  }
  require(problem.empty(), "[read] {}", problem);
}

std::string SizeDoubts::add_to(std::vector<SizeCheck>& checks) {
  const std::lock_guard lock(mutex_);
  for (const SizeCheck& check : open_) add(checks, check);
  return problem_;
}

void know_size(Value& value) {
  int32_t size = 0;
  if (value.host.size() != sizeof size) return;
  std::memcpy(&size, value.host.data(), sizeof size);
  value.size = size;
}

std::shared_ptr<SizeDoubts> doubts_of(const Origins& origins, std::span<const SizeUse> sizes,
                                      std::span<const ValuePtr> inputs,
                                      std::span<const ValuePtr> roots) {
  std::vector<SizeCheck> checks;
  std::string problem;
  for (const uint32_t number : origins.inputs)
    if (const auto& doubts = inputs[number]->doubts) {
      std::string known = doubts->add_to(checks);
      if (problem.empty()) problem = std::move(known);
    }
  for (const uint32_t at : origins.sizes) {
    const SizeUse& use = sizes[at];
    const Value& value = use.is_root ? *roots[use.number] : *inputs[use.number];
    add(checks, {value.size ? nullptr : value.buffer, value.size, use.least, use.most});
  }
  if (problem.empty() && checks.size() > kMostOpen) {
    const auto older = checks.size() / 2;
    problem = first_problem(std::span(checks).first(older));
    checks.erase(checks.begin(), checks.begin() + static_cast<std::ptrdiff_t>(older));
  }
  if (!problem.empty()) checks.clear();  // the first is told
  if (problem.empty() && checks.empty()) return nullptr;
  return std::make_shared<SizeDoubts>(std::move(checks), std::move(problem));
}

}  // namespace plugrad::engine

#include "engine/plan/size_checks.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <tuple>

#include "base/check.h"

namespace plugrad::engine {
namespace {

// A loop whose values are never read can run this many sizes ahead of the device; then each
// iteration waits for the oldest size only, which is normally computed by then.
constexpr size_t kMostOpen = 128;

std::string problem_of(const SizeCheck& check, const SizeRead& size) {
  if (check.holds(size.number)) return {};
  if (check.range) return check.range->problem(size.value, size.number);
  return fmt::format(
      "[read] values were computed with a variable size which is {}: it lies outside of its "
      "bounds, {} to "
      "{}; what depends on it is of the nearest size from 0 on",
      size.number, check.least, check.most);
}

/// Waits for the sizes.
std::string first_problem(std::span<const SizeCheck> checks) {
  for (const SizeCheck& check : checks)
    if (std::string problem = problem_of(check, check.size->wait()); !problem.empty())
      return problem;
  return {};
}

bool is_before(const SizeCheck& a, const SizeCheck& b) {
  return std::tuple(a.size->age(), a.size.get(), a.least, a.most, a.range.get()) <
         std::tuple(b.size->age(), b.size.get(), b.least, b.most, b.range.get());
}

/// Merges sorted `more` into sorted `checks`; values of one history share most checks.
void merge(std::vector<SizeCheck>& checks, std::span<const SizeCheck> more) {
  std::vector<SizeCheck> both;
  std::ranges::set_union(checks, more, std::back_inserter(both), is_before);
  checks = std::move(both);
}

/// Removes the checks whose sizes are known. Returns the first problem among them.
std::string settle(std::vector<SizeCheck>& checks) {
  std::string problem;
  std::erase_if(checks, [&](const SizeCheck& check) {
    const std::optional<SizeRead> size = check.size->known();
    if (size && problem.empty()) problem = problem_of(check, *size);
    return size.has_value();
  });
  return problem;
}

std::shared_ptr<SizeNumber> number_of(Value& value) {
  if (!value.size)
    value.size = std::make_shared<SizeNumber>(value.buffer, value.dtype, value.size_bytes);
  return value.size;
}

}  // namespace

SizeNumber::SizeNumber(std::shared_ptr<runtime::Buffer> buffer, DType dtype, uint64_t size_bytes)
    : buffer_(std::move(buffer)), dtype_(dtype), size_bytes_(size_bytes) {
  ensure(size_bytes <= sizeof(int64_t[2]), "a size or report takes {} bytes", size_bytes);
  static std::atomic<uint64_t> last{0};
  age_ = ++last;
}

// Never waits on the device while holding the lock.
SizeRead SizeNumber::wait() {
  std::shared_ptr<runtime::Buffer> buffer;
  {
    const std::lock_guard lock(mutex_);
    if (number_) return *number_;
    buffer = buffer_;
  }
  SizeRead read;
  if (dtype_ == DType::I64) {
    int64_t numbers[2] = {};
    buffer->copy_out(numbers, size_bytes_);
    read = {numbers[0], numbers[1]};
  } else {
    int32_t numbers[2] = {};
    buffer->copy_out(numbers, size_bytes_);
    read = {numbers[0], numbers[1]};
  }
  const std::lock_guard lock(mutex_);
  number_ = read;
  buffer_.reset();
  return read;
}

std::optional<SizeRead> SizeNumber::known() const {
  const std::lock_guard lock(mutex_);
  return number_;
}

// Other threads may read and merge meanwhile: never waits on a device while holding the lock.
void PendingSizeChecks::require_within() {
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
  require(problem.empty(), "{}", problem);
}

std::string PendingSizeChecks::add_to(std::vector<SizeCheck>& checks) const {
  const std::lock_guard lock(mutex_);
  merge(checks, open_);
  return problem_;
}

void know_size(Value& value) {
  int32_t size = 0;
  if (value.size || value.host.size() != sizeof size) return;
  std::memcpy(&size, value.host.data(), sizeof size);
  value.size = std::make_shared<SizeNumber>(size);
}

std::shared_ptr<PendingSizeChecks> pending_checks_of(const Origins& origins,
                                                     std::span<const SizeUse> sizes,
                                                     std::span<const ValuePtr> inputs,
                                                     std::span<const ValuePtr> roots) {
  std::vector<SizeCheck> checks;
  std::string problem;
  for (const uint32_t number : origins.inputs)
    if (const auto& pending_checks = inputs[number]->pending_checks) {
      std::string known = pending_checks->add_to(checks);
      if (problem.empty()) problem = std::move(known);
    }
  for (const uint32_t at : origins.sizes) {
    const SizeUse& use = sizes[at];
    const SizeCheck check{number_of(use.is_root ? *roots[use.number] : *inputs[use.number]),
                          use.least, use.most, use.range};
    merge(checks, std::span(&check, 1));
  }
  if (std::string known = settle(checks); problem.empty()) problem = std::move(known);
  const size_t open = std::min(checks.size(), kMostOpen);
  const std::span old = std::span(checks).first(checks.size() - open);
  if (problem.empty()) problem = first_problem(old);
  checks.erase(checks.begin(), checks.end() - static_cast<std::ptrdiff_t>(open));
  if (!problem.empty()) checks.clear();  // only the first problem is reported
  if (problem.empty() && checks.empty()) return nullptr;
  return std::make_shared<PendingSizeChecks>(std::move(checks), std::move(problem));
}

}  // namespace plugrad::engine

// Variable sizes that come out of kernels, and reports of indices that kernels checked: whether
// they lie within their bounds is seen where a value that depends on them is read, since nothing
// waits for them before.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/plan/index_ranges.h"
#include "engine/value.h"

namespace plugrad::engine {

/// A size, i32 of shape (), that a plan takes from input or root `number`; or, with a range, the
/// report of the first index outside of it (index_report.h).
/// Both bounds of a report are kNoneOutside.
struct SizeUse {
  bool is_root = false;
  uint32_t number = 0;
  int64_t least = 0, most = 0;
  uint32_t node = 0;  ///< canonical number of what is bounded by it
  IndexRangePtr range{};
};

/// What a root of a plan is computed from: inputs by number, sizes by place in the list of them.
struct Origins {
  std::vector<uint32_t> inputs, sizes;
  auto operator<=>(const Origins&) const = default;
};

/// The number that a size is, and what a report has beside it.
struct SizeRead {
  int64_t number = 0, value = 0;
};

/// A size or a report: the host knows it, or whoever first waits for the device knows it for all,
/// and its memory is let go. Any thread may ask.
class SizeNumber {
 public:
  explicit SizeNumber(int32_t number) : number_(SizeRead{number}) {}
  SizeNumber(std::shared_ptr<runtime::Buffer> buffer, DType dtype, uint64_t size_bytes);

  SizeRead wait();
  std::optional<SizeRead> known() const;
  /// Later ones have larger ages.
  uint64_t age() const { return age_; }

 private:
  mutable std::mutex mutex_;
  std::optional<SizeRead> number_;
  std::shared_ptr<runtime::Buffer> buffer_;  // null once the number is known
  DType dtype_ = DType::I32;
  uint64_t size_bytes_ = 0;
  uint64_t age_ = 0;
};

struct SizeCheck {
  std::shared_ptr<SizeNumber> size;
  int64_t least = 0, most = 0;
  IndexRangePtr range{};
  bool holds(int64_t number) const { return number >= least && number <= most; }
};

/// What is not known yet of the sizes that a value was computed with, by whichever plans; shared by
/// values of one history. Any thread may ask.
class PendingSizeChecks {
 public:
  PendingSizeChecks(std::vector<SizeCheck> checks, std::string problem)
      : open_(std::move(checks)), problem_(std::move(problem)) {}

  /// Waits for the sizes. Errors: User, each time, where one lies outside of its bounds.
  void require_within();
  /// Adds what is open to `checks`, oldest first, and says what is wrong already.
  std::string add_to(std::vector<SizeCheck>& checks) const;

 private:
  mutable std::mutex mutex_;
  std::vector<SizeCheck> open_;
  std::string problem_;
};

/// Notes the size of a value that the host still has: soon a kernel needs it elsewhere.
void know_size(Value& value);

/// The pending_checks of values with these origins; null where there are none.
std::shared_ptr<PendingSizeChecks> pending_checks_of(const Origins& origins,
                                                     std::span<const SizeUse> sizes,
                                                     std::span<const ValuePtr> inputs,
                                                     std::span<const ValuePtr> roots);

}  // namespace plugrad::engine

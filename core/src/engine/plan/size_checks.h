// Checks variable sizes computed by kernels, and index reports, against their bounds. The check
// happens when a dependent value is read: nothing waits for the device earlier.
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

/// An axis size, i32 of shape (), in input or root `number` of a plan; or, with a range, the report
/// of the first index out of range (index_report.h), whose bounds are both kNoneOutside.
struct SizeUse {
  bool is_root = false;
  uint32_t number = 0;
  int64_t least = 0, most = 0;
  uint32_t node = 0;  ///< canonical number of the node that it bounds
  IndexRangePtr range{};
};

/// What a root of a plan is computed from: inputs by number, sizes by index in the plan's list.
struct Origins {
  std::vector<uint32_t> inputs, sizes;
  auto operator<=>(const Origins&) const = default;
};

/// A size, or the two elements of a report.
struct SizeRead {
  int64_t number = 0, value = 0;
};

/// A size or a report that the host has, or reads from the device on the first wait(); the buffer
/// is then released. May be called from any thread.
class SizeNumber {
 public:
  explicit SizeNumber(int32_t number) : number_(SizeRead{number}) {}
  SizeNumber(std::shared_ptr<runtime::Buffer> buffer, DType dtype, uint64_t size_bytes);

  SizeRead wait();
  std::optional<SizeRead> known() const;
  /// Increases with creation order.
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

/// The unsettled checks of a value's sizes, across plans; shared by values of one history. May be
/// called from any thread.
class PendingSizeChecks {
 public:
  PendingSizeChecks(std::vector<SizeCheck> checks, std::string problem)
      : open_(std::move(checks)), problem_(std::move(problem)) {}

  /// Waits for the sizes. Errors: User on every call, if one is out of bounds.
  void require_within();
  /// Adds the open checks to `checks`, oldest first, and returns a problem already found.
  std::string add_to(std::vector<SizeCheck>& checks) const;

 private:
  mutable std::mutex mutex_;
  std::vector<SizeCheck> open_;
  std::string problem_;
};

/// Records the size while the host still has its value: a kernel will soon need it on the device.
void know_size(Value& value);

/// The pending_checks of values with these origins; null if there are none.
std::shared_ptr<PendingSizeChecks> pending_checks_of(const Origins& origins,
                                                     std::span<const SizeUse> sizes,
                                                     std::span<const ValuePtr> inputs,
                                                     std::span<const ValuePtr> roots);

}  // namespace plugrad::engine

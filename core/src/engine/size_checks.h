// Variable sizes that come out of kernels: whether they lie within their bounds is seen where a value that depends on
// them is read, since nothing waits for them before.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/value.h"

namespace plugrad::engine {

/// A size, i32 of shape (), that a plan takes from input or root `number`.
struct SizeUse {
  bool is_root = false;
  uint32_t number = 0;
  int64_t least = 0, most = 0;
  uint32_t node = 0;  ///< canonical number of what is bounded by it
};

/// What a root of a plan is computed from: inputs by number, sizes by place in the list of them.
struct Origins {
  std::vector<uint32_t> inputs, sizes;
  bool operator==(const Origins&) const = default;
};

struct SizeCheck {
  std::shared_ptr<runtime::Buffer> buffer;  // null where the host knows the size
  std::optional<int32_t> size;
  int64_t least = 0, most = 0;
  bool operator==(const SizeCheck&) const = default;
};

/// What is not known yet of the sizes that a value was computed with, by whichever plans; shared by
/// values of one history. Any thread may ask.
class SizeDoubts {
 public:
  SizeDoubts(std::vector<SizeCheck> checks, std::string problem)
      : open_(std::move(checks)), problem_(std::move(problem)) {}

  /// Waits for the sizes. Errors: User, each time, where one lies outside of its bounds.
  void require_within();
  /// Adds what is open to `checks`, and says what is wrong already.
  std::string add_to(std::vector<SizeCheck>& checks);

 private:
  std::mutex mutex_;
  std::vector<SizeCheck> open_;
  std::string problem_;
};

/// Notes the size of a value that the host still has: soon a kernel needs it elsewhere.
void know_size(Value& value);

/// The doubts of values with these origins; null where there are none.
std::shared_ptr<SizeDoubts> doubts_of(const Origins& origins, std::span<const SizeUse> sizes,
                                      std::span<const ValuePtr> inputs,
                                      std::span<const ValuePtr> roots);

}  // namespace plugrad::engine

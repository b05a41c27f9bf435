// Variable sizes that come out of kernels: whether they lie within their bounds is seen where a value is read, since
// nothing waits for them before.
#pragma once

#include <utility>
#include <vector>

#include "engine/value.h"

namespace plugrad::engine {

/// A size, i32 of shape (), that a plan takes from input or root `number`.
struct SizeUse {
  bool is_root = false;
  uint32_t number = 0;
  int64_t least = 0, most = 0;
};

struct SizeCheck {
  ValuePtr value;
  int64_t least = 0, most = 0;
};

class SizeChecks {
 public:
  /// Of a value that is there: what the host has is known at once, or else when it is read.
  void expect(const ValuePtr& value, int64_t least, int64_t most);
  /// All that is not known yet.
  std::vector<SizeCheck> take() { return std::exchange(checks_, {}); }

 private:
  static constexpr size_t kMost = 256;
  std::vector<SizeCheck> checks_;
};

/// Waits for the sizes. Errors: User where one lies outside of its bounds.
void require_within(const std::vector<SizeCheck>& checks);

}  // namespace plugrad::engine

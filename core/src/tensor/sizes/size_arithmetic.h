// Computes with variable sizes on the host while a call is recorded: as expressions, with bounds.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/internal.h"
#include "ir/graph.h"
#include "plugrad/tensor.h"

namespace plugrad::tensor {

/// An integer that depends on nothing but numbers and variable sizes.
struct SizeValue {
  int64_t least = 0, most = 0;
  Id expression = kNoId;  // equal for equal values; of the SizeArithmetic that made it
  bool varies() const { return least != most; }
};

/// Knows the variable sizes of the axes of some tensors.
class PLUGRAD_INTERNAL SizeArithmetic {
 public:
  SizeArithmetic();
  ~SizeArithmetic();
  SizeArithmetic(const SizeArithmetic&) = delete;
  SizeArithmetic& operator=(const SizeArithmetic&) = delete;

  /// Adds the variable sizes of the axes of x, and the bound Variables that they are computed from.
  void add(const Tensor& x);
  /// The value of an integer that is computed from numbers and bound Variables alone, which are added.
  std::optional<SizeValue> of_variables(const Tensor& x);
  /// The elements of integers or booleans, in row-major order; nothing if one depends on anything
  /// but numbers and the sizes that were added.
  std::optional<std::vector<SizeValue>> elements(const Tensor& x);
  /// The size of an axis of x; nothing if it varies with anything but the sizes that were added.
  std::optional<SizeValue> of_axis(const Tensor& x, int64_t axis);
  /// The value for those that the Variables are bound to; nothing where it differs in each call.
  std::optional<int64_t> value_now(const SizeValue& value) const;
  /// The value as a tensor, i32 of shape ().
  Tensor tensor_of(const SizeValue& value);
  /// x, whose axis is as long as the size may be, with this size. An axis has one size: an x whose
  /// axis has another one, or is always whole while the size varies, gives nothing.
  std::optional<Tensor> with_size(const Tensor& x, int64_t axis, const SizeValue& size);
  /// x with one count for equal sizes of axes, however they were computed: the engine takes axes of
  /// different counts for those of different sizes.
  Tensor with_equal_counts(const Tensor& x);
  /// Whether the axis takes the size of other operands, as that of a constant does.
  static bool takes_any_size(const Tensor& x, int64_t axis);
  /// The elements of an axis of x below the size, which varies up to that of the axis.
  Tensor limited(const Tensor& x, int64_t axis, const SizeValue& size);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plugrad::tensor

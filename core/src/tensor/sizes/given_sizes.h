// Sizes that a caller gives as integers or tensors, of which those of bound Variables stay variable.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/internal.h"
#include "plugrad/tensor.h"
#include "tensor/sizes/size_arithmetic.h"

namespace plugrad::tensor {

/// Computes those that depend on bound Variables alone; their values keep the bounds, so that they
/// are sizes in a jitted function too.
void realize_sizes(std::span<const Tensor> tensors);

/// A size that is given as a number or a tensor.
struct GivenSize {
  /// Adds the Variables that it is computed from to `sizes`. Errors: User for a tensor that is no
  /// single integer, and in a jitted function for one that depends on more than bound Variables.
  GivenSize(std::string_view function, const Size& size, SizeArithmetic& sizes);
  Tensor tensor;
  SizeValue value;
};

/// The sizes of one call.
class GivenSizes {
 public:
  /// Errors: User, as GivenSize, and for variables that may be negative.
  GivenSizes(std::string_view function, const Sizes& sizes);
  bool vary() const { return !variable_.empty(); }
  /// With the largest sizes.
  const Shape& largest() const { return largest_; }
  /// With the sizes that the variables have now; nothing in a jitted function.
  std::optional<Shape> actual() const;
  /// Whether the size of the axis is variable.
  bool varies(size_t axis) const;
  /// x, of the shape largest(), with these sizes.
  Tensor limited(const Tensor& x) const;
  /// x if it has these sizes, where constants and positions take any. Errors: User for others.
  Tensor checked(const Tensor& x) const;

 private:
  struct Variable {
    size_t axis;
    SizeValue value;
  };
  std::string_view function_;
  Shape largest_;
  std::vector<Variable> variable_;
  std::unique_ptr<SizeArithmetic> sizes_;  // null if all sizes are numbers
};

/// make(shape) for a shape of numbers, else of the largest sizes; then with the variable ones.
template <class Make>
Tensor with_given_sizes(std::string_view function, const Sizes& sizes, const Make& make) {
  if (sizes.list().empty()) return make(sizes.numbers());
  const GivenSizes given(function, sizes);
  return given.limited(make(given.largest()));
}

}  // namespace plugrad::tensor

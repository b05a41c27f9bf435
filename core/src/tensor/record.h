// What every primitive tensor function starts with: exclusive use of the session, operands whose
// devices are checked, and short forms of the nodes that broadcasting and movement need. Functions
// that are composed of others are written with Tensor alone and need none of this.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "engine/session.h"
#include "plugrad/tensor.h"

namespace plugrad::tensor {

/// Which operands a function takes, and what becomes of them.
enum class Takes : uint8_t {
  Any,      ///< every dtype
  Numbers,  ///< no bool
  Floats,   ///< integers and bool are taken as f32
  Bits,     ///< integers and bool
};

class Recorder {
 public:
  /// `function` is what error messages begin with; it must outlive the recorder.
  explicit Recorder(std::string_view function);

  Graph& graph() { return session_.graph(); }
  engine::Session& session() { return session_; }
  std::string_view function() const { return function_; }

  /// The node of a tensor. Errors: User when it is undefined or on another device than those before
  /// it.
  Id use(const Tensor& tensor);
  /// A new tensor on the device of those used.
  Tensor done(Id node);
  /// Constants alone are to live there.
  void place(uint32_t device) { hint_ = device; }

  Shape shape(Id node) const;  // by value: spans of lists move when lists are added
  DType dtype(Id node) { return graph()[node].dtype; }

  /// One dtype for all and one shape (or ()) for all. Errors: User for shapes that do not broadcast
  /// and dtypes that are not taken.
  void match(std::vector<Id>& nodes, Takes takes);
  void match_dtypes(std::vector<Id>& nodes, Takes takes);
  void match_shapes(std::vector<Id>& nodes);

  // Nodes; none of these adds one that changes nothing.
  Id cast(Id node, DType dtype);
  /// As cast, for a number that takes the dtype of what it meets. Errors: User when an integer
  /// dtype does not hold it.
  Id take(Id node, DType dtype);
  Id reshape(Id node, const Shape& shape);
  Id expand(Id node, const Shape& shape);
  Id permute(Id node, const std::vector<int64_t>& order);
  Id broadcast_to(Id node, const Shape& shape);

  // Sizes that are known when a kernel runs (ir/extents.h).
  /// Null where no tensor has one.
  Extents* extents() { return session_.has_bounds() ? session_.bounded_extents() : nullptr; }
  Extent extent(Id node, int64_t axis);
  /// `node` with the extents of `model`, of the same shape.
  Id like(Id node, Id model);
  /// `value`, of the shape of `old`, as what `old` becomes. Errors: User for other extents.
  Id assigned(Id old, Id value);
  /// `node`, with what a reduction of nothing is behind the extents of `axes`.
  Id masked(Id node, std::span<const int64_t> axes, Op op);

 private:
  DType dtype_for_literals(std::span<const Id> nodes, DType common);
  bool is_modular() const;
  void require_decided(Id node);

  engine::Session& session_;
  engine::Session::Lock lock_;
  std::string_view function_;
  uint32_t device_ = 0, hint_ = 0;
};

/// `axis` counted from the front. Errors: User, naming the function, when it is outside [-rank,
/// rank).
int64_t checked_axis(std::string_view function, int64_t axis, int64_t rank);
/// As checked_axis for each, ascending. Errors: User for an axis named twice.
std::vector<int64_t> checked_axes(std::string_view function, const Axes& axes, int64_t rank);

/// Dtype that values of `dtype` have in functions of real analysis.
inline DType real_dtype(DType dtype) {
  return is_float(dtype) ? strong(dtype) : DType::F32;
}

/// Errors: User unless memory holds the dtype: for void, weak dtypes and numbers that are no dtype.
void require_dtype(std::string_view function, DType dtype);
/// `wanted`, checked, or `otherwise`, where none is given.
DType dtype_or(std::string_view function, std::optional<DType> wanted, DType otherwise);
/// Dtype that products of integers are summed up in by matrix products and convolutions: small ones
/// in 32 bits. Reads and counts of elements take it for sums that cannot outgrow it.
DType narrow_sum_dtype(DType dtype);

/// How many elements the axes hold together, of shape () and in `dtype`: a number but for axes of a
/// variable size.
Tensor count_along(std::string_view function, const Tensor& x, std::span<const int64_t> axes,
                   DType dtype);
/// count + by, or 0 if that is less; a number where the count is one.
Tensor plus_at_least_0(const Tensor& count, int64_t by);
/// "(≤512, 256)": a variable size shows its largest value.
std::string shown_shape(const Tensor& x);
/// Errors: User where the axis, or without one any, has a variable size.
void require_fixed(std::string_view function, const Tensor& x, std::optional<int64_t> axis = {});

/// The same value under a handle of its own, for functions that have nothing to do: changing their
/// result in place must not change their argument.
Tensor own_handle(const Tensor& tensor);

/// A number that no other stored value carries.
uint64_t new_identity();

}  // namespace plugrad::tensor

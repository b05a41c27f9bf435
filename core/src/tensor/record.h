// Recorder: the entry of every primitive tensor function. It locks the session, checks operands and
// adds nodes for casts, broadcasting and movement. Composed functions use Tensor only.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/internal.h"
#include "engine/session.h"
#include "plugrad/tensor.h"
#include "tensor/named_function.h"

namespace plugrad::tensor {

/// The dtypes that a function accepts, and how it converts them.
enum class Takes : uint8_t {
  Any,      ///< every dtype
  Numbers,  ///< no bool
  Floats,   ///< integers and bool are converted to f32
  Bits,     ///< integers and bool
};

class Recorder {
 public:
  /// `function` is the prefix of error messages where no NamedFunction is; it must outlive the
  /// recorder.
  PLUGRAD_INTERNAL explicit Recorder(std::string_view function);
  PLUGRAD_INTERNAL ~Recorder();  // tells a trace which nodes the function made
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  Graph& graph() { return session_.graph(); }
  engine::Session& session() { return session_; }
  /// For messages: that of the outermost function.
  std::string_view function() const { return called(function_); }

  /// The node of a tensor. Errors: User when it is undefined, or its device differs from that of an
  /// earlier operand.
  PLUGRAD_INTERNAL Id use(const Tensor& tensor);
  /// The node of a result or of a value to assign: without history where no gradients are recorded.
  Id detached_in_no_grad(Id node);
  /// A new tensor on the device of the operands.
  PLUGRAD_INTERNAL Tensor done(Id node);
  /// The same for movements of the elements of `of`: a view of it.
  Tensor view_of(const Tensor& of, Id node);
  /// Sets the device of a result that is made of constants only.
  void place(uint32_t device) { hint_ = device; }

  Shape shape(Id node) const;  // by value: adding a list moves the storage of spans
  /// The shape for messages: "(17≤512, 256)", a variable size where the host knows it, ≤, its bound.
  std::string shown(Id node);
  DType dtype(Id node) { return graph()[node].dtype; }

  /// Converts all nodes to one dtype and one shape; a scalar keeps the shape (). Errors: User for
  /// shapes that do not broadcast and dtypes that the function does not accept.
  void match(std::vector<Id>& nodes, Takes takes);
  void match_dtypes(std::vector<Id>& nodes, Takes takes);
  void match_shapes(std::vector<Id>& nodes);

  // Adding nodes. Each returns its argument when there is nothing to change.
  Id cast(Id node, DType dtype);
  /// Like cast, for an operand that may be a literal. Errors: User when an integer dtype does not
  /// hold the literal.
  PLUGRAD_INTERNAL Id take(Id node, DType dtype);
  Id reshape(Id node, const Shape& shape);
  Id expand(Id node, const Shape& shape);
  Id permute(Id node, const std::vector<int64_t>& order);
  Id broadcast_to(Id node, const Shape& shape);

  // Sizes that are known only when a kernel runs (ir/extents.h); null if no tensor has one.
  Extents* extents() { return session_.has_bounds() ? session_.bounded_extents() : nullptr; }
  Extent extent(Id node, int64_t axis);
  /// `node` with the extents of `model`, of the same shape.
  Id like(Id node, Id model);
  /// The node that `old` becomes when `value`, of the same shape, is assigned. Errors: User for
  /// other extents.
  Id assigned(Id old, Id value);
  /// `node` with the identity of the reduction `op` beyond the extents of `axes`.
  Id masked(Id node, std::span<const int64_t> axes, Op op);

 private:
  bool have_one_shape(std::span<const Id> nodes);
  DType dtype_for_literals(std::span<const Id> nodes, DType common);
  bool is_modular() const;
  std::string known_count(Id count);
  void require_decided(Id node);
  void note_number(Id node);

  engine::Session& session_;
  engine::Session::Lock lock_;
  std::string_view function_;
  uint32_t device_ = 0, hint_ = 0;
  uint64_t numbers_ = 0;  // hash of the operands that are one constant
  const Id first_;        // the node that was next when it began
};

/// `axis` counted from the front. Errors: User, with the function, outside [-rank, rank).
int64_t checked_axis(std::string_view function, int64_t axis, int64_t rank);
/// checked_axis of each axis, sorted. Errors: User for an axis that occurs twice.
PLUGRAD_INTERNAL std::vector<int64_t> checked_axes(std::string_view function, const Axes& axes,
                                                   int64_t rank);

/// The result dtype of real functions (exp, sqrt, …) of `dtype`.
inline DType real_dtype(DType dtype) {
  return is_float(dtype) ? strong(dtype) : DType::F32;
}

/// Errors: User for dtypes that no buffer has: void, weak dtypes and undefined DType values.
void require_dtype(std::string_view function, DType dtype);
/// `wanted`, checked; `otherwise` if there is none.
DType dtype_or(std::string_view function, std::optional<DType> wanted, DType otherwise);
/// Accumulation dtype of integer matrix products and convolutions: 32 bits for small integers. Also
/// for one-hot sums and element counts, which cannot overflow it.
DType narrow_sum_dtype(DType dtype);

/// The number of elements of these axes together, of shape () and in `dtype`; a constant unless an
/// axis has a variable size.
PLUGRAD_INTERNAL Tensor count_along(std::string_view function, const Tensor& x,
                                    std::span<const int64_t> axes, DType dtype);
/// max(count + by, 0); a constant if the count is one.
Tensor plus_at_least_0(const Tensor& count, int64_t by);
/// Recorder::shown() of x.
std::string shown_shape(const Tensor& x);
/// Errors: User if the axis (without one, any axis) has a variable size.
void require_fixed(std::string_view function, const Tensor& x, std::optional<int64_t> axis = {});

/// The same value under a new handle. A function uses it whose result is no view, but may be its
/// argument or moved elements of it: assigning to the result does not change the argument.
Tensor own_handle(const Tensor& tensor);
/// `x`, which shows elements of a tensor to which nothing leads back: it refuses writes.
Tensor without_writes(Tensor x);

using engine::new_identity;
/// `x` such that all its readers see equal bits, for comparisons of its elements with each other.
Tensor stored_once(const Tensor& x);

}  // namespace plugrad::tensor

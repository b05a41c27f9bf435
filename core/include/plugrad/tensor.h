/// Tensor: a handle to a lazily recorded n-dimensional array. Copies denote the same tensor;
/// nothing runs before realize() or a read. Errors thrown are plugrad::Error; the message names the
/// function and shapes.
///
/// Unless a function says otherwise: elementwise functions broadcast their operands as NumPy does
/// and promote their dtypes (dtype.h); numbers are weak, so that f16 + 1.5 stays f16; functions of
/// real analysis (exp, sqrt, division, …) take integers as f32. Axes may be negative.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "plugrad/dtype.h"
#include "plugrad/error.h"
#include "plugrad/kernel.h"
#include "plugrad/shape.h"
#include "plugrad/window.h"

namespace plugrad {

namespace engine {
struct TensorState;
}
namespace ir {
class UOp;
}

class PLUGRAD_API Tensor {
 public:
  /// No tensor: only assignment and defined() are allowed.
  Tensor() = default;
  /// A weak number: takes the dtype and device of what it meets; on its own it is i32, f32 or bool.
  template <class T>
    requires std::is_arithmetic_v<T>
  Tensor(T value) : Tensor(Literal{}, convert_literal(value)) {}
  explicit Tensor(std::shared_ptr<engine::TensorState> state) : state_(std::move(state)) {}

  // ---- Creation. Errors: User for a negative size, an unknown device, a wrong number of values ----
  /// Holds zeros.
  static Tensor empty(const Shape&, DType = DType::F32, std::string_view device = {});
  static Tensor full(const Shape&, const Tensor& scalar, DType = DType::Void,
                     std::string_view device = {});
  static Tensor zeros(const Shape&, DType = DType::F32, std::string_view device = {});
  static Tensor ones(const Shape&, DType = DType::F32, std::string_view device = {});
  Tensor full_like(const Tensor& scalar) const;
  Tensor zeros_like() const;
  Tensor ones_like() const;
  /// start, start + step, … before stop. Dtype: I32, or F32 if an argument is a float, unless
  /// given.
  static Tensor arange(const Tensor& stop, DType = DType::Void, std::string_view device = {});
  static Tensor arange(const Tensor& start, const Tensor& stop, const Tensor& step = 1,
                       DType = DType::Void, std::string_view device = {});
  /// `count` evenly spaced values from start to stop, both included.
  static Tensor linspace(double start, double stop, int64_t count, DType = DType::F32,
                         std::string_view device = {});
  /// Ones on the diagonal of an n x m matrix (m = n when not given).
  static Tensor eye(int64_t n, int64_t m = -1, DType = DType::F32, std::string_view device = {});

  /// Values from the host, row-major, copied at once. Without a shape: one axis.
  template <class T>
  static Tensor from(std::span<const T> values, Shape shape, std::string_view device = {}) {
    return from_bytes(std::as_bytes(values), std::move(shape), dtype_of<T>(), device);
  }
  template <class T>
  static Tensor from(const std::vector<T>& values, std::string_view device = {}) {
    return from(values, {static_cast<int64_t>(values.size())}, device);
  }
  template <class T>
  static Tensor from(const std::vector<T>& values, Shape shape, std::string_view device = {});
  template <class T>
  static Tensor from(std::initializer_list<T> values, std::string_view device = {}) {
    return from(std::vector<T>(values), device);
  }
  template <class T>
  static Tensor from(std::initializer_list<T> values, Shape shape, std::string_view device = {}) {
    return from(std::vector<T>(values), std::move(shape), device);
  }
  template <class T>  ///< rows, all of one length
  static Tensor from(std::initializer_list<std::initializer_list<T>> rows,
                     std::string_view device = {});
  /// `bytes` in the dtype's storage form. With an owner they are not copied; the owner keeps them
  /// in place.
  static Tensor from_bytes(std::span<const std::byte> bytes, Shape, DType,
                           std::string_view device = {},
                           std::shared_ptr<const void> owner = nullptr);

  // ---- Random numbers: threefry-2x32, counter-based, the same bits on every device. ----
  /// Source: Salmon et al. 2011; how keys and counters are formed is in docs/tensor-guide.md.
  static void manual_seed(uint64_t seed = 0);
  static Tensor rand(const Shape&, DType = DType::F32, std::string_view device = {});  ///< [0, 1)
  /// Of mean 0 and deviation 1. Source: Box and Muller 1958.
  static Tensor randn(const Shape&, DType = DType::F32, std::string_view device = {});
  static Tensor uniform(const Shape&, double low, double high, DType = DType::F32,
                        std::string_view device = {});
  static Tensor normal(const Shape&, double mean, double std, DType = DType::F32,
                       std::string_view device = {});
  /// Integers in [low, high).
  static Tensor randint(const Shape&, int64_t low, int64_t high, DType = DType::I32,
                        std::string_view device = {});
  /// Uniform in ±sqrt(6 / ((1 + a²) fan_in)), fan_in = product of all sizes but the first. He et
  /// al. 2015.
  static Tensor kaiming_uniform(const Shape&, double a = 0.01, DType = DType::F32,
                                std::string_view device = {});
  /// Uniform in ±sqrt(6 / (shape[0] + product of the others)). Glorot and Bengio 2010.
  static Tensor glorot_uniform(const Shape&, DType = DType::F32, std::string_view device = {});
  Tensor rand_like() const;
  Tensor randn_like() const;

  // ---- What it is. None of these runs anything. ----
  bool defined() const { return state_ != nullptr; }
  Shape shape() const;
  int64_t size(int64_t axis) const;
  int64_t ndim() const;
  int64_t numel() const;
  DType dtype() const;
  std::string device() const;
  bool is_realized() const;
  const std::shared_ptr<engine::TensorState>& state() const { return state_; }

  // ---- Values ----
  /// Computes the value now. Errors: Device from the plugin; every tensor stays as it was.
  const Tensor& realize() const;
  static void realize(std::span<const Tensor> tensors);  ///< together, in one plan
  /// The only element, converted to T. Errors: User unless numel() is 1.
  template <class T>
    requires std::is_arithmetic_v<T>
  T item() const {
    T value;
    read_item(&value, dtype_of<T>());
    return value;
  }
  /// All elements, row-major, converted to T.
  template <class T>
    requires std::is_arithmetic_v<T>
  std::vector<T> to_vector() const;
  /// As to_vector, into `out`. Errors: User when its size is not numel().
  template <class T>
    requires std::is_arithmetic_v<T>
  void copy_to(std::span<T> out) const {
    read_as(out.data(), out.size(), dtype_of<T>());
  }
  std::vector<std::byte> to_bytes() const;  ///< in storage form
  std::vector<Kernel> schedule()
      const;  ///< the kernels that realize() would run, compiled, not run
  std::vector<Kernel> kernelize() const;  ///< the same before code generation: AST and ranges only
  ir::UOp uop() const;                    ///< the node that it denotes now; see uop.h

  // ---- Changing it, seen through every copy. What was recorded before keeps the old value ----
  /// Errors: User when `value` does not broadcast to shape(), or is a float and this is not.
  Tensor& assign(const Tensor& value);
  Tensor& operator+=(const Tensor& other);
  Tensor& operator-=(const Tensor& other);
  Tensor& operator*=(const Tensor& other);
  Tensor& operator/=(const Tensor& other);

  // ---- Gradients ----
  Tensor& requires_grad_(bool on = true);  ///< marks a leaf. Errors: User unless a float
  bool requires_grad() const;
  Tensor grad() const;  ///< undefined before a backward()
  void set_grad(const Tensor& gradient);
  void zero_grad();
  /// Adds d this / d leaf to grad() of every live marked tensor it depends on, and releases the
  /// graph. Errors: User unless one float, if no marked tensor is found, or once released.
  void backward(bool retain_graph = false) const;
  /// The same for any shape: `gradient` is that of each element of this.
  void backward(const Tensor& gradient, bool retain_graph = false) const;
  Tensor detach() const;

  // ---- Elementwise, one operand ----
  Tensor operator-() const;
  Tensor operator~() const;  ///< bits of integers; logical not of bool
  Tensor operator!() const;
  Tensor logical_not() const;
  Tensor reciprocal() const;
  Tensor sqrt() const;
  Tensor rsqrt() const;
  Tensor square() const;
  Tensor exp() const;
  Tensor exp2() const;
  Tensor log() const;
  Tensor log2() const;
  Tensor log10() const;
  Tensor log1p() const;
  Tensor sin() const;
  Tensor cos() const;
  Tensor tan() const;
  Tensor sinh() const;
  Tensor cosh() const;
  Tensor tanh() const;
  Tensor erf() const;
  Tensor abs() const;
  Tensor sign() const;
  Tensor trunc() const;
  Tensor floor() const;
  Tensor ceil() const;
  Tensor round() const;  ///< halves to even
  Tensor isnan() const;
  Tensor isinf() const;
  Tensor isfinite() const;
  Tensor relu() const;
  Tensor relu6() const;
  Tensor leaky_relu(double slope = 0.01) const;
  Tensor elu(double alpha = 1.0) const;
  Tensor celu(double alpha = 1.0) const;
  Tensor selu() const;
  Tensor sigmoid() const;
  Tensor logsigmoid() const;
  Tensor silu() const;
  Tensor mish() const;
  Tensor gelu(bool tanh_form = true) const;
  Tensor quick_gelu() const;
  Tensor hardsigmoid() const;
  Tensor hardswish() const;
  Tensor hardtanh(double low = -1.0, double high = 1.0) const;
  Tensor softplus(double beta = 1.0) const;
  Tensor softsign() const;
  Tensor clamp(std::optional<double> low, std::optional<double> high) const;

  // ---- Elementwise, two or three operands; the operators are below the class ----
  Tensor pow(const Tensor& exponent) const;
  Tensor maximum(const Tensor& other) const;  ///< NaN if either is
  Tensor minimum(const Tensor& other) const;
  Tensor floor_div(const Tensor& other) const;  ///< rounds down; integer x / 0 is 0
  Tensor trunc_div(const Tensor& other) const;  ///< rounds towards zero
  Tensor fmod(const Tensor& other) const;       ///< has the sign of this; % has the sign of `other`
  Tensor where(const Tensor& yes, const Tensor& no) const;  ///< this is the condition
  Tensor masked_fill(const Tensor& mask, const Tensor& value) const;
  Tensor lerp(const Tensor& end, const Tensor& weight) const;

  // ---- Reductions over `axes` (none: all). keepdim leaves size 1. Errors: User for a bad axis ----
  /// Dtype: small integers and bool widen to i32 or u32; f16 and bf16 accumulate in f32.
  Tensor sum(const Axes& axes = {}, bool keepdim = false) const;
  Tensor prod(const Axes& axes = {}, bool keepdim = false) const;
  Tensor mean(const Axes& axes = {}, bool keepdim = false) const;
  Tensor max(const Axes& axes = {}, bool keepdim = false) const;  ///< NaN if any is
  Tensor min(const Axes& axes = {}, bool keepdim = false) const;
  Tensor any(const Axes& axes = {}, bool keepdim = false) const;
  Tensor all(const Axes& axes = {}, bool keepdim = false) const;
  Tensor var(const Axes& axes = {}, bool keepdim = false, int64_t correction = 1) const;
  Tensor std(const Axes& axes = {}, bool keepdim = false, int64_t correction = 1) const;
  Tensor logsumexp(const Axes& axes = {}, bool keepdim = false) const;
  /// Place of the first maximum (i32); without an axis, in row-major order.
  Tensor argmax(std::optional<int64_t> axis = {}, bool keepdim = false) const;
  Tensor argmin(std::optional<int64_t> axis = {}, bool keepdim = false) const;
  Tensor cumsum(int64_t axis) const;
  Tensor softmax(int64_t axis = -1) const;
  Tensor log_softmax(int64_t axis = -1) const;

  // ---- Movement: views, no copies. Errors: User, with both shapes. ----
  Tensor reshape(const Shape& shape) const;  ///< one size may be -1
  Tensor permute(const std::vector<int64_t>& order) const;
  Tensor transpose(int64_t axis0 = -2, int64_t axis1 = -1) const;
  Tensor expand(const Shape& shape) const;  ///< -1 keeps a size; new axes come first
  Tensor pad(const std::vector<std::pair<int64_t, int64_t>>& before_after,
             double value = 0.0) const;
  Tensor shrink(const std::vector<std::pair<int64_t, int64_t>>& begin_end) const;
  Tensor flip(const Axes& axes) const;
  Tensor squeeze() const;
  Tensor squeeze(int64_t axis) const;
  Tensor unsqueeze(int64_t axis) const;
  Tensor flatten(int64_t start = 0, int64_t end = -1) const;
  Tensor unflatten(int64_t axis, const Shape& sizes) const;
  std::vector<Tensor> split(int64_t size, int64_t axis = 0) const;
  std::vector<Tensor> split(const std::vector<int64_t>& sizes, int64_t axis = 0) const;
  std::vector<Tensor> chunk(int64_t count, int64_t axis = 0) const;
  Tensor repeat(const Shape& repeats) const;
  Tensor operator[](const Index& index) const;
  Tensor operator[](std::initializer_list<Index> indices) const;
  Tensor slice(int64_t axis, const Slice& slice) const;
  Tensor tril(int64_t diagonal = 0) const;
  Tensor triu(int64_t diagonal = 0) const;

  // ---- Indexing by data. A place outside the axis reads 0; negative ones count from the end ----
  Tensor index_select(int64_t axis, const Tensor& places) const;
  Tensor gather(int64_t axis, const Tensor& places) const;
  Tensor one_hot(int64_t classes) const;

  // ---- Products and windows; see functional.h for shapes ----
  Tensor dot(const Tensor& other) const { return matmul(other); }
  Tensor matmul(const Tensor& other) const;
  Tensor linear(const Tensor& weight, const Tensor& bias = {}) const;
  Tensor conv2d(const Tensor& weight, const Tensor& bias = {}, const ConvOptions& = {}) const;
  Tensor max_pool2d(Pair kernel = 2, const PoolOptions& = {}) const;
  Tensor avg_pool2d(Pair kernel = 2, const PoolOptions& = {}) const;
  Tensor layernorm(const Axes& axes = -1, double eps = 1e-5) const;
  /// Each element is zero with probability p, others are divided by 1 - p.
  Tensor dropout(double p = 0.5, bool training = true) const;

  // ---- Representation ----
  Tensor cast(DType dtype) const;
  Tensor bitcast(DType dtype) const;  ///< of the same element size
  Tensor contiguous() const;          ///< stored as its own value when realised
  Tensor to(std::string_view device) const;

 private:
  struct Literal {};
  struct Number {
    DType dtype;  // Index, WeakFloat or Bool
    double real;
    int64_t integer;
  };
  template <class T>
  static constexpr Number convert_literal(T value) {
    if constexpr (std::is_same_v<T, bool>)
      return {DType::Bool, 0.0, value};
    else if constexpr (std::is_floating_point_v<T>)
      return {DType::WeakFloat, value, 0};
    else
      return {DType::Index, 0.0, static_cast<int64_t>(value)};
  }
  Tensor(Literal, Number value);
  void read_as(void* out, size_t count, DType dtype) const;
  void read_item(void* out, DType dtype) const;

  std::shared_ptr<engine::TensorState> state_;
};

PLUGRAD_API Tensor operator+(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor operator-(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor operator*(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor operator/(const Tensor& a, const Tensor& b);  ///< floats; integers as f32
PLUGRAD_API Tensor operator%(const Tensor& a, const Tensor& b);  ///< a - b * floor(a / b)
// Bits of integers, logic of bool.
PLUGRAD_API Tensor operator&(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor operator|(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor operator^(const Tensor& a, const Tensor& b);
// Shifts have the dtype of `a`; >> of signed integers keeps the sign.
PLUGRAD_API Tensor operator<<(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor operator>>(const Tensor& a, const Tensor& b);
// Comparisons give bool, elementwise.
PLUGRAD_API Tensor operator==(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor operator!=(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor operator<(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor operator<=(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor operator>(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor operator>=(const Tensor& a, const Tensor& b);

/// "Tensor(512) f32 on CPU, lazy". Runs nothing.
PLUGRAD_API std::ostream& operator<<(std::ostream& out, const Tensor& tensor);
/// The values, in nested rows: "[[1, 2],\n [3, 4]]"; of more than 1000, the ends of each axis.
/// Realises the tensor.
PLUGRAD_API std::string to_string(const Tensor& tensor);

/// d loss / d target for each target, lazily; may be differentiated again. Values that are realised
/// forget how they were computed, unless a target was marked with requires_grad_() before. Errors:
/// User unless loss is one float element or `seed`, the gradient of each of its elements, is given;
/// or where it does not depend on a target.
PLUGRAD_API std::vector<Tensor> gradient(const Tensor& loss, const std::vector<Tensor>& targets,
                                         const Tensor& seed = {});

}  // namespace plugrad

#include "plugrad/tensor_inline.h"

/// Tensor: a handle to a lazily recorded n-dimensional array. Copies denote the same tensor;
/// nothing runs before realize() or a read. Errors are plugrad::Error, with function and shapes.
///
/// Defaults: elementwise functions broadcast their operands like NumPy and promote their dtypes
/// (dtype.h); numbers are weak, so that f16 + 1.5 stays f16; functions of real analysis (exp, sqrt,
/// division, …) take integers as f32. Axes may be negative.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "plugrad/dtype.h"
#include "plugrad/error.h"
#include "plugrad/kernel.h"
#include "plugrad/number.h"
#include "plugrad/operators.h"
#include "plugrad/shape.h"
#include "plugrad/window.h"

namespace plugrad {

namespace detail {
struct HandleAccess;
struct TensorState;
}  // namespace detail
namespace ir {
class UOp;
}
class IndexedTensor;
class Mesh;
class ShardSpec;

/// How div rounds a quotient to an integer.
enum class Rounding : uint8_t { None, Trunc, Floor };

class PLUGRAD_API Tensor {
 public:
  /// No tensor: only assignment and defined() are allowed.
  Tensor() = default;
  /// A weak number: takes the dtype and device of the other operand; alone it is i32, f32 or bool.
  template <class T>
    requires std::is_arithmetic_v<T>
  Tensor(T value) : Tensor(Literal{}, detail::convert_literal(value)) {}
  /// The values along one axis, on `device`: Tensor({1, 2, 3}, "CPU"). Like from().
  template <class T>
    requires std::is_arithmetic_v<T>
  Tensor(std::initializer_list<T> values, std::string_view device) : Tensor(from(values, device)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) = default;
  // Rebinds a named handle. Not for temporaries, where it would have no effect.
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & = default;

  // ---- Creation. Errors: User for negative sizes, unknown devices, wrong numbers of values ----
  /// Holds zeros.
  static Tensor empty(const Sizes&, DType = DType::F32, std::string_view device = {});
  static Tensor full(const Sizes&, const Tensor& scalar, std::optional<DType> = {},
                     std::string_view device = {});
  static Tensor zeros(const Sizes&, DType = DType::F32, std::string_view device = {});
  static Tensor ones(const Sizes&, DType = DType::F32, std::string_view device = {});
  // With the shape and device of this tensor, and its dtype unless given.
  Tensor full_like(const Tensor& scalar, std::optional<DType> = {}) const;
  Tensor zeros_like(std::optional<DType> = {}) const;
  Tensor ones_like(std::optional<DType> = {}) const;
  Tensor empty_like(std::optional<DType> = {}) const;
  /// start, start + step, … before stop. Dtype: I32, or F32 if an argument is a float, unless
  /// given.
  static Tensor arange(const Tensor& stop, std::optional<DType> = {}, std::string_view device = {});
  static Tensor arange(const Tensor& start, const Tensor& stop, const Tensor& step = 1,
                       std::optional<DType> = {}, std::string_view device = {});
  /// `count` evenly spaced values from start to stop, both included; integers truncate exact values.
  static Tensor linspace(const Tensor& start, const Tensor& stop, int64_t count, DType = DType::F32,
                         std::string_view device = {});
  /// Ones on the diagonal of an n x m matrix (m = n when not given).
  static Tensor eye(const Size& n, const std::optional<Size>& m = {}, DType = DType::F32,
                    std::string_view device = {});

  /// Host values, row-major, copied immediately. Without a shape: one axis.
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
  /// Lists that mix types of numbers, {1, 2.5}, are f64, like lists of doubles.
  static Tensor from(std::initializer_list<MixedNumber> values, std::string_view device = {});
  static Tensor from(std::initializer_list<MixedNumber> values, Shape shape,
                     std::string_view device = {});
  static Tensor from(std::initializer_list<std::initializer_list<MixedNumber>> rows,
                     std::string_view device = {});
  /// `bytes` in the dtype's storage form. With an owner they are not copied, and the owner keeps
  /// them valid.
  static Tensor from_bytes(std::span<const std::byte> bytes, Shape, DType,
                           std::string_view device = {},
                           std::shared_ptr<const void> owner = nullptr);

  // ---- Random numbers: threefry-2x32, counter-based, the same bits on every device. ----
  /// Source: Salmon et al. 2011; how keys and counters are formed is in docs/tensor-guide.md.
  static void manual_seed(uint64_t seed = 0);
  /// The seed and counter of the next draw; set_random_state with them repeats the later draws.
  /// Errors: User within a jitted function.
  static RandomState random_state();
  static void set_random_state(const RandomState& state);
  static Tensor rand(const Sizes&, DType = DType::F32, std::string_view device = {});  ///< [0, 1)
  /// With mean 0 and deviation 1. Source: Box and Muller 1958.
  static Tensor randn(const Sizes&, DType = DType::F32, std::string_view device = {});
  static Tensor uniform(const Sizes&, double low, double high, DType = DType::F32,
                        std::string_view device = {});
  static Tensor normal(const Sizes&, double mean, double std, DType = DType::F32,
                       std::string_view device = {});
  /// Integers in [low, high). Errors: User if the dtype does not hold them.
  static Tensor randint(const Sizes&, int64_t low, int64_t high, DType = DType::I32,
                        std::string_view device = {});
  /// Uniform in ±sqrt(6 / ((1 + a²) fan_in)), fan_in = product of all sizes but the first. He et
  /// al. 2015.
  static Tensor kaiming_uniform(const Shape&, double a = 0.01, DType = DType::F32,
                                std::string_view device = {});
  /// Uniform in ±sqrt(6 / (shape[0] + product of the others)). Glorot and Bengio 2010.
  static Tensor glorot_uniform(const Shape&, DType = DType::F32, std::string_view device = {});
  /// Normal, with deviation sqrt(2 / ((1 + a²) fan_in)). He et al. 2015.
  static Tensor kaiming_normal(const Shape&, double a = 0.01, DType = DType::F32,
                               std::string_view device = {});
  /// Uniform in ±1 / sqrt(number of elements).
  static Tensor scaled_uniform(const Shape&, DType = DType::F32, std::string_view device = {});
  /// 0 to n - 1 in random order. Errors: User for a dtype that does not hold n - 1.
  static Tensor randperm(int64_t n, DType = DType::I32, std::string_view device = {});
  Tensor rand_like(std::optional<DType> = {}) const;
  Tensor randn_like(std::optional<DType> = {}) const;
  /// `count` indices (i32) into the last axis for each row, drawn with probabilities proportional
  /// to this tensor, which is computed. Shape: (n) -> (count), (m, n) -> (m, count). Without
  /// replacement, indices of weight 0 come last. Errors: User for more draws than indices, and for
  /// weights that are negative, not finite or all 0; in a jitted function such rows give -1.
  Tensor multinomial(int64_t count, bool replacement = false) const;

  // ---- Properties. None of these runs anything ----
  bool defined() const { return state_ != nullptr; }
  Shape shape() const;
  int64_t size(int64_t axis) const;
  int64_t ndim() const;
  int64_t numel() const;
  Shape bound_shape() const;  ///< shape() with the actual sizes of variable axes (jit.h)
  DType dtype() const;
  std::string device() const;
  bool is_realized() const;
  /// A tensor is no condition, because its value is not computed: `if (a > 0)` does not compile.
  template <class Use = void>
  explicit operator bool() const {
    static_assert(!std::is_void_v<Use>,
                  "a Tensor is no bool: for `if (a > 0)` write (a > 0).item<bool>() where a is one "
                  "number, (a > 0).all().item<bool>() or .any().item<bool>() for more, where(a > "
                  "0, x, y) to choose elements, a.defined() to ask whether there is a tensor");
    return false;
  }

  // ---- Values ----
  /// Computes the value now. Errors: Device from the plugin; then every tensor keeps its state.
  Tensor realize() const;
  static void realize(std::span<const Tensor> tensors);  ///< together, in one plan
  /// The only element as a T; an integer T truncates a float. Errors: User unless numel() is 1, and
  /// for a value out of T's range (-1 as uint8_t, NaN or 1e10 as int).
  template <class T>
    requires std::is_arithmetic_v<T>
  T item() const {
    T value;
    read_item(&value, dtype_of<T>());
    return value;
  }
  /// All elements (of bound_shape()), row-major, converted to T like item().
  template <class T>
    requires std::is_arithmetic_v<T>
  std::vector<T> to_vector() const;
  /// Like to_vector, into `out`. Errors: User when its size is not numel().
  template <class T>
    requires std::is_arithmetic_v<T>
  void copy_to(std::span<T> out) const {
    read_as(out.data(), out.size(), dtype_of<T>());
  }
  std::vector<std::byte> to_bytes() const;  ///< in storage form
  std::vector<Kernel> schedule() const;     ///< the compiled kernels of realize(), not run
  std::vector<Kernel> kernelize() const;  ///< the same before code generation: AST and ranges only
  ir::UOp uop() const;                    ///< the present node of this tensor; see uop.h

  // ---- Assignment, visible in every copy and view. Values recorded before it stay unchanged ----
  /// Errors: User if `value` does not fit shape() and dtype(), for expanded tensors and leaves' views.
  Tensor& assign(const Tensor& value);
  Tensor& operator+=(const Tensor& other) &;
  Tensor& operator-=(const Tensor& other) &;
  Tensor& operator*=(const Tensor& other) &;
  Tensor& operator/=(const Tensor& other) &;
  Tensor& operator%=(const Tensor& other) &;
  Tensor& operator&=(const Tensor& other) &;
  Tensor& operator|=(const Tensor& other) &;
  Tensor& operator^=(const Tensor& other) &;
  Tensor& operator<<=(const Tensor& other) &;
  Tensor& operator>>=(const Tensor& other) &;

  // ---- Gradients ----
  Tensor& requires_grad_(bool on = true);  ///< marks a leaf from now on. Errors: User if no float
  bool requires_grad() const;
  Tensor grad() const;  ///< undefined before a backward()
  void set_grad(const Tensor& gradient);
  void zero_grad();
  /// Adds d this / d leaf to grad() of every live marked tensor that this depends on, and releases
  /// the graph. Errors: User unless one float, without a marked tensor, or if a part is released.
  void backward(bool retain_graph = false) const;
  /// The same for any shape: `gradient` holds the gradient of each element.
  void backward(const Tensor& gradient, bool retain_graph = false) const;
  Tensor detach() const;

  // ---- Elementwise, one operand. Shape and dtype as this; functions of real analysis take
  // integers as f32. Errors: User for bool where a number is needed ----
  Tensor operator-() const;
  Tensor operator~() const;  ///< bits of integers; logical not of bool
  Tensor operator!() const;
  Tensor logical_not() const;
  Tensor reciprocal() const;  ///< 1 / x
  Tensor sqrt() const;        ///< correctly rounded; NaN below -0
  Tensor rsqrt() const;       ///< 1 / sqrt(x)
  Tensor square() const;      ///< x * x; integers wrap
  Tensor exp() const;         ///< e^x; docs/accuracy.md has the errors of all functions
  Tensor exp2() const;        ///< 2^x
  Tensor log() const;         ///< NaN below 0, -inf at 0, as all logarithms
  Tensor log2() const;        ///< base 2
  Tensor log10() const;       ///< base 10
  Tensor log1p() const;       ///< log(1 + x), accurate near 0
  Tensor expm1() const;       ///< exp(x) - 1, accurate near 0
  Tensor sin() const;         ///< radians, like all of these; NaN of infinities
  Tensor cos() const;         ///< accurate for large x, like sin
  Tensor tan() const;         ///< accurate near its poles, too
  Tensor asin() const;        ///< NaN outside [-1, 1], like acos
  Tensor acos() const;        ///< in [0, pi]
  Tensor atan() const;        ///< in [-pi/2, pi/2]
  Tensor sinh() const;        ///< (exp(x) - exp(-x)) / 2
  Tensor cosh() const;        ///< (exp(x) + exp(-x)) / 2
  Tensor tanh() const;        ///< sinh(x) / cosh(x); 1 and -1 for large |x|
  Tensor asinh() const;       ///< inverse of sinh
  Tensor acosh() const;       ///< NaN below 1
  Tensor atanh() const;       ///< NaN outside [-1, 1], infinite at its ends
  Tensor erf() const;         ///< minimax polynomials (Cody 1969 for f64 beyond 1)
  Tensor abs() const;         ///< gradient 0 at 0; the lowest integer is unchanged
  Tensor sign() const;        ///< -1, 0 or 1; NaN of NaN; gradient 0
  Tensor trunc() const;       ///< towards 0; gradient 0, like the next three
  Tensor floor() const;       ///< down; integers are unchanged, like in all of these
  Tensor ceil() const;        ///< up
  Tensor round() const;       ///< halves to even
  Tensor isnan() const;       ///< bool, like the next two
  Tensor isinf() const;       ///< +inf or -inf
  Tensor isposinf() const;    ///< only +inf; isneginf: only -inf
  Tensor isneginf() const;
  Tensor isfinite() const;                       ///< neither infinite nor NaN
  Tensor relu() const;                           ///< max(x, 0); NaN stays; gradient 0 at 0
  Tensor relu6() const;                          ///< min(max(x, 0), 6)
  Tensor leaky_relu(double slope = 0.01) const;  ///< slope * x below 0
  Tensor elu(double alpha = 1.0) const;          ///< alpha (exp(x) - 1) below 0. Clevert 2015
  Tensor celu(double alpha = 1.0) const;  ///< alpha (exp(x / alpha) - 1) below 0. Barron 2017
  Tensor selu() const;                    ///< scaled elu. Klambauer et al. 2017
  Tensor sigmoid() const;                 ///< 1 / (1 + exp(-x)), without overflow
  Tensor logsigmoid() const;              ///< log(sigmoid(x)), without overflow
  Tensor silu() const;                    ///< x sigmoid(x). Elfwing et al. 2017
  Tensor swish() const { return silu(); }
  Tensor mish() const;  ///< x tanh(softplus(x)). Misra 2019
  Tensor gelu(bool tanh_form = true) const;
  Tensor quick_gelu() const;  ///< x sigmoid(1.702 x)
  Tensor hardsigmoid(double slope = 1.0 / 6.0, double offset = 0.5) const;
  Tensor hardswish() const;  ///< x relu6(x + 3) / 6. Howard et al. 2019
  Tensor hardtanh(double low = -1.0, double high = 1.0) const;
  Tensor softplus(double beta = 1.0) const;  ///< log(1 + exp(beta x)) / beta, without overflow
  Tensor softsign() const;                   ///< x / (1 + |x|)
  /// x * weight below 0; `weight` has one element, or one for each index of axis 1. He 2015.
  Tensor prelu(const Tensor& weight) const;
  /// Bounds broadcast; {} leaves one out. Where low > high: high.
  Tensor clamp(const Tensor& low, const Tensor& high = {}) const;
  Tensor clip(const Tensor& low, const Tensor& high = {}) const;  ///< clamp

  // ---- Elementwise, two or three operands: broadcast shape, promoted dtype. Errors: User for
  // shapes that do not broadcast. The operators are below the class ----
  /// Edge cases are those of C's pow. Integers stay integers; a negative exponent gives 0 except
  /// for bases 1 and -1. Errors: User for an integer to a negative literal.
  Tensor pow(const Tensor& exponent) const;
  /// Floats (integers as f32); with a rounding, integers stay integers.
  Tensor div(const Tensor& other, Rounding = Rounding::None) const;
  Tensor maximum(const Tensor& other) const;    ///< NaN if either is
  Tensor minimum(const Tensor& other) const;    ///< NaN if either is
  Tensor floor_div(const Tensor& other) const;  ///< rounds down; integer x / 0 is 0
  Tensor trunc_div(const Tensor& other) const;  ///< rounds towards zero
  Tensor mod(const Tensor& other) const;        ///< like %: has the sign of `other`
  Tensor fmod(const Tensor& other) const;       ///< has the sign of x
  Tensor copysign(const Tensor& sign) const;    ///< |x| with the sign bit of `sign`
  Tensor logaddexp(const Tensor& other) const;  ///< log(exp(x) + exp(y)), without overflow
  /// |x - other| <= atol + rtol |other|; equal infinities are close, NaN only with equal_nan.
  Tensor isclose(const Tensor& other, double rtol = 1e-5, double atol = 1e-8,
                 bool equal_nan = false) const;
  /// Whether isclose holds for all elements. Computes it.
  bool allclose(const Tensor& other, double rtol = 1e-5, double atol = 1e-8,
                bool equal_nan = false) const;
  Tensor where(const Tensor& yes, const Tensor& no) const;  ///< this is the condition
  /// `value` where the bool mask is true
  Tensor masked_fill(const Tensor& mask, const Tensor& value) const;
  Tensor lerp(const Tensor& end, const Tensor& weight) const;  ///< x + weight (end - x); exact ends

  // ---- Reductions over `axes` (not given: all; Axes::none(): none). keepdim leaves size 1.
  // Errors: User for a bad axis. A number counts as one axis of size 1 ----
  /// Dtype: the given one, else i64 for bool and integers, u64 for unsigned integers; f16 and bf16
  /// accumulate in f32.
  Tensor sum(const Axes& axes = {}, bool keepdim = false, std::optional<DType> = {}) const;
  Tensor prod(const Axes& axes = {}, bool keepdim = false, std::optional<DType> = {}) const;
  Tensor mean(const Axes& axes = {}, bool keepdim = false) const;  ///< floats; integers as f32
  Tensor max(const Axes& axes = {}, bool keepdim = false) const;   ///< NaN if any is
  Tensor min(const Axes& axes = {}, bool keepdim = false) const;   ///< NaN if any is
  Tensor any(const Axes& axes = {}, bool keepdim = false) const;   ///< bool: whether one is not 0
  Tensor all(const Axes& axes = {}, bool keepdim = false) const;   ///< bool: whether none is 0
  /// Sum of squared distances from the mean over max(count - correction, 0).
  Tensor var(const Axes& axes = {}, bool keepdim = false, int64_t correction = 1) const;
  Tensor std(const Axes& axes = {}, bool keepdim = false, int64_t correction = 1) const;
  std::pair<Tensor, Tensor> var_mean(const Axes& axes = {}, bool keepdim = false,
                                     int64_t correction = 1) const;
  std::pair<Tensor, Tensor> std_mean(const Axes& axes = {}, bool keepdim = false,
                                     int64_t correction = 1) const;
  /// log of the sum of exp, without overflow
  Tensor logsumexp(const Axes& axes = {}, bool keepdim = false) const;
  /// Index of the first maximum (i32); without an axis, into the row-major elements.
  Tensor argmax(std::optional<int64_t> axis = {}, bool keepdim = false) const;
  Tensor argmin(std::optional<int64_t> axis = {}, bool keepdim = false) const;  ///< first minimum
  /// exp(x) over the sum of exp(x), and its log without underflow; with a dtype, of x cast to it
  Tensor softmax(int64_t axis = -1, std::optional<DType> = {}) const;
  Tensor log_softmax(int64_t axis = -1, std::optional<DType> = {}) const;
  Tensor softmin(int64_t axis = -1) const;  ///< softmax(-x)
  /// x / max(||x||, eps), with the p-norm along `axis`; any p; -inf: the smallest |x|.
  Tensor normalize(double p = 2.0, int64_t axis = 1, double eps = 1e-12) const;

  // ---- Scans: element i is the reduction of elements 0 to i. Blelloch 1990 ----
  Tensor cumsum(int64_t axis, std::optional<DType> = {}) const;  ///< dtype as in sum
  Tensor cumprod(int64_t axis, std::optional<DType> = {}) const;
  Tensor logcumsumexp(int64_t axis) const;  ///< without overflow
  /// Values and their indices (i32), the last of equal values. NaN wins; then the last NaN.
  std::pair<Tensor, Tensor> cummax(int64_t axis) const;
  std::pair<Tensor, Tensor> cummin(int64_t axis) const;

  // ---- Sorting: stable, NaN above all numbers. Batcher 1968 ----
  /// Sorted values, and their indices (i32) in this tensor.
  std::pair<Tensor, Tensor> sort(int64_t axis = -1, bool descending = false) const;
  Tensor argsort(int64_t axis = -1, bool descending = false) const;
  /// The first k of sort; unless `sorted`, by index. Errors: User for an axis shorter than k.
  std::pair<Tensor, Tensor> topk(int64_t k, int64_t axis = -1, bool largest = true,
                                 bool sorted = true) const;

  // ---- Movement: views, which share elements; joins and padding are fused into consumers ----
  /// Errors of all of these: User, with the shapes.
  Tensor reshape(const Sizes& shape) const;                        ///< one size may be -1
  Tensor view(const Sizes& shape) const;                           ///< reshape
  Tensor permute(const std::vector<int64_t>& order) const;         ///< axis i is axis order[i] of x
  Tensor transpose(int64_t axis0 = -2, int64_t axis1 = -1) const;  ///< swaps two axes
  Tensor expand(const Sizes& shape) const;  ///< -1 keeps a size; new axes come first
  /// Reflect pads less than the axis has, Circular at most that. The dtype must hold the value.
  Tensor pad(const Pads& pads, const Tensor& value = 0) const;
  Tensor pad(const Pads& pads, PadMode mode, const Tensor& value = 0) const;
  /// Pads the end of each axis up to `sizes`; nullopt keeps the axis.
  Tensor pad_to(const std::vector<std::optional<int64_t>>& sizes, const Tensor& value = 0) const;
  Tensor shrink(const Box& box) const;  ///< the elements [begin, end) of each axis
  Tensor shrink_to(const std::vector<std::optional<Size>>& sizes) const;  ///< a prefix each
  Tensor flip(const Axes& axes) const;                                    ///< reverses these axes
  Tensor squeeze(const Axes& axes = {}) const;                ///< removes axes of size 1
  Tensor unsqueeze(int64_t axis) const;                       ///< inserts an axis of size 1
  Tensor flatten(int64_t start = 0, int64_t end = -1) const;  ///< merges axes start to end
  Tensor unflatten(int64_t axis, const Sizes& sizes) const;  ///< splits an axis; one size may be -1
  /// By axis names: "b (h w) c -> b c h w" with {{"h", 4}}. "..." stands for any axes, 1 for a new
  /// one. Errors: User, with a caret where the pattern is wrong. Source: Rogozhnikov 2022 (einops).
  Tensor rearrange(std::string_view pattern,
                   const std::vector<std::pair<std::string, int64_t>>& sizes = {}) const;
  std::vector<Tensor> split(int64_t size, int64_t axis = 0) const;  ///< the last may be smaller
  /// sizes that add up to the axis
  std::vector<Tensor> split(const std::vector<int64_t>& sizes, int64_t axis = 0) const;
  std::vector<Tensor> chunk(int64_t count, int64_t axis = 0) const;  ///< like PyTorch: may be fewer
  Tensor repeat(const Sizes& repeats) const;  ///< copies of the tensor along each axis
  /// Each element `count` times in a row; without an axis, of the flat row-major tensor.
  Tensor repeat_interleave(int64_t count, std::optional<int64_t> axis = {}) const;
  /// Shifts elements cyclically towards higher indices; without axes, in row-major order.
  Tensor roll(const Axes& shifts, const Axes& axes = {}) const;
  /// A matrix with this on a diagonal, or the diagonal of a matrix. Errors: User for other ranks.
  Tensor diag(int64_t offset = 0) const;
  /// Shape: the other axes, then the diagonal. Positive offsets are above the main diagonal.
  Tensor diagonal(int64_t offset = 0, int64_t axis0 = 0, int64_t axis1 = 1) const;
  /// Windows of `size` elements, `step` apart, as a new last axis.
  Tensor unfold(int64_t axis, int64_t size, int64_t step) const;
  Tensor tril(const Size& diagonal = 0) const;  ///< 0 above a diagonal of the last two axes
  Tensor triu(const Size& diagonal = 0) const;  ///< 0 below it

  // ---- Indexing. Negative indices count from the end. An index out of range reads 0 if it is
  // tensor data, and is an error if the host knows it ----
  Tensor slice(int64_t axis, const Slice& slice) const;  ///< clips bounds; steps may be negative
  /// Like PyTorch: index tensors and lists broadcast; the axes of their common shape replace the
  /// indexed axes, or come first if these are not adjacent. Errors: User for bool (masked_select).
  Tensor operator[](const Index& index) const&;
  Tensor operator[](std::initializer_list<Index> indices) const&;
  IndexedTensor operator[](const Index& index) &;  ///< may be assigned to, see indexed.h
  IndexedTensor operator[](std::initializer_list<Index> indices) &;
  IndexedTensor operator[](const Index& index) &&;  ///< x.transpose()[0] = 1 changes x
  IndexedTensor operator[](std::initializer_list<Index> indices) &&;
  Tensor index(const std::vector<Index>& indices) const;
  /// x[indices] = value. Errors: User like operator[] and assign.
  void set_index(const std::vector<Index>& indices, const Tensor& value);
  Tensor index_select(int64_t axis, const Tensor& indices) const;  ///< its axes replace the axis
  /// has the shape of `indices`, which fits in this tensor
  Tensor gather(int64_t axis, const Tensor& indices) const;
  /// A copy with `values` (a number, or at least the shape of `indices`) at `indices` of
  /// the axis. Of values with one index the last is kept, or all are combined with the element.
  Tensor scatter(int64_t axis, const Tensor& indices, const Tensor& values,
                 Combine how = Combine::Replace) const;
  /// Like scatter; without include_self the written elements are not part of the combination.
  Tensor scatter_reduce(int64_t axis, const Tensor& indices, const Tensor& values, Combine how,
                        bool include_self = true) const;
  /// The elements where `mask` is true, row-major: the first `size`, then `fill` if there are
  /// fewer. Without a size they are counted, which reads the mask.
  Tensor masked_select(const Tensor& mask, std::optional<int64_t> size = {},
                       const Tensor& fill = 0) const;
  /// Shape: (size, ndim), a row of indices (i32) for each element that is not 0; as masked_select.
  Tensor nonzero(std::optional<int64_t> size = {}, const Tensor& fill = 0) const;
  Tensor one_hot(int64_t classes) const;  ///< i32, with a new last axis

  // ---- Products and windows; see functional.h for shapes ----
  Tensor dot(const Tensor& other) const;  ///< matmul
  /// With a dtype, products, sums and result have it.
  Tensor matmul(const Tensor& other, std::optional<DType> dtype = {}) const;
  Tensor linear(const Tensor& weight, const Tensor& bias = {}) const;
  Tensor conv2d(const Tensor& weight, const Tensor& bias = {}, const ConvOptions& = {}) const;
  Tensor max_pool2d(Pair kernel = 2, const PoolOptions& = {}) const;
  Tensor avg_pool2d(Pair kernel = 2, const PoolOptions& = {}) const;
  Tensor layernorm(const Axes& axes = -1, double eps = 1e-5) const;
  /// Zeroes each element with probability p and divides the others by 1 - p.
  Tensor dropout(double p = 0.5, bool training = true) const;

  // ---- Representation ----
  Tensor cast(DType dtype) const;
  /// Reinterprets the bits. If the element size changes, the last axis grows or shrinks, low bytes
  /// first. Errors: User when it does not divide, or to bool from another size.
  Tensor bitcast(DType dtype) const;
  Tensor clone() const;                      ///< the same value as a new tensor
  Tensor contiguous() const;                 ///< stored when realised, not a view
  Tensor to(std::string_view device) const;  ///< itself where device() is that one, else a copy

  // ---- Sharding over a mesh of devices; see sharding.h ----
  /// The same value, on the mesh by the spec: cut into parts, or moved from another spec. Errors:
  /// User for a spec of more dimensions than this, and for axes that the mesh does not have.
  Tensor shard(const Mesh& mesh, const ShardSpec& spec) const;
  Tensor shard(const Mesh& mesh) const;  ///< every device has all of it
  /// All elements on one device: the given one, else the first of the mesh in this process.
  Tensor unshard(std::string_view device = {}) const;
  bool is_sharded() const;       ///< whether it is on a mesh
  ShardSpec shard_spec() const;  ///< how it lies on its mesh. Errors: User when it is on none
  Mesh mesh() const;             ///< the mesh that it is on. Errors: User when it is on none
  /// The parts on the devices of this process, in the order of the mesh; realises the tensor.
  std::vector<Tensor> shards() const;

 private:
  friend struct detail::HandleAccess;
  struct Literal {};
  Tensor(Literal, detail::LiteralNumber value);
  explicit Tensor(std::shared_ptr<detail::TensorState> state) : state_(std::move(state)) {}
  static void require_row_length(int64_t length, int64_t first);
  int64_t read_count() const;
  void read_as(void* out, size_t count, DType dtype) const;
  void read_item(void* out, DType dtype) const;
  void read_converted(std::string_view function, void* out, size_t count, DType dtype) const;

  std::shared_ptr<detail::TensorState> state_;
};

/// "Tensor(512) f32 on CPU, lazy". Runs nothing.
PLUGRAD_API std::ostream& operator<<(std::ostream& out, const Tensor& tensor);
/// The values, in nested rows: "[[1, 2],\n [3, 4]]"; of more than 1000, the ends of each axis.
/// Realises the tensor.
PLUGRAD_API std::string to_string(const Tensor& tensor);

}  // namespace plugrad

#include "plugrad/gradient.h"
#include "plugrad/indexed.h"
#include "plugrad/tensor_inline.h"

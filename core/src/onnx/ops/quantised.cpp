// Quantised operators. Products of integers are exact: they are summed in i32.
#include "onnx/ops/quantised.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "engine/session.h"
#include "onnx/import/emulated.h"
#include "onnx/ops/tables.h"
#include "onnx/ops/windows.h"
#include "plugrad/functional.h"
#include "tensor/elementwise/multiply_add.h"

namespace plugrad::onnx {
namespace {

constexpr int64_t kMostExact = int64_t{1} << 24;  // integers that f32 holds exactly

// A scale or zero point for x: of one element, of one each index of the axis, or of one each block
// of it.
Tensor along_axis(Call& call, const Tensor& parameter, const Tensor& x) {
  if (parameter.ndim() == 0 || parameter.numel() == 1) return parameter.reshape({});
  const int64_t axis = call.axis_of(x, 1);
  const int64_t block = call.integer("block_size", 0);
  if (parameter.ndim() == 1 && block == 0) {
    if (parameter.numel() != x.size(axis))
      call.wrong(fmt::format("a scale or zero point has {} elements, axis {} of {} has {}",
                             parameter.numel(), axis, to_string(x.shape()), x.size(axis)));
    Shape shape(static_cast<size_t>(x.ndim()), 1);
    shape[static_cast<size_t>(axis)] = parameter.numel();
    return parameter.reshape(shape);
  }
  call.require_fixed(x, axis);
  if (block <= 0) call.wrong("block_size is missing for a scale of blocks");
  Shape of_blocks = x.shape();
  of_blocks[static_cast<size_t>(axis)] = (x.size(axis) + block - 1) / block;
  if (parameter.shape() != of_blocks)
    call.wrong(fmt::format("a scale or zero point of blocks has the shape {}, not {}",
                           to_string(parameter.shape()), to_string(of_blocks)));
  return parameter.repeat_interleave(block, axis).slice(axis, {0, x.size(axis)});
}

// Errors: User if a zero point (input 2) is not of as many elements as the scale (input 1).
void require_zero_of_scale(Call& call) {
  if (call.has(2) && call[2].numel() != call[1].numel())
    call.wrong(fmt::format("the zero point has the shape {}, the scale {}",
                           to_string(call[2].shape()), to_string(call[1].shape())));
}

struct ResultType {
  ResultType(DType held) : dtype(held) {}  // NOLINT: most results have the type that a dtype has
  ResultType(DType held, DataType emulated) : dtype(held), type(emulated) {}
  DType dtype;
  DataType type = DataType::Undefined;  // if it is an emulated one
};

// The unit of an f32 about 1.5 * 2^23 is 1: an addition to it rounds to an integer, halves to even.
constexpr float kRounding = 0x1.8p23F;

// x, an integer plus kRounding, without it plus zero, in the range, whose ends are below 2^22.
Tensor integer_in(const IntegerRange& range, const Tensor& x, const Tensor& zero, DType to) {
  const Tensor offset = zero.defined() ? zero.cast(DType::F32) : Tensor(0.0F);
  const Tensor low = on_host(range.low + kRounding - offset),
               high = on_host(range.high + kRounding - offset);
  Tensor inside = (x > low).where(x, low);  // low for NaN
  inside = (inside < high).where(inside, high);
  const Tensor unit = offset.cast(DType::I32) - std::bit_cast<int32_t>(kRounding);
  return (inside.bitcast(DType::I32) + on_host(unit)).cast(to);
}

// Rounds halves to even and saturates.
Tensor quantised(const Tensor& x, const Tensor& scale, const Tensor& zero, const ResultType& to,
                 bool saturates = true) {
  Tensor steps = x / scale;
  if (is_float(to.dtype)) {
    if (zero.defined()) steps = steps + zero.cast(steps.dtype());
    return is_emulated(to.type) ? rounded_to(steps, to.type, {saturates}) : steps.cast(to.dtype);
  }
  const IntegerRange range = range_of(to.type, to.dtype);
  const bool is_narrow = size_of(to.dtype) < 4;
  if (is_narrow && steps.dtype() != DType::F64)
    return integer_in(range, steps.cast(DType::F32) + kRounding, zero, to.dtype);
  steps = steps.round().cast(DType::F32);
  if (zero.defined()) steps = steps + zero.cast(DType::F32);
  return steps.clamp(range.low, range.high).cast(DType::I32).cast(to.dtype);
}

// sums * scale with one rounding, halves to even. Integers of 64 bits hold the products with the 24
// bits of the scale exactly; f32 would take values beside a half for halves. Scales from 2^23 on are
// taken as smaller ones, with which all products but 0 exceed 16 bits, too.
Tensor rounded_product(const Tensor& sums, const Tensor& scale) {
  const Tensor bits = scale.bitcast(DType::I32).cast(DType::I64);
  const Tensor digits = (bits & 0x7fffff) | 0x800000;
  const Tensor exponent = ((bits >> 23) & 255) - 150;  // scale = digits * 2^exponent
  const Tensor right = (-exponent).clamp(0, 62);
  const Tensor product = sums.cast(DType::I64) * (bits < 0).where(-digits, digits);
  const Tensor whole = product >> right, twice_rest = (product - (whole << right)) << 1;
  const Tensor one = Tensor(int64_t{1}).cast(DType::I64) << right;
  const Tensor goes_up = (twice_rest > one) | ((twice_rest == one) & ((whole & 1) == 1));
  return whole + goes_up.cast(DType::I64);
}

// Sums of products of integers, each at most `most` from 0.
struct Sums {
  Tensor of;
  int64_t most;
};

// The result of a product of integers, whose unit is the product of the factors' scales. Where f32
// holds the sums, one multiply-add rounds their exact products with the scale to integers.
Tensor requantised(const Sums& sums, const Tensor& scale, const Tensor& zero, DType to) {
  const IntegerRange range = range_of(DataType::Undefined, to);
  if (sums.most <= kMostExact && size_of(to) < 4 &&
      engine::Session::current().claims(Op::Fma, DType::F32)) {
    const Tensor steps =
        tensor::multiply_add(sums.of.cast(DType::F32), on_host(scale), Tensor(kRounding));
    return integer_in(range, steps, zero, to);
  }
  const Tensor steps = rounded_product(sums.of.cast(DType::I32), scale) + zero.cast(DType::I64);
  return steps.clamp(static_cast<int64_t>(range.low), static_cast<int64_t>(range.high)).cast(to);
}

Values quantize_linear(Call& call) {
  require_zero_of_scale(call);
  const Tensor x = call[0], scale = along_axis(call, call[1], x);
  const Tensor zero = call.has(2) ? along_axis(call, call.parameter(2), x) : Tensor();
  const ResultType to = call.has(2) ? ResultType(call[2].dtype(), call.value(2).emulated())
                                    : ResultType(call.dtype("output_dtype").value_or(DType::U8),
                                                 call.type("output_dtype"));
  const DType of_scale = is_float(scale.dtype()) ? scale.dtype() : DType::F32;
  const DType precision = call.dtype("precision").value_or(of_scale);
  return {Value(quantised(x.cast(precision), scale.cast(precision), zero, to,
                          call.integer("saturate", 1) != 0))
              .as(to.type)};
}

Values dequantize_linear(Call& call) {
  require_zero_of_scale(call);
  const Tensor x = call[0], scale = along_axis(call, call[1], x);
  const DType to = call.dtype("output_dtype").value_or(call[1].dtype());
  Tensor wide = is_float(x.dtype()) ? x.cast(DType::F32) : x.cast(DType::I32);
  if (call.has(2)) wide = wide - along_axis(call, call[2], x).cast(wide.dtype());
  return {(wide.cast(DType::F32) * scale.cast(DType::F32)).cast(to)};
}

// The range of x with 0 inside, in 256 steps. That of zeros is 1, as in onnx.reference; the
// specification divides by 0.
struct Quantised {
  Tensor x, scale, zero;
};
Quantised dynamically_quantised(const Tensor& x) {
  const Tensor high = x.max().maximum(0), low = x.min().minimum(0);
  const Tensor range = high - low;
  const Tensor scale = (range == 0).where(Tensor(1).cast(DType::F32), range) / 255;
  const Tensor zero = quantised(-low, scale, {}, DType::U8);
  return {quantised(x, scale, zero, DType::U8), scale, zero};
}
Values dynamic_quantize_linear(Call& call) {
  const Quantised result = dynamically_quantised(call[0]);
  return {result.x, result.scale, result.zero};
}

// A zero point, undefined if it is left out or known to be 0.
Tensor zero_point(Call& call, size_t input) {
  if (!call.has(input)) return {};
  const tensor::HostValues* known = call.value(input).known();
  if (known && std::ranges::all_of(known->bits, [](uint64_t bits) { return bits == 0; })) return {};
  return call.parameter(input);
}

// The largest magnitude of an element of integers minus its zero point, as far as it is known.
int64_t most_of(Call& call, size_t x, size_t zero) {
  const IntegerRange range = range_of(DataType::Undefined, call[x].dtype());
  double low = range.low, high = range.high;  // of the zero point
  if (!call.has(zero)) {
    low = high = 0;
  } else if (const tensor::HostValues* known = call.value(zero).known();
             known && !known->bits.empty()) {
    const auto [least, most] = std::ranges::minmax(as_numbers(*known));
    low = least;
    high = most;
  }
  return static_cast<int64_t>(std::max(range.high - low, high - range.low));
}

// The dtype in which sums of products are computed: f32 is quicker than i32, and holds integers up to
// 2^24 exactly. Those of floats of 8 bits are of f32.
struct Factor {
  size_t x, zero;  // inputs
};
constexpr int64_t kUnbounded = int64_t{1} << 62;
struct SumRange {
  DType dtype;
  int64_t most;
};
SumRange product_of(Call& call, const Factor& left, const Factor& right, int64_t terms) {
  if (is_float(call[left.x].dtype())) return {DType::F32, kUnbounded};
  const auto is_byte = [&](const Factor& f) { return size_of(call[f.x].dtype()) == 1; };
  if (!is_byte(left) || !is_byte(right)) return {DType::I32, kUnbounded};
  const int64_t most =
      most_of(call, left.x, left.zero) * most_of(call, right.x, right.zero) * terms;
  return {most <= kMostExact ? DType::F32 : DType::I32, most};
}

// x minus its zero point, which is one number or one each row (`is_left`) or column.
Tensor centred(const Tensor& x, const Tensor& zero, bool is_left, DType dtype) {
  const Tensor wide = x.cast(dtype);
  if (!zero.defined()) return wide;
  Tensor offset = zero.cast(wide.dtype());
  if (offset.numel() == 1)
    offset = offset.reshape({});
  else if (is_left && offset.ndim() == 1)
    offset = offset.unsqueeze(-1);
  const Tensor result = wide - offset;
  require(result.shape() == wide.shape(), "a zero point of shape {} cannot be broadcast to {}",
          to_string(zero.shape()), to_string(wide.shape()));
  return result;
}

Sums matrix_product(Call& call, const Factor& left, const Factor& right, const Tensor& x,
                    const Tensor& w) {
  const auto [dtype, most] = product_of(call, left, right, x.size(-1));
  const Tensor centred_x = centred(x, zero_point(call, left.zero), true, dtype);
  return {centred_x.matmul(centred(w, zero_point(call, right.zero), false, dtype), dtype), most};
}
Sums matrix_product(Call& call, const Factor& left, const Factor& right) {
  return matrix_product(call, left, right, call[left.x], call[right.x]);
}

Values mat_mul_integer(Call& call) {
  const Tensor sums = matrix_product(call, {0, 2}, {1, 3}).of;
  return {is_float(call[0].dtype()) ? sums : sums.cast(DType::I32)};
}

Tensor column_scale(const Tensor& scale) {
  return scale.numel() == 1 ? scale.reshape({}) : scale;
}
// com.microsoft: the product of quantised matrices as floats, with the scales of both.
Values mat_mul_integer_to_float(Call& call) {
  const Tensor product = matrix_product(call, {0, 4}, {1, 5}).of;
  const Tensor scale = on_host(column_scale(call.parameter(2)) * column_scale(call.parameter(3)));
  const Tensor result = product.cast(DType::F32) * scale;
  return {(call.has(6) ? result + call[6] : result).cast(call[2].dtype())};
}
Values dynamic_quantize_mat_mul(Call& call) {
  const Tensor product = dynamic_product(call[0], call[1], call[2], call.optional(3));
  return {call.has(4) ? product + call[4] : product};
}

Values q_linear_mat_mul(Call& call) {
  const Sums sums = matrix_product(call, {0, 2}, {3, 5});
  const auto of_rows = [](const Tensor& scale) {
    return scale.numel() == 1 ? scale.reshape({}) : scale.ndim() == 1 ? scale.unsqueeze(-1) : scale;
  };
  const Tensor scale =
      on_host(of_rows(call.parameter(1)).cast(DType::F32) * call.parameter(4).cast(DType::F32) /
              call.parameter(6).cast(DType::F32));
  const ResultType to(call[7].dtype(), call.value(7).emulated());
  if (!is_float(to.dtype)) return {requantised(sums, scale, call.parameter(7), to.dtype)};
  const Tensor one = Tensor(1).cast(DType::F32);
  return {Value(quantised(sums.of * scale, one, call[7], to)).as(to.type)};
}

Tensor of_output_channels(const Tensor& parameter, const Tensor& x, size_t axis) {
  if (parameter.numel() == 1) return parameter.reshape({});
  Shape shape(static_cast<size_t>(x.ndim()), 1);
  shape[axis] = parameter.numel();
  require(shape[axis] == x.shape()[axis],
          "a scale, zero point or bias has {} elements for {} output channels", shape[axis],
          x.shape()[axis]);
  return parameter.reshape(shape);
}

// The padding of x, which is input `x.x` with the channels first, stands for its zero point, which is
// 0 once x is centred.
Sums integer_conv(Call& call, const Tensor& image, const Factor& x, const Factor& weight) {
  const Tensor w = call[weight.x], x_zero = zero_point(call, x.zero),
               w_zero = zero_point(call, weight.zero);
  const Shape of_weight = w.shape();
  const auto [dtype, most] =
      product_of(call, x, weight, element_count(std::span(of_weight).subspan(1)));
  Tensor left = image.cast(dtype), right = w.cast(dtype);
  if (x_zero.defined()) left = left - x_zero.cast(dtype).reshape({});
  if (w_zero.defined()) right = right - of_output_channels(w_zero.cast(dtype), w, 0);
  const Window window = window_of(call, image, kernel_of_weight(call, w));
  const ConvOptions options{.stride = window.strides,
                            .padding = window.pads,
                            .dilation = window.dilations,
                            .groups = call.integer("group", 1)};
  return {conv(left, right, {}, options), most};
}

Values conv_integer(Call& call) {
  return {integer_conv(call, call[0], {0, 2}, {1, 3}).of.cast(DType::I32)};
}

// The sums plus the bias `shaped`, of i32, which is an input.
Sums with_bias(Call& call, const Sums& sums, size_t input, const Tensor& shaped) {
  int64_t most = int64_t{1} << 31;
  if (const tensor::HostValues* known = call.value(input).known()) {
    most = 0;
    for (const double each : as_numbers(*known))
      most = std::max(most, static_cast<int64_t>(std::abs(each)));
  }
  most += sums.most;
  const DType dtype = most <= kMostExact ? sums.of.dtype() : DType::I32;
  return {sums.of.cast(dtype) + on_host(shaped.cast(dtype)), most};
}

// Of com.microsoft the channels may be the last axis.
bool are_channels_last(Call& call) {
  return call.integer("channels_last", 0) != 0;
}
Values q_linear_conv(Call& call) {
  const Tensor x = are_channels_last(call) ? channels_first(call[0]) : call[0];
  Sums sums = integer_conv(call, x, {0, 2}, {3, 5});
  if (call.has(8))
    sums = with_bias(call, sums, 8, of_output_channels(call.parameter(8), sums.of, 1));
  const Tensor scale = call.parameter(1).reshape({}) *
                       of_output_channels(call.parameter(4), sums.of, 1) /
                       call.parameter(6).reshape({});
  const Tensor zero = call.parameter(7).reshape({});
  const Tensor result = requantised(sums, on_host(scale), zero, zero.dtype());
  return {are_channels_last(call) ? channels_last(result) : result};
}

// com.microsoft: Gemm of quantised matrices, whose bias has the scale of the product. The result is
// quantised if its zero point is given.
Values q_gemm(Call& call) {
  const auto matrix = [&](size_t input, std::string_view is_transposed) {
    return call.integer(is_transposed, 0) != 0 ? call[input].transpose() : call[input];
  };
  const Tensor left = matrix(0, "transA"), right = matrix(3, "transB");
  Sums sums = matrix_product(call, {0, 2}, {3, 5}, left, right);
  if (call.has(6)) sums = with_bias(call, sums, 6, call.parameter(6));
  const Tensor scale = on_host(column_scale(call.parameter(1)) * column_scale(call.parameter(4)) *
                               call.number("alpha", 1));
  if (!call.has(8)) return {sums.of.cast(DType::F32) * scale};
  const Tensor zero = call.parameter(8).reshape({});
  return {requantised(sums, on_host(scale / call.parameter(7).reshape({})), zero, zero.dtype())};
}

// com.microsoft: an elementwise function of dequantised operands, quantised again.
Tensor dequantised(Call& call, size_t first) {
  Tensor wide = call[first].cast(DType::I32);
  if (call.has(first + 2)) wide = wide - call[first + 2].cast(DType::I32).reshape({});
  return wide.cast(DType::F32) * call[first + 1].reshape({});
}
Values quantised_again(Call& call, const Tensor& x, size_t scale) {
  const DType to = call.has(scale + 1) ? call[scale + 1].dtype() : call[0].dtype();
  return {quantised(x, call[scale].reshape({}), call.optional(scale + 1), to)};
}
// An element of a scale or, if it is left out, of a zero point.
Tensor one_number(Call& call, size_t input) {
  return call.has(input) ? call.parameter(input).reshape({}).cast(DType::F32)
                         : Tensor(0).cast(DType::F32);
}
// Elements in units of the result, rounded with its zero point. Sums and products of quantised
// numbers often are halves: scales that are divided first, as in ONNX Runtime, round them alike.
Values quantised_steps(Call& call, const Tensor& steps) {
  const DType to = call.has(7) ? call[7].dtype() : call[0].dtype();
  return {quantised(steps, Tensor(1).cast(DType::F32), Tensor(), to)};
}
Values q_linear_add(Call& call) {
  const Tensor scale = one_number(call, 6);
  const Tensor left = one_number(call, 1) / scale, right = one_number(call, 4) / scale;
  const Tensor offset =
      one_number(call, 7) - (left * one_number(call, 2) + right * one_number(call, 5));
  return quantised_steps(call, call[0].cast(DType::F32) * on_host(left) +
                                   (call[3].cast(DType::F32) * on_host(right) + on_host(offset)));
}
Values q_linear_mul(Call& call) {
  const Tensor left = call[0].cast(DType::F32) - one_number(call, 2),
               right = call[3].cast(DType::F32) - one_number(call, 5),
               scale = one_number(call, 1) * one_number(call, 4) / one_number(call, 6);
  return quantised_steps(call, left * right * on_host(scale) + one_number(call, 7));
}
Values q_linear_sigmoid(Call& call) {
  return quantised_again(call, dequantised(call, 0).sigmoid(), 3);
}
Values q_linear_leaky_relu(Call& call) {
  return quantised_again(call, dequantised(call, 0).leaky_relu(call.number("alpha", 0.01)), 3);
}
// Of an older operator set: the axes from `axis` on are one.
Values q_linear_softmax(Call& call) {
  const Tensor x = dequantised(call, 0);
  if (call.integer("opset", 13) >= 13)
    return quantised_again(call, x.softmax(call.integer("axis", -1)), 3);
  const Tensor rows = x.flatten(call.integer("axis", 1), -1);
  return quantised_again(call, rows.softmax(-1).reshape(x.shape()), 3);
}
Values q_linear_average_pool(Call& call) {
  const Tensor x = dequantised(call, 0);
  return quantised_again(call,
                         are_channels_last(call)
                             ? channels_last(average_pooled(call, channels_first(x)))
                             : average_pooled(call, x),
                         3);
}
Values q_linear_global_average_pool(Call& call) {
  const Tensor x = dequantised(call, 0);
  const int64_t behind = are_channels_last(call) ? 1 : 0;
  std::vector<int64_t> axes;
  for (int64_t i = 2 - behind; i < x.ndim() - behind; ++i) axes.push_back(i);
  return quantised_again(call, x.mean(axes, true), 3);
}
Values q_linear_concat(Call& call) {
  std::vector<Tensor> parts;
  for (size_t i = 2; i + 2 < call.input_count() + 1; i += 3) {
    Tensor wide = call[i].cast(DType::I32) - call[i + 2].cast(DType::I32).reshape({});
    parts.push_back(wide.cast(DType::F32) * call[i + 1].reshape({}));
  }
  return {quantised(cat(parts, call.integer("axis", 0)), call[0].reshape({}), call[1].reshape({}),
                    call[1].dtype())};
}

constexpr OperatorRow kQuantisedRows[] = {
    {"ConvInteger", conv_integer, kVariableSizes},
    {"DequantizeLinear", dequantize_linear, kVariableSizes},
    {"DequantizeLinear", dequantize_linear, kVariableSizes, kMicrosoft},
    {"DynamicQuantizeLinear", dynamic_quantize_linear, kVariableSizes},
    {"DynamicQuantizeMatMul", dynamic_quantize_mat_mul, kVariableSizes, kMicrosoft},
    {"MatMulInteger", mat_mul_integer, kVariableSizes},
    {"MatMulIntegerToFloat", mat_mul_integer_to_float, kVariableSizes, kMicrosoft},
    {"QGemm", q_gemm, false, kMicrosoft},
    {"QLinearAdd", q_linear_add, kVariableSizes, kMicrosoft},
    {"QLinearAveragePool", q_linear_average_pool, false, kMicrosoft},
    {"QLinearConcat", q_linear_concat, kVariableSizes, kMicrosoft},
    {"QLinearConv", q_linear_conv, kVariableSizes},
    {"QLinearConv", q_linear_conv, kVariableSizes, kMicrosoft},
    {"QLinearGlobalAveragePool", q_linear_global_average_pool, kVariableSizes, kMicrosoft},
    {"QLinearLeakyRelu", q_linear_leaky_relu, kVariableSizes, kMicrosoft},
    {"QLinearMatMul", q_linear_mat_mul, kVariableSizes},
    {"QLinearMul", q_linear_mul, kVariableSizes, kMicrosoft},
    {"QLinearSigmoid", q_linear_sigmoid, kVariableSizes, kMicrosoft},
    {"QLinearSoftmax", q_linear_softmax, false, kMicrosoft},
    {"QuantizeLinear", quantize_linear, kVariableSizes},
    {"QuantizeLinear", quantize_linear, kVariableSizes, kMicrosoft},
};

}  // namespace

Tensor dynamic_product(const Tensor& x, const Tensor& weights, const Tensor& scale,
                       const Tensor& zero) {
  const Quantised left = dynamically_quantised(x);
  constexpr int64_t kMost = 255 * 255;  // of a product; f32 holds integers up to 2^24
  const bool is_exact = size_of(weights.dtype()) == 1 && kMost * x.size(-1) <= int64_t{1} << 24;
  const DType dtype = is_exact ? DType::F32 : DType::I32;
  const Tensor product =
      centred(left.x, left.zero, true, dtype).matmul(centred(weights, zero, false, dtype), dtype);
  return product.cast(DType::F32) * (left.scale * column_scale(scale));
}

std::span<const OperatorRow> quantised_operators() {
  return kQuantisedRows;
}

}  // namespace plugrad::onnx

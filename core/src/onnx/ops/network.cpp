// Products, convolutions and normalisation.
#include <algorithm>
#include <cmath>

#include "base/binding.h"
#include "base/check.h"
#include "onnx/ops/activation.h"
#include "onnx/ops/random.h"
#include "onnx/ops/tables.h"
#include "onnx/ops/windows.h"
#include "plugrad/functional.h"
#include "plugrad/linalg.h"

namespace plugrad::onnx {
namespace {

Values mat_mul(Call& call) {
  return {call[0].matmul(call[1])};
}

Tensor times_factor(const Tensor& x, double factor) {
  if (factor == 1) return x;
  if (is_float(x.dtype())) return x * factor;
  if (std::trunc(factor) == factor && std::abs(factor) < 0x1p63)
    return x * static_cast<int64_t>(factor);
  return (x.cast(DType::F64) * factor).cast(x.dtype());
}

Tensor general_product(Call& call) {
  Tensor a = call[0], b = call[1];
  if (call.integer("transA", 0) != 0) a = a.transpose();
  if (call.integer("transB", 0) != 0) b = b.transpose();
  const Tensor product = times_factor(a.matmul(b), call.number("alpha", 1));
  if (!call.has(2)) return product;
  call.require_broadcasts_to(product, 2, "C");
  return product + times_factor(call[2], call.number("beta", 1));
}
Values gemm(Call& call) {
  return {general_product(call)};
}

Values fused_gemm(Call& call) {
  const std::string_view name = call.text("activation", "");
  const Activation activation =
      activation_of(call, name, parameter_of(call, "activation_alpha"),
                    parameter_of(call, name == "Selu" ? "activation_gamma" : "activation_beta"));
  return {activation(general_product(call))};
}

Values einsum_(Call& call) {
  std::vector<Tensor> operands;
  for (size_t i = 0; i < call.input_count(); ++i) operands.push_back(call[i]);
  return {einsum(call.text("equation", ""), operands)};
}

constexpr int64_t kMostRows = 4096;  // each is recorded by itself

Values det(Call& call) {
  // Elimination with the largest pivot of each column, one column at a time.
  Tensor x = call[0];
  if (x.ndim() < 2 || x.size(-2) != x.size(-1) || x.size(-1) > kMostRows)
    call.wrong(fmt::format("the shape {} is not that of square matrices of up to {} rows",
                           to_string(x.shape()), kMostRows));
  const int64_t n = x.size(-1);
  Shape batch = x.shape();
  batch.resize(batch.size() - 2);
  Tensor result = Tensor::ones(batch, x.dtype());
  for (int64_t k = 0; k < n; ++k) {
    poll_interruption();
    const Tensor column = x.slice(-1, {0, 1}).squeeze(-1);
    const Tensor pivot_row = column.abs().argmax(-1, true);
    const int64_t rows = x.size(-2);
    const Tensor is_pivot = Tensor::arange(rows, pivot_row.dtype()) == pivot_row;
    const Tensor pivot = (x * is_pivot.unsqueeze(-1)).sum(-2);
    const Tensor value = pivot.slice(-1, {0, 1}).squeeze(-1);
    result = result * value * (1 - 2 * (pivot_row.squeeze(-1) != 0).cast(x.dtype()));
    if (rows == 1) break;
    // The pivot's row swaps places with the first one, which then leaves.
    const Tensor first = x.slice(-2, {0, 1});
    x = is_pivot.unsqueeze(-1).where(first, x).slice(-2, {1, std::nullopt});
    const Tensor safe = (value == 0).where(Tensor(1).cast(x.dtype()), value);
    const Tensor factor = x.slice(-1, {0, 1}) / safe.unsqueeze(-1).unsqueeze(-1);
    x = (x - factor * pivot.unsqueeze(-2)).slice(-1, {1, std::nullopt});
  }
  return {result};
}

Tensor convolution(Call& call) {
  const Tensor x = call[0], weight = call[1];
  const Window w = window_of(call, x, kernel_of_weight(call, weight));
  return conv(x, weight, call.optional(2),
              {.stride = w.strides,
               .padding = w.pads,
               .dilation = w.dilations,
               .groups = call.integer("group", 1)});
}
Values conv_(Call& call) {
  return {convolution(call)};
}
Values fused_conv(Call& call) {
  Tensor result = convolution(call);
  if (call.has(3)) {
    call.require_shape(3, "the sum", result.shape());
    result = result + call[3];
  }
  return {activated(call, result)};
}

Values conv_transpose_(Call& call) {
  const Tensor x = call[0], weight = call[1];
  const Integers kernel = kernel_of_weight(call, weight);
  const size_t axes = kernel.size();
  const Integers strides = call.integers("strides", Integers(axes, 1));
  const Integers dilations = call.integers("dilations", Integers(axes, 1));
  Integers output_padding = call.integers("output_padding", Integers(axes, 0));
  const Integers pads = call.integers("pads", Integers(2 * axes, 0));
  const Integers wanted = call.integers("output_shape");
  const std::string_view automatic = call.text("auto_pad", "NOTSET");
  require_axes(call, x, axes, {strides, dilations, output_padding});
  if (pads.size() != 2 * axes || (!wanted.empty() && wanted.size() < axes))
    call.wrong("pads or output_shape do not have numbers for each axis of the kernel");
  Padding::Sides sides;
  for (size_t i = 0; i < axes; ++i) {
    const int64_t size = x.size(static_cast<int64_t>(2 + i));
    const int64_t whole =
        (size - 1) * strides[i] + output_padding[i] + (kernel[i] - 1) * dilations[i] + 1;
    if (wanted.empty() && (automatic == "NOTSET" || automatic == "VALID")) {
      sides.emplace_back(automatic == "VALID" ? 0 : pads[i],
                         automatic == "VALID" ? 0 : pads[axes + i]);
      continue;
    }
    const int64_t target = wanted.empty() ? size * strides[i] : wanted[wanted.size() - axes + i];
    call.require_fixed(x, static_cast<int64_t>(2 + i));
    const int64_t total = whole - target, less = total / 2;
    if (total < 0) {  // the result is longer than the windows reach
      output_padding[i] += -total;
      sides.emplace_back(0, 0);
    } else if (automatic == "SAME_UPPER") {
      sides.emplace_back(less, total - less);
    } else {
      sides.emplace_back(total - less, less);
    }
  }
  return {conv_transpose(x, weight, call.optional(2),
                         {.stride = strides,
                          .padding = sides,
                          .output_padding = output_padding,
                          .dilation = dilations,
                          .groups = call.integer("group", 1)})};
}

Tensor of_channels(const Tensor& weight, int64_t rank) {
  Shape shape(static_cast<size_t>(rank), 1);
  shape[1] = weight.numel();
  return weight.reshape(shape);
}

// Errors: User if an input has not one element for each channel of x.
void require_channels(Call& call, const Tensor& x, std::initializer_list<const char*> roles) {
  if (x.ndim() < 2)
    call.wrong(fmt::format("X has the shape {}, without channels", to_string(x.shape())));
  size_t input = 1;
  for (const char* role : roles) call.require_shape(input++, role, {x.size(1)});
}

Values batch_normalization(Call& call) {
  const Tensor x = call[0];
  require_channels(call, x, {"scale", "B", "input_mean", "input_var"});
  const double eps = call.number("epsilon", 1e-5);
  const Tensor scale = of_channels(call[1], x.ndim()), bias = of_channels(call[2], x.ndim());
  Tensor mean = call[3], variance = call.parameter(4);
  const bool trains = call.opset() >= 14 ? call.integer("training_mode", 0) != 0
                                         : call.opset() < 7 && call.integer("is_test", 0) == 0 &&
                                               call.output_count() > 1;
  Values running;
  if (trains) {
    Integers axes{0};
    for (int64_t i = 2; i < x.ndim(); ++i) axes.push_back(i);
    const double kept = call.number("momentum", 0.9);
    const Tensor now = x.mean(axes), spread = x.var(axes, false, 0);
    running = {mean * kept + now * (1 - kept), variance * kept + spread * (1 - kept)};
    mean = now;
    variance = spread;
  }
  const Tensor wide_mean = of_channels(mean, x.ndim()),
               inverse = of_channels(on_host((variance + eps).rsqrt()), x.ndim());
  Values results{((x - wide_mean) * inverse * scale + bias).cast(x.dtype())};
  results.insert(results.end(), running.begin(), running.end());
  return results;
}

Values instance_normalization(Call& call) {
  const Tensor x = call[0];
  require_channels(call, x, {"scale", "B"});
  const Axes axes = spatial_axes(x);
  const auto [variance, mean] = x.var_mean(axes, true, 0);
  return {(x - mean) * (variance + call.number("epsilon", 1e-5)).rsqrt() *
              of_channels(call[1], x.ndim()) +
          of_channels(call[2], x.ndim())};
}

// The attribute `axis` and all axes behind it.
Integers normalised_axes(Call& call, const Tensor& x) {
  Integers axes;
  for (int64_t i = call.axis_of(x, -1); i < x.ndim(); ++i) axes.push_back(i);
  return axes;
}

Values layer_normalization(Call& call) {
  const Tensor x = call[0];
  const Integers axes = normalised_axes(call, x);
  const Tensor wide = size_of(x.dtype()) < 4 ? x.cast(DType::F32) : x;
  const auto [variance, mean] = wide.var_mean(axes, true, 0);
  const Tensor inverse = (variance + call.number("epsilon", 1e-5)).rsqrt();
  call.require_broadcasts_to(x, 1, "Scale");
  Tensor result = ((wide - mean) * inverse).cast(x.dtype()) * call[1];
  if (call.has(2)) {
    call.require_broadcasts_to(x, 2, "B");
    result = result + call[2];
  }
  return {result, mean, inverse};
}

Values rms_normalization(Call& call) {
  const Tensor x = call[0];
  const Integers axes = normalised_axes(call, x);
  const Tensor wide = size_of(x.dtype()) < 4 ? x.cast(DType::F32) : x;
  const Tensor inverse = (wide.square().mean(axes, true) + call.number("epsilon", 1e-5)).rsqrt();
  call.require_broadcasts_to(x, 1, "scale");
  return {(wide * inverse).cast(x.dtype()) * call[1]};
}

Values group_normalization(Call& call) {
  const Tensor x = call[0];
  const int64_t groups = call.integer("num_groups", 1), channels = x.size(1);
  if (groups < 1 || channels % groups != 0)
    call.wrong(fmt::format("{} channels are not divided into {} groups", channels, groups));
  // Before operator set 21 the weights are of groups.
  const bool are_of_groups = call.opset() < 21 && call[1].shape() == Shape{groups};
  for (const size_t input : {1, 2})
    call.require_shape(input, input == 1 ? "scale" : "bias", {are_of_groups ? groups : channels});
  const Tensor grouped = x.reshape({x.size(0), groups, -1});
  const auto [variance, mean] = grouped.var_mean(2, true, 0);
  const Tensor normal =
      ((grouped - mean) * (variance + call.number("epsilon", 1e-5)).rsqrt()).reshape(x.shape());
  const auto each_channel = [&](const Tensor& weight) {
    return of_channels(are_of_groups ? weight.repeat_interleave(channels / groups) : weight,
                       x.ndim());
  };
  return {normal * each_channel(call[1]) + each_channel(call[2])};
}

Values lp_normalization(Call& call) {
  const Tensor x = call[0];
  const Axes axis = call.integer("axis", -1);
  const Tensor norm =
      call.integer("p", 2) == 1 ? x.abs().sum(axis, true) : x.square().sum(axis, true).sqrt();
  return {(norm == 0).where(x.zeros_like(), x / norm)};
}

Values mean_variance_normalization(Call& call) {
  const Tensor x = call[0];
  const Axes axes = call.integers("axes", {0, 2, 3});
  const Tensor mean = x.mean(axes, true);
  const Tensor variance = (x * x).mean(axes, true) - mean * mean;
  return {(x - mean) / (variance.sqrt() + 1e-9)};
}

// Of each channel the squares of its neighbours: floor((size - 1) / 2) before, the rest after.
Values lrn(Call& call) {
  const Tensor x = call[0];
  if (x.ndim() < 2)
    call.wrong(fmt::format("X has the shape {}, without channels", to_string(x.shape())));
  const int64_t size = call.integer("size", 1);
  std::vector<Pads::Pair> pads(static_cast<size_t>(x.ndim()));
  pads[1] = {(size - 1) / 2, size / 2};
  const Tensor sums = x.square().pad(pads).unfold(1, size, 1).sum(-1);
  const double alpha = call.number("alpha", 1e-4) / static_cast<double>(size);
  return {x / (sums * alpha + call.number("bias", 1.0)).pow(call.number("beta", 0.75))};
}

// Nothing is dropped unless the third input says so.
Values dropout(Call& call) {
  const Tensor x = call[0];
  const bool trains = call.opset() >= 12 ? call.has(2) && call.host(2).bits.at(0) != 0 : false;
  const double ratio = call.opset() >= 12 ? (call.has(1) ? call.numbers_input(1).at(0) : 0.5)
                                          : call.number("ratio", 0.5);
  if (!trains || ratio == 0)
    return {call.value(0), call.with_sizes_of(x.ones_like(DType::Bool), x)};
  if (!(ratio > 0 && ratio < 1))
    call.wrong(fmt::format("ratio is {}, not from 0 to below 1", ratio));
  call.require_fixed(x);
  const Tensor kept = uniform_numbers(call, x.shape(), DType::F32) >= ratio;
  return {kept.where(x / (1 - ratio), x.zeros_like()), kept};
}

constexpr OperatorRow kNetworkRows[] = {
    {"BatchNormalization", batch_normalization, kVariableSizes},
    {"Conv", conv_, kVariableSizes},
    {"Conv", fused_conv, kVariableSizes, kBlockedChannels},
    {"ConvTranspose", conv_transpose_, kVariableSizes},
    {"Det", det},
    {"Dropout", dropout, kVariableSizes, "", true},
    {"Einsum", einsum_, kVariableSizes},
    {"FusedConv", fused_conv, kVariableSizes, kMicrosoft},
    {"FusedGemm", fused_gemm, kVariableSizes, kMicrosoft},
    {"Gemm", gemm, kVariableSizes},
    {"GroupNormalization", group_normalization, kVariableSizes},
    {"InstanceNormalization", instance_normalization, kVariableSizes},
    {"LRN", lrn, kVariableSizes},
    {"LayerNormalization", layer_normalization, kVariableSizes},
    {"LpNormalization", lp_normalization, kVariableSizes},
    {"MatMul", mat_mul, kVariableSizes},
    {"MeanVarianceNormalization", mean_variance_normalization, kVariableSizes},
    {"RMSNormalization", rms_normalization, kVariableSizes},
};

}  // namespace

std::span<const OperatorRow> network_operators() {
  return kNetworkRows;
}

}  // namespace plugrad::onnx

// Reductions, scans, and orders of elements.
#include "base/check.h"
#include "onnx/ops/tables.h"
#include "tensor/index/index.h"
#include "tensor/record.h"
#include "tensor/sizes/size_arithmetic.h"

namespace plugrad::onnx {
namespace {

struct ReduceArguments {
  Tensor x;
  Axes axes;
  bool keepdim;
};

// The axes moved from an attribute to an input: of ReduceSum in operator set 13, of the others in
// 18. Without axes all are reduced, or none if the node says so.
ReduceArguments reduce_arguments(Call& call, int64_t since) {
  ReduceArguments r{call[0], {}, call.integer("keepdims", 1) != 0};
  std::optional<std::vector<int64_t>> axes;
  if (call.opset() < since && call.attribute("axes"))
    axes = call.integers("axes");
  else if (call.opset() >= since && call.has(1))
    axes = call.integers(1);
  if (axes && !axes->empty())
    r.axes = Axes(*axes);
  else if (call.integer("noop_with_empty_axes", 0) != 0)
    r.axes = Axes::none();
  return r;
}

constexpr int64_t kAxesAreInputs = 18;

Values sum(Call& call) {
  const ReduceArguments r = reduce_arguments(call, 13);
  return {r.x.sum(r.axes, r.keepdim, r.x.dtype())};
}
Values prod(Call& call) {
  const ReduceArguments r = reduce_arguments(call, kAxesAreInputs);
  return {r.x.prod(r.axes, r.keepdim, r.x.dtype())};
}
// Of integers: their sum by their number, rounded towards zero.
Values mean(Call& call) {
  const ReduceArguments r = reduce_arguments(call, kAxesAreInputs);
  if (is_float(r.x.dtype())) return {r.x.mean(r.axes, r.keepdim)};
  const Tensor sum = r.x.sum(r.axes, r.keepdim);
  const Tensor count = tensor::count_along(
      "mean", r.x, tensor::checked_axes("mean", r.axes, r.x.ndim()), sum.dtype());
  return {sum.trunc_div(count).cast(r.x.dtype())};
}
Values max(Call& call) {
  const ReduceArguments r = reduce_arguments(call, kAxesAreInputs);
  return {r.x.max(r.axes, r.keepdim)};
}
Values min(Call& call) {
  const ReduceArguments r = reduce_arguments(call, kAxesAreInputs);
  return {r.x.min(r.axes, r.keepdim)};
}
Values l1(Call& call) {
  const ReduceArguments r = reduce_arguments(call, kAxesAreInputs);
  return {r.x.abs().sum(r.axes, r.keepdim, r.x.dtype())};
}
Values l2(Call& call) {
  const ReduceArguments r = reduce_arguments(call, kAxesAreInputs);
  const Tensor x = is_float(r.x.dtype()) ? r.x : r.x.cast(DType::F64);
  return {x.square().sum(r.axes, r.keepdim).sqrt().cast(r.x.dtype())};
}
Values sum_square(Call& call) {
  const ReduceArguments r = reduce_arguments(call, kAxesAreInputs);
  return {r.x.square().sum(r.axes, r.keepdim, r.x.dtype())};
}
Values log_sum(Call& call) {
  const ReduceArguments r = reduce_arguments(call, kAxesAreInputs);
  return {r.x.sum(r.axes, r.keepdim).log().cast(r.x.dtype())};
}
Values log_sum_exp(Call& call) {
  const ReduceArguments r = reduce_arguments(call, kAxesAreInputs);
  return {r.x.logsumexp(r.axes, r.keepdim).cast(r.x.dtype())};
}

// The last of equal elements is the first of the reversed axis.
Tensor place_of_extreme(Call& call, bool of_maximum) {
  Tensor x = call[0];
  const int64_t axis = call.axis_of(x, 0);
  const bool keepdim = call.integer("keepdims", 1) != 0;
  const bool is_last = call.integer("select_last_index", 0) != 0;
  if (is_last) call.require_fixed(x, axis);
  if (is_last) x = x.flip(axis);
  Tensor place = of_maximum ? x.argmax(axis, keepdim) : x.argmin(axis, keepdim);
  if (is_last) place = x.size(axis) - 1 - place;
  return place.cast(DType::I64);
}
Values arg_max(Call& call) {
  return {place_of_extreme(call, true)};
}
Values arg_min(Call& call) {
  return {place_of_extreme(call, false)};
}

// A scan from the end is that of the reversed axis; an exclusive one begins with `first`.
template <Tensor (Tensor::*scan)(int64_t, std::optional<DType>) const>
Values scanned(Call& call, int64_t first) {
  Tensor x = call[0];
  const int64_t axis = call.axis(call.integer_input(1), x.ndim());
  const bool reversed = call.integer("reverse", 0) != 0;
  if (reversed) x = x.flip(axis);
  if (call.integer("exclusive", 0) != 0) {
    call.require_fixed(x, axis);
    std::vector<Pads::Pair> pairs(static_cast<size_t>(x.ndim()));
    pairs[static_cast<size_t>(axis)] = {1, -1};
    x = x.pad(pairs, first);
  }
  const Tensor result = call.with_sizes_of((x.*scan)(axis, x.dtype()), x);
  return {reversed ? result.flip(axis) : result};
}
Values cum_sum(Call& call) {
  return scanned<&Tensor::cumsum>(call, 0);
}
Values cum_prod(Call& call) {
  return scanned<&Tensor::cumprod>(call, 1);
}

// The first elements of the sorted axis, where their number or that of the axis varies.
Values variable_top_k(Call& call, const tensor::SizeValue& k) {
  const Tensor& x = call[0];
  const int64_t axis = call.axis_of(x, -1);
  if (k.most > x.size(axis)) call.needs_exact_sizes("it may take more elements than there are");
  const auto [values, places] = x.sort(axis, call.integer("largest", 1) != 0);
  const auto first = [&](const Tensor& sorted) {
    const Tensor part = tensor::select(sorted, axis, Tensor::arange(k.most).cast(DType::I32));
    return k.varies() ? call.recording().sizes->limited(part, axis, k)
                      : call.with_fixed_size(part, axis);
  };
  return {first(values), first(places.cast(DType::I64))};
}

Values top_k(Call& call) {
  if (call.opset() >= 10 && call.recording().sizes && !call.value(1).known())
    if (const auto k = call.recording().sizes->elements(call[1]); k && k->size() == 1)
      return variable_top_k(call, k->front());
  const int64_t k = call.opset() < 10 ? call.integer("k", 1) : call.integer_input(1);
  auto [values, places] =
      call[0].topk(k, call.integer("axis", -1), call.integer("largest", 1) != 0, true);
  return {values, places.cast(DType::I64)};
}

constexpr OperatorRow kReductionRows[] = {
    {"ArgMax", arg_max, kVariableSizes},       {"ArgMin", arg_min, kVariableSizes},
    {"CumProd", cum_prod, kVariableSizes},     {"CumSum", cum_sum, kVariableSizes},
    {"ReduceL1", l1, kVariableSizes},          {"ReduceL2", l2, kVariableSizes},
    {"ReduceLogSum", log_sum, kVariableSizes}, {"ReduceLogSumExp", log_sum_exp, kVariableSizes},
    {"ReduceMax", max, kVariableSizes},        {"ReduceMean", mean, kVariableSizes},
    {"ReduceMin", min, kVariableSizes},        {"ReduceProd", prod, kVariableSizes},
    {"ReduceSum", sum, kVariableSizes},        {"ReduceSumSquare", sum_square, kVariableSizes},
    {"TopK", top_k, kVariableSizes},
};

}  // namespace

std::span<const OperatorRow> reduction_operators() {
  return kReductionRows;
}

}  // namespace plugrad::onnx

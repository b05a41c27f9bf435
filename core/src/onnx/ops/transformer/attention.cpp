// Attention and the operators beside it.
#include "onnx/ops/transformer/attention.h"

#include <cmath>

#include "base/check.h"
#include "onnx/ops/tables.h"
#include "plugrad/functional.h"

namespace plugrad::onnx {

namespace {

// Of the last axis. Rows without any finite score give 0. `sink`: a further score of each head.
// Source: Xiao et al. 2023.
Tensor softmax_of(const Tensor& x, const AttentionOptions& options) {
  if (!options.sink.defined() && !options.has_empty_rows) return x.softmax(-1);
  Tensor highest = x.max(-1, true), further;
  if (options.sink.defined()) {
    further = options.sink.cast(x.dtype()).reshape({1, -1, 1, 1});
    highest = highest.maximum(further);
  }
  if (options.has_empty_rows) highest = (highest == -kInfinity).where(0.0, highest);
  const Tensor e = (x - highest).exp();
  Tensor sum = e.sum(-1, true);
  if (further.defined()) sum = sum + (further - highest).exp();
  return e / (options.has_empty_rows ? (sum == 0).where(1.0, sum) : sum);
}

// Both operands of halves have a part of the scale, so that their product does not overflow.
Tensor scaled_product(const Tensor& q, const Tensor& k, double scale) {
  if (size_of(q.dtype()) >= 4) return q.matmul(k.transpose()) * scale;
  const Tensor root = Tensor(std::sqrt(std::abs(scale))).cast(q.dtype()).cast(DType::F32);
  const Tensor left = (widened(q) * (scale < 0 ? -root : root)).cast(q.dtype());
  const Tensor right = (widened(k) * root).cast(q.dtype());
  return widened(left).matmul(widened(right).transpose()).cast(q.dtype());
}

}  // namespace

Tensor widened(const Tensor& x) {
  return size_of(x.dtype()) < 4 ? x.cast(DType::F32) : x;
}

Tensor both(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? a & b : a;
}

Tensor split_heads(Call& call, const Tensor& x, int64_t heads) {
  if (heads <= 0 || x.ndim() != 3 || x.size(2) % heads != 0)
    call.wrong(
        fmt::format("a tensor of shape {} does not have {} heads", to_string(x.shape()), heads));
  return x.reshape({x.size(0), x.size(1), heads, x.size(2) / heads}).permute({0, 2, 1, 3});
}

Tensor merge_heads(const Tensor& x) {
  return x.permute({0, 2, 1, 3}).reshape({x.size(0), x.size(2), x.size(1) * x.size(3)});
}

Tensor shared_heads(Call& call, const Tensor& x, int64_t heads) {
  if (x.size(1) == heads) return x;
  if (x.size(1) == 0 || heads % x.size(1) != 0)
    call.wrong(fmt::format("{} heads of the query cannot share {} heads", heads, x.size(1)));
  return x.repeat_interleave(heads / x.size(1), 1);
}

AttentionSteps attend(Call& call, const Tensor& q, const Tensor& k, const Tensor& v,
                      const AttentionOptions& options) {
  const DType dtype = q.dtype();
  const auto rounded = [&](const Tensor& x) { return x.cast(dtype); };
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(q.size(-1))));
  AttentionSteps steps;
  steps.scores = rounded(scaled_product(q, shared_heads(call, k, q.size(1)), scale));
  steps.capped = steps.scores;
  if (options.softcap > 0) {
    const Tensor inner = rounded(rounded(widened(steps.scores) / options.softcap).tanh());
    steps.capped = rounded(widened(inner) * options.softcap);
  }
  steps.biased = steps.capped;
  if (options.bias.defined())
    steps.biased = rounded(widened(steps.capped) + widened(options.bias.cast(dtype)));
  if (options.allowed.defined())
    steps.biased = options.allowed.where(steps.biased, Tensor(-kInfinity).cast(dtype));
  const DType of_softmax = options.softmax_dtype.value_or(dtype);
  const Tensor softmax = softmax_of(widened(steps.biased.cast(of_softmax)), options);
  steps.probabilities = rounded(softmax.cast(of_softmax));
  const Tensor values = shared_heads(call, v, q.size(1));
  steps.result = widened(steps.probabilities).matmul(widened(values)).cast(v.dtype());
  return steps;
}

namespace {

// Keys before the queries: those of the past, or those of each sample's cache.
Tensor keys_before(Call& call, const Tensor& q) {
  if (call.has(4)) return Tensor(call[4].size(2)).cast(DType::I64);
  if (!call.has(6)) return Tensor(0).cast(DType::I64);
  return (call[6].cast(DType::I64) - q.size(2)).reshape({-1, 1, 1, 1});
}

// What is_causal, the windows and the lengths of the caches allow; undefined: everything.
Tensor allowed_keys(Call& call, const Tensor& q, const Tensor& k) {
  const int64_t left = call.integer("left_window_size", -1),
                right = call.integer("right_window_size", -1);
  const Tensor key = Tensor::arange(k.size(2), DType::I64);
  const Tensor query =
      Tensor::arange(q.size(2), DType::I64).reshape({q.size(2), 1}) + keys_before(call, q);
  Tensor allowed;
  if (call.integer("is_causal", 0) != 0) allowed = key <= query;
  if (left >= 0) allowed = both(allowed, key >= query - left);
  if (right >= 0) allowed = both(allowed, key <= query + right);
  if (call.has(6)) allowed = both(allowed, key < call[6].cast(DType::I64).reshape({-1, 1, 1, 1}));
  return allowed;
}

// Keys beyond a mask's end are not allowed.
Tensor padded_mask(const Tensor& mask, int64_t keys) {
  const int64_t missing = keys - mask.size(-1);
  if (missing <= 0) return mask;
  std::vector<Pads::Pair> pads(static_cast<size_t>(mask.ndim()));
  pads.back() = {0, missing};
  return mask.pad(pads, mask.dtype() == DType::Bool ? 0.0 : -kInfinity);
}

Values attention(Call& call) {
  const bool is_flat = call[0].ndim() == 3;
  const auto heads_of = [&](size_t input, std::string_view count) {
    return is_flat ? split_heads(call, call[input], call.integer(count, 0)) : call[input];
  };
  const Tensor q = heads_of(0, "q_num_heads");
  Tensor k = heads_of(1, "kv_num_heads"), v = heads_of(2, "kv_num_heads");
  if (call.has(4) != call.has(5)) call.wrong("past_key and past_value must be given together");
  if (call.has(4) && call.has(6)) call.wrong("nonpad_kv_seqlen has no meaning with past_key");
  if (call.has(4)) {
    k = cat({call[4], k}, 2);
    v = cat({call[5], v}, 2);
  }
  AttentionOptions options;
  if (call.attribute("scale")) options.scale = call.number("scale", 1);
  options.softcap = call.number("softcap", 0);
  options.softmax_dtype = call.dtype("softmax_precision");
  options.allowed = allowed_keys(call, q, k);
  options.has_empty_rows = call.has(3) || call.has(6) || call.integer("left_window_size", -1) >= 0;
  if (call.has(3)) {
    const Tensor mask = padded_mask(call[3], k.size(2));
    if (mask.dtype() == DType::Bool)
      options.allowed = both(options.allowed, mask);
    else
      options.bias = mask;
  }
  const AttentionSteps steps = attend(call, q, k, v, options);
  const Tensor shown[] = {steps.scores, steps.capped, steps.biased, steps.probabilities};
  const int64_t mode = call.integer("qk_matmul_output_mode", 0);
  return {is_flat ? merge_heads(steps.result) : steps.result, k, v, shown[mode]};
}

// The modifiers are graphs of one tensor, in the softmax's dtype.
Values flex_attention(Call& call) {
  const Tensor q = call[0];
  const Tensor k = shared_heads(call, call[1], q.size(1)),
               v = shared_heads(call, call[2], q.size(1));
  const DType wide =
      call.dtype("softmax_precision").value_or(q.dtype() == DType::F64 ? DType::F64 : DType::F32);
  const auto modified = [&](std::string_view modifier, const Tensor& x) {
    if (!call.attribute(modifier)) return x;
    const Values results = call.recording().run(call.graph(modifier), {x});
    if (results.size() != 1 || !results[0].is_tensor())
      call.wrong(fmt::format("{} must give one tensor", modifier));
    return results[0].tensor().cast(wide);
  };
  const double scale = call.number("scale", 1 / std::sqrt(static_cast<double>(q.size(-1))));
  const Tensor root = widened(Tensor(std::sqrt(std::abs(scale))).cast(q.dtype()));
  const Tensor left = (widened(q) * (scale < 0 ? -root : root)).cast(q.dtype());
  const Tensor right = (widened(k) * root).cast(q.dtype());
  const Tensor scores = widened(left).matmul(widened(right).transpose()).cast(q.dtype()).cast(wide);
  const Tensor softmax = widened(modified("score_mod", scores)).softmax(-1).cast(wide);
  const Tensor p = modified("prob_mod", softmax);
  return {widened(p).matmul(widened(v.cast(wide))).cast(call[2].dtype())};
}

// Writes the update at each sample's index.
Values tensor_scatter(Call& call) {
  const Tensor cache = call[0], update = call[1];
  const int64_t axis = call.axis_of(cache, -2);
  if (axis == 0) call.wrong("axis must be one after the batch");
  Shape along(static_cast<size_t>(cache.ndim()), 1);
  along[static_cast<size_t>(axis)] = update.size(axis);
  Tensor index = Tensor::arange(update.size(axis), DType::I64).reshape(along);
  if (call.has(2)) {
    Shape of_samples(static_cast<size_t>(cache.ndim()), 1);
    of_samples[0] = cache.size(0);
    index = index + call[2].cast(DType::I64).reshape(of_samples);
  }
  const std::string_view mode = call.text("mode", "linear");
  if (mode == "circular") index = index % cache.size(axis);
  return {cache.scatter(axis, index.expand(update.shape()), update)};
}

Values swiglu(Call& call) {
  const Tensor gate = call[0];
  if (gate.shape() != call[1].shape()) call.wrong("both inputs must have one shape");
  const Tensor share = (widened(gate) * call.number("alpha", 1.0)).sigmoid().cast(gate.dtype());
  return {gate * share * call[1]};
}

constexpr OperatorRow kAttentionRows[] = {
    {"Attention", attention},
    {"FlexAttention", flex_attention, false, "ai.onnx.preview"},
    {"SwiGLU", swiglu},
    {"TensorScatter", tensor_scatter},
};

}  // namespace

std::span<const OperatorRow> attention_operators() {
  return kAttentionRows;
}

}  // namespace plugrad::onnx

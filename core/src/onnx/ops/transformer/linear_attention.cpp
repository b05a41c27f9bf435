// Rotary positions, and attention that keeps a state instead of all keys.
#include <cmath>

#include "base/check.h"
#include "onnx/ops/tables.h"
#include "onnx/ops/transformer/attention.h"
#include "plugrad/conv.h"
#include "plugrad/functional.h"
#include "plugrad/scan.h"

namespace plugrad::onnx {

Tensor rotated(const Tensor& x, const Tensor& cos, const Tensor& sin, bool is_interleaved) {
  const int64_t pairs = cos.size(-1);
  const Tensor wide = widened(x), c = widened(cos).unsqueeze(1), s = widened(sin).unsqueeze(1);
  const Tensor turned = wide.slice(-1, {0, 2 * pairs});
  const Tensor a = turned.slice(-1, is_interleaved ? Slice(0, {}, 2) : Slice(0, pairs));
  const Tensor b = turned.slice(-1, is_interleaved ? Slice(1, {}, 2) : Slice(pairs, {}));
  const Tensor real = c * a - s * b, imaginary = s * a + c * b;
  Tensor result = is_interleaved ? stack({real, imaginary}, -1).reshape(turned.shape())
                                 : cat({real, imaginary}, -1);
  if (2 * pairs < x.size(-1)) result = cat({result, wide.slice(-1, {2 * pairs, {}})}, -1);
  return result.cast(x.dtype());
}

namespace {

Values rotary_embedding(Call& call) {
  const Tensor x = call[0];
  const bool is_flat = x.ndim() == 3;
  const Tensor heads = is_flat ? split_heads(call, x, call.integer("num_heads", 0)) : x;
  Tensor cos = call[1], sin = call[2];
  if (call.has(3)) {
    cos = cos.index_select(0, call[3]);
    sin = sin.index_select(0, call[3]);
  }
  const int64_t given = call.integer("rotary_embedding_dim", 0);
  const int64_t size = given == 0 ? heads.size(-1) : given;
  if (2 * cos.size(-1) != size || sin.shape() != cos.shape())
    call.wrong(fmt::format("the caches of shapes {} and {} are not for {} elements",
                           to_string(cos.shape()), to_string(sin.shape()), size));
  const Tensor result = rotated(heads, cos, sin, call.integer("interleaved", 0) != 0);
  return {is_flat ? merge_heads(result) : result};
}

// (batch, time, heads * size) to (time, batch, heads, size), in f32.
Tensor of_steps(const Tensor& x, int64_t heads) {
  return x.cast(DType::F32)
      .reshape({x.size(0), x.size(1), heads, heads == 0 ? 0 : x.size(2) / heads})
      .transpose(0, 1);
}

struct LinearRule {
  bool decays, corrects;
};
LinearRule rule_of(Call& call) {
  const std::string_view name = call.text("update_rule", "gated_delta");
  const LinearRule rule{name == "gated" || name == "gated_delta",
                        name == "delta" || name == "gated_delta"};
  if (call.has(4) != rule.decays)
    call.wrong(fmt::format("update_rule \"{}\" {} decay", name, rule.decays ? "needs" : "has no"));
  if (call.has(5) != rule.corrects)
    call.wrong(fmt::format("update_rule \"{}\" {} beta", name, rule.corrects ? "needs" : "has no"));
  return rule;
}

// The state (batch, heads, key size, value size) decays, takes the product of each key and value
// (with the delta rule the value less what the state has for the key), and is read by the query.
// Source: Katharopoulos et al. 2020; Yang et al. 2024.
Values linear_attention(Call& call) {
  const LinearRule rule = rule_of(call);
  const Tensor query = call[0], value = call[2];
  const int64_t heads = call.integer("kv_num_heads", 0), q_heads = call.integer("q_num_heads", 0);
  if (q_heads % heads != 0) call.wrong("q_num_heads must be a multiple of kv_num_heads");
  const int64_t batch = query.size(0), group = q_heads / heads, key_size = query.size(2) / q_heads,
                value_size = value.size(2) / heads;
  std::vector<Tensor> inputs{of_steps(query, q_heads), of_steps(call[1], heads),
                             of_steps(value, heads)};
  if (rule.decays) inputs.push_back(of_steps(call[4], heads).exp());
  if (rule.corrects) inputs.push_back(of_steps(call[5], call[5].size(2)));
  const Tensor before = call.has(3)
                            ? call[3].cast(DType::F32)
                            : Tensor::zeros({batch, heads, key_size, value_size}, DType::F32);
  const double given = call.number("scale", 0);
  const double scale = given == 0 ? 1 / std::sqrt(static_cast<double>(key_size)) : given;
  const ScanResult result = scan(
      [&](const std::vector<Tensor>& states, const std::vector<Tensor>& x) {
        const Tensor key = x[1].unsqueeze(-1);
        Tensor state = states[0], added = x[2].unsqueeze(-2);
        if (rule.decays) state = state * x[3].unsqueeze(-1);
        if (rule.corrects) added = x.back().unsqueeze(-1) * (added - (state * key).sum(-2, true));
        state = state + key * added;
        const Tensor read = (x[0].reshape({batch, heads, group, key_size, 1}) * state.unsqueeze(2))
                                .sum(-2)
                                .reshape({batch, q_heads, value_size});
        return ScanResult{{state}, {read * scale}};
      },
      {before}, inputs);
  const Tensor output =
      result.outputs[0].transpose(0, 1).reshape({batch, query.size(1), q_heads * value_size});
  return {output.cast(query.dtype()),
          result.state[0].cast(call.has(3) ? call[3].dtype() : query.dtype())};
}

// A convolution of each channel over the past elements, of which the last ones are the state.
Values causal_conv_with_state(Call& call) {
  const Tensor x = call[0], weight = call[1];
  const int64_t channels = x.size(1), before = weight.size(2) - 1;
  const std::string_view activation = call.text("activation", "none");
  const Tensor past =
      call.has(3) ? call[3] : Tensor::zeros({x.size(0), channels, before}, x.dtype());
  const Tensor all = cat({past, x}, 2);
  Tensor result = conv(all, weight, call.optional(2), {.groups = channels});
  if (activation != "none") result = widened(result).silu().cast(x.dtype());
  return {result, all.slice(2, {all.size(2) - before, {}})};
}

constexpr OperatorRow kLinearAttentionRows[] = {
    {"CausalConvWithState", causal_conv_with_state},
    {"LinearAttention", linear_attention},
    {"RotaryEmbedding", rotary_embedding},
};

}  // namespace

std::span<const OperatorRow> linear_attention_operators() {
  return kLinearAttentionRows;
}

}  // namespace plugrad::onnx

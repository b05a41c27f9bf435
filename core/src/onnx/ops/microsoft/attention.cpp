// Attention of com.microsoft. Source of its meaning: the schemas of ONNX Runtime 1.32.
#include "onnx/ops/transformer/attention.h"

#include <algorithm>

#include "base/check.h"
#include "onnx/ops/tables.h"
#include "plugrad/functional.h"

namespace plugrad::onnx {
namespace {

struct Heads {
  Tensor q, k, v;  // (batch, heads, length, size)
};

// A mask of keys as numbers to add. Source of the forms: (batch) lengths, (2 * batch) ends and
// starts, (batch, keys), (batch, queries, keys), (batch, 1, most, most).
Tensor bias_of_mask(Call& call, const Tensor& mask, const Heads& h) {
  const int64_t batch = h.q.size(0), queries = h.q.size(2), keys = h.k.size(2);
  const Tensor key = Tensor::arange(keys, DType::I64);
  const Tensor wide = mask.cast(DType::I64);
  Tensor allowed;
  if (mask.ndim() == 1 && mask.numel() == batch) {
    allowed = key < wide.reshape({batch, 1, 1, 1});
  } else if (mask.ndim() == 1 && mask.numel() == 2 * batch) {
    const Tensor bounds = wide.reshape({2, batch, 1, 1, 1});
    allowed =
        (key < bounds.slice(0, {0, 1}).squeeze(0)) & (key >= bounds.slice(0, {1, 2}).squeeze(0));
  } else if (mask.ndim() == 2 && mask.size(1) == keys) {
    allowed = wide.reshape({batch, 1, 1, keys}) > 0;
  } else if (mask.ndim() == 3 && mask.size(2) == keys) {
    allowed = wide.unsqueeze(1) > 0;
  } else if (mask.ndim() == 4) {
    allowed = wide.slice(2, {keys - queries, keys}).slice(3, {0, keys}) > 0;
  } else {
    call.unsupported(fmt::format("a mask of shape {}", to_string(mask.shape())));
  }
  const Tensor filter = Tensor(call.number("mask_filter_value", -10000.0)).cast(h.q.dtype());
  return allowed.where(filter.zeros_like(), filter);
}

// The options that Attention and MultiHeadAttention have in common.
AttentionOptions attention_options(Call& call, const Heads& h, size_t mask, size_t bias) {
  AttentionOptions options;
  if (const double scale = call.number("scale", 0); scale != 0) options.scale = scale;
  options.has_empty_rows = false;
  if (call.integer("unidirectional", 0) != 0) {
    const int64_t queries = h.q.size(2), before = h.k.size(2) - queries;
    options.allowed = Tensor::arange(h.k.size(2), DType::I64) <=
                      (Tensor::arange(queries, DType::I64) + before).unsqueeze(-1);
  }
  if (call.has(mask)) options.bias = bias_of_mask(call, call[mask], h);
  if (call.has(bias))
    options.bias = options.bias.defined() ? options.bias + call[bias] : call[bias];
  return options;
}

Values microsoft_attention(Call& call) {
  const int64_t heads = call.integer("num_heads", 0);
  if (call.integer("do_rotary", 0) != 0) call.unsupported("do_rotary; use RotaryEmbedding");
  if (call.integer("past_present_share_buffer", 0) != 0)
    call.unsupported("past_present_share_buffer");
  Tensor all = call[0].matmul(call[1]);
  if (call.has(2)) all = all + call[2];
  const int64_t third = all.size(2) / 3;
  const auto parts = all.split(call.integers("qkv_hidden_sizes", {third, third, third}), 2);
  if (parts.size() != 3) call.wrong("qkv_hidden_sizes must be three numbers");
  Heads h{split_heads(call, parts[0], heads), split_heads(call, parts[1], heads),
          split_heads(call, parts[2], heads)};
  if (call.has(4)) {
    const Tensor past = call[4];
    h.k = cat({past.slice(0, {0, 1}).squeeze(0), h.k}, 2);
    h.v = cat({past.slice(0, {1, 2}).squeeze(0), h.v}, 2);
  }
  Values results{merge_heads(attend(call, h.q, h.k, h.v, attention_options(call, h, 3, 5)).result)};
  if (call.wants(1)) results.emplace_back(stack({h.k, h.v}, 0));
  return results;
}

// Part `index` of a tensor (batch, length, heads, parts, size), as (batch, length, heads * size).
Tensor packed_part(const Tensor& x, int64_t index) {
  return x.slice(3, {index, index + 1}).reshape({x.size(0), x.size(1), x.size(2) * x.size(4)});
}

// Query, key and value with their biases; keys of four axes are heads already.
Heads multi_heads(Call& call, int64_t heads) {
  Tensor q = call[0], k = call.optional(1), v = call.optional(2);
  if (q.ndim() == 5) {
    k = packed_part(call[0], 1);
    v = packed_part(call[0], 2);
    q = packed_part(call[0], 0);
  } else if (k.defined() && k.ndim() == 5) {
    v = packed_part(call[1], 1);
    k = packed_part(call[1], 0);
  }
  if (!k.defined() || !v.defined()) call.wrong("key or value is missing");
  if (call.has(3)) {
    const Tensor bias = call[3];
    const int64_t width = q.size(2);
    q = q + bias.slice(0, {0, width});
    if (k.ndim() == 3) k = k + bias.slice(0, {width, 2 * width});
    if (v.ndim() == 3) v = v + bias.slice(0, {2 * width, {}});
  }
  const auto of_heads = [&](const Tensor& x) {
    return x.ndim() == 4 ? x : split_heads(call, x, heads);
  };
  return {of_heads(q), of_heads(k), of_heads(v)};
}

Values multi_head_attention(Call& call) {
  if (call.has(8) || call.has(9)) call.unsupported("past_sequence_length and cache_indirection");
  Heads h = multi_heads(call, call.integer("num_heads", 0));
  if (call.has(6)) {
    h.k = cat({call[6], h.k}, 2);
    h.v = cat({call[7], h.v}, 2);
  }
  const AttentionSteps steps = attend(call, h.q, h.k, h.v, attention_options(call, h, 4, 5));
  return {merge_heads(steps.result), h.k, h.v, steps.biased};
}

Values microsoft_rotary_embedding(Call& call) {
  const Tensor x = call[0], ids = call[1];
  if (call.integer("is_packed_batching", 0) != 0) call.unsupported("is_packed_batching");
  const int64_t pairs = call[2].size(1);
  if (pairs == 0) call.wrong("the cache has no columns");
  int64_t heads = call.integer("num_heads", 0);
  if (x.ndim() == 3 && heads == 0) heads = x.size(2) / (2 * pairs);
  const Tensor split = x.ndim() == 3 ? split_heads(call, x, heads) : x;
  // One number is the first position.
  const Tensor index =
      ids.ndim() == 1 ? (Tensor::arange(split.size(2), DType::I64) + ids).unsqueeze(0) : ids;
  const double scale = call.number("scale", 1);
  const Tensor result =
      rotated(split, call[2].index_select(0, index), call[3].index_select(0, index),
              call.integer("interleaved", 0) != 0);
  const Tensor scaled = scale == 1 ? result : (result * scale).cast(x.dtype());
  return {x.ndim() == 3 ? merge_heads(scaled) : scaled};
}

// The cache with the rows of `fresh` from each sample's index `before` on.
Tensor written(const Tensor& past, const Tensor& fresh, const Tensor& before, int64_t count,
               const Tensor& rows) {
  const Shape shape{fresh.size(0), fresh.size(1), count, fresh.size(3)};
  const Tensor row = Tensor::arange(count, DType::I64).reshape({1, 1, count, 1}) - before;
  const Tensor is_fresh = (row >= 0) & (row < rows);
  const Tensor index = row.clamp(0, fresh.size(2) - 1).expand(shape);
  Tensor cache = fresh.zeros_like().slice(2, {0, 1}).expand(shape);
  if (past.defined() && past.size(2) > 0)
    cache = past.pad_to({std::nullopt, std::nullopt, count, std::nullopt});
  return is_fresh.where(fresh.gather(2, index), cache);
}

Tensor per_head_norm(const Tensor& x, const Tensor& weight, double epsilon) {
  const Tensor wide = widened(x);
  const Tensor inverse = (wide.square().mean(-1, true) + epsilon).rsqrt();
  return (wide * inverse * widened(weight)).cast(x.dtype());
}

// Query, key and value before rotation.
Heads grouped_heads(Call& call, int64_t heads, int64_t shared) {
  Tensor q = call[0], k, v;
  if (call.has(1)) {
    k = call[1];
    v = call[2];
  } else {
    const int64_t size = q.size(2) / (heads + 2 * shared);
    const auto parts = q.split({heads * size, shared * size, shared * size}, 2);
    q = parts[0];
    k = parts[1];
    v = parts[2];
  }
  Heads h{split_heads(call, q, heads), split_heads(call, k, shared), split_heads(call, v, shared)};
  if (call.has(14) != call.has(15))
    call.wrong("it needs the norm weights of both q and k, or none");
  if (call.has(14)) {
    const double epsilon = call.number("qk_norm_epsilon", 1e-6);
    h.q = per_head_norm(h.q, call[14], call.number("q_norm_epsilon", epsilon));
    h.k = per_head_norm(h.k, call[15], call.number("k_norm_epsilon", epsilon));
  }
  return h;
}

void require_plain_cache(Call& call) {
  if (call.integer("sliding_window_cache", 0) != 0) call.unsupported("sliding_window_cache");
  if (call.text("k_quant_type", "NONE") != "NONE" || call.text("v_quant_type", "NONE") != "NONE")
    call.unsupported("a quantised cache");
}

Values group_query_attention(Call& call) {
  require_plain_cache(call);
  const int64_t heads = call.integer("num_heads", 0), shared = call.integer("kv_num_heads", 0);
  Heads h = grouped_heads(call, heads, shared);
  const int64_t length = h.q.size(2), batch = h.q.size(0);
  // Of each sample the tokens after this step, those that are new, and those before it.
  const Tensor total = call[5].cast(DType::I64).reshape({batch, 1, 1, 1}) + 1;
  const Tensor fresh = call.has(16) ? call[16].cast(DType::I64).reshape({batch, 1, 1, 1})
                                    : Tensor(length).cast(DType::I64);
  const Tensor before = (total - fresh).maximum(0);
  const Tensor position = Tensor::arange(length, DType::I64) + before.reshape({batch, 1});
  if (call.integer("do_rotary", 0) != 0) {
    const Tensor index = call.has(9) ? call[9] : position;
    const Tensor cos = call[7].index_select(0, index), sin = call[8].index_select(0, index);
    const bool is_interleaved = call.integer("rotary_interleaved", 0) != 0;
    h.q = rotated(h.q, cos, sin, is_interleaved);
    h.k = rotated(h.k, cos, sin, is_interleaved);
  }
  const Tensor past_k = call.optional(3), past_v = call.optional(4);
  const int64_t rows = std::max(call.integer_input(6), past_k.defined() ? past_k.size(2) : 0);
  const Tensor k = written(past_k, h.k, before, rows, fresh),
               v = written(past_v, h.v, before, rows, fresh);
  const Tensor key = Tensor::arange(rows, DType::I64);
  const Tensor query = position.reshape({batch, 1, length, 1});
  const int64_t window = call.integer("local_window_size", -1);
  AttentionOptions options;
  options.has_empty_rows = false;
  if (const double scale = call.number("scale", 0); scale != 0) options.scale = scale;
  options.softcap = call.number("softcap", 0);
  options.allowed = call.integer("causal", 1) != 0 ? key <= query : key < total;
  if (window > 0) options.allowed = options.allowed & (key > query - window);
  if (call.has(10)) {
    const Tensor bias = call[10];
    options.bias = bias.size(3) < rows ? bias.pad_to({{}, {}, {}, rows}) : bias;
  }
  if (call.has(11))
    options.sink = call[11];
  else if (call.integer("smooth_softmax", 0) == 1)
    options.sink = Tensor(0.0).cast(h.q.dtype());
  const AttentionSteps steps = attend(call, h.q, k, v, options);
  Values results{merge_heads(steps.result), k, v};
  if (call.wants(3))
    results.emplace_back(call.integer("qk_output", 0) == 2
                             ? steps.probabilities
                             : options.allowed.where(steps.biased, steps.biased.zeros_like()));
  return results;
}

constexpr OperatorRow kMicrosoftAttentionRows[] = {
    {"Attention", microsoft_attention, false, kMicrosoft},
    {"GroupQueryAttention", group_query_attention, false, kMicrosoft},
    {"MultiHeadAttention", multi_head_attention, false, kMicrosoft},
    {"RotaryEmbedding", microsoft_rotary_embedding, false, kMicrosoft},
};

}  // namespace

std::span<const OperatorRow> microsoft_attention_operators() {
  return kMicrosoftAttentionRows;
}

}  // namespace plugrad::onnx

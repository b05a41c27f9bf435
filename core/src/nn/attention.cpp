// Multi-head attention: scaled dot-product attention between four linear layers.
#include <cmath>

#include "base/check.h"
#include "nn/initial.h"
#include "plugrad/nn.h"
#include "tensor/named_function.h"

namespace plugrad::nn {
namespace {

Linear projection(int64_t in, int64_t out, bool bias) {
  Linear layer(in, out, bias);
  layer.weight = trained_uniform({out, in}, std::sqrt(6.0 / static_cast<double>(in + out)));
  if (bias) layer.bias = trained_constant({out}, 0.0f);
  return layer;
}

Linear output(int64_t width, bool bias) {
  Linear layer(width, width, bias);
  if (bias) layer.bias = trained_constant({width}, 0.0f);
  return layer;
}

// (…, l, heads * d) -> (…, heads, l, d)
Tensor split_heads(const Tensor& x, int64_t heads) {
  return x.unflatten(-1, {heads, x.size(-1) / heads}).transpose(-3, -2);
}

int64_t checked_heads(int64_t width, int64_t heads, const AttentionOptions& options) {
  require(width > 0 && heads > 0 && width % heads == 0,
          "[MultiHeadAttention] width {} in {} heads; the width must be a multiple of the heads",
          width, heads);
  const int64_t kv_heads = options.kv_heads == 0 ? heads : options.kv_heads;
  require(kv_heads > 0 && heads % kv_heads == 0,
          "[MultiHeadAttention] {} heads share {} of keys and values; the first must be a multiple "
          "of the second",
          heads, kv_heads);
  require(options.dropout >= 0 && options.dropout <= 1,
          "[MultiHeadAttention] dropout is {}; it must be in [0, 1]", options.dropout);
  return kv_heads;
}

AttentionOptions with_defaults(int64_t width, int64_t heads, AttentionOptions options) {
  options.kv_heads = checked_heads(width, heads, options);
  if (options.key_width == 0) options.key_width = width;
  if (options.value_width == 0) options.value_width = width;
  return options;
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(int64_t width, int64_t heads_, AttentionOptions options_)
    : MultiHeadAttention(width, heads_, with_defaults(width, heads_, options_), Checked{}) {}

MultiHeadAttention::MultiHeadAttention(int64_t width, int64_t heads_, AttentionOptions options_,
                                       Checked)
    : q_proj(projection(width, width, options_.bias)),
      k_proj(projection(options_.key_width, width / heads_ * options_.kv_heads, options_.bias)),
      v_proj(projection(options_.value_width, width / heads_ * options_.kv_heads, options_.bias)),
      out_proj(output(width, options_.bias)),
      heads(heads_),
      options(options_) {}

Tensor MultiHeadAttention::operator()(const Tensor& x, const AttentionMask& mask) const {
  return operator()(x, x, x, mask);
}

Tensor MultiHeadAttention::operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                                      const AttentionMask& mask) const {
  const tensor::NamedFunction named("MultiHeadAttention");
  require(query.ndim() >= 2 && key.ndim() >= 2 && value.ndim() >= 2,
          "[MultiHeadAttention] {}, {} and {} need two axes at least, place and width",
          to_string(query.shape()), to_string(key.shape()), to_string(value.shape()));
  const Tensor q = split_heads(q_proj(query), heads);
  const Tensor k = split_heads(k_proj(key), options.kv_heads);
  const Tensor v = split_heads(v_proj(value), options.kv_heads);
  const double dropout = is_training() ? options.dropout : 0.0;
  const Tensor y = scaled_dot_product_attention(q, k, v, mask.mask, mask.causal, dropout,
                                                options.kv_heads != heads);
  return out_proj(y.transpose(-3, -2).flatten(-2));
}

}  // namespace plugrad::nn

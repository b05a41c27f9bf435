/// Multi-head attention as a layer.
#pragma once

#include <cstdint>

#include "plugrad/nn/layers.h"

namespace plugrad::nn {

struct AttentionOptions {
  /// heads of keys and values, each for heads / kv_heads query heads; 0: as many as heads
  int64_t kv_heads = 0;
  double dropout = 0.0;  ///< dropout of the attention weights, in training
  bool bias = true;
  int64_t key_width = 0, value_width = 0;  ///< widths of keys and values; 0: `width`
};
/// The mask of one call.
struct AttentionMask {
  Tensor mask = {};     ///< bool (true: attend) or added; broadcasts to (…, heads, l, s)
  bool causal = false;  ///< position i attends to positions up to i
};
/// Scaled dot-product attention with `heads` heads between four Linear layers. Shape: query (…, l,
/// width), key and value (…, s, width) -> (…, l, width). Initial values: projections Glorot
/// uniform, out_proj as Linear, biases zero. PyTorch's in_proj_weight is q_proj, k_proj and v_proj
/// stacked. Vaswani et al. 2017; grouped heads: Ainslie et al. 2023.
struct PLUGRAD_API MultiHeadAttention {
  MultiHeadAttention(int64_t width, int64_t heads, AttentionOptions options = {});
  /// Self-attention.
  Tensor operator()(const Tensor& x, const AttentionMask& mask = {}) const;
  /// Cross-attention.
  Tensor operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                    const AttentionMask& mask = {}) const;
  Linear q_proj, k_proj, v_proj, out_proj;
  int64_t heads;
  AttentionOptions options;
  PLUGRAD_FIELDS(q_proj, k_proj, v_proj, out_proj)

 private:
  struct Checked {};
  MultiHeadAttention(int64_t width, int64_t heads, AttentionOptions options, Checked);
};

}  // namespace plugrad::nn

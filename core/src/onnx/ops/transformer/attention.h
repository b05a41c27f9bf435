// What the attention operators of all domains share.
#pragma once

#include <optional>

#include "onnx/import/call.h"

namespace plugrad::onnx {

/// Tensors of heads are (batch, heads, length, size).
struct AttentionOptions {
  std::optional<double> scale;  ///< 1 / sqrt(size) if not given
  double softcap = 0;           ///< 0: none
  Tensor allowed;               ///< bool, undefined: all; broadcasts to the scores
  Tensor bias;                  ///< added to the scores; undefined: none
  Tensor sink;  ///< of each head, a further score that takes part in the softmax only
  std::optional<DType> softmax_dtype;
  bool has_empty_rows = true;  ///< whether a query may have no allowed key, and then gives zeros
};

/// The scores after each step, and the result.
struct AttentionSteps {
  Tensor scores, capped, biased, probabilities, result;
};

/// Each step is rounded to the dtype of q; products are summed and the softmax is computed in f32
/// at least. Neighbouring heads of q share a head of k and v. Source: Vaswani et al. 2017; Ainslie
/// et al. 2023.
AttentionSteps attend(Call& call, const Tensor& q, const Tensor& k, const Tensor& v,
                      const AttentionOptions& options);

/// (batch, length, heads * size) to (batch, heads, length, size), and back.
Tensor split_heads(Call& call, const Tensor& x, int64_t heads);
Tensor merge_heads(const Tensor& x);

/// Each head of k or v as often as heads of q share it.
Tensor shared_heads(Call& call, const Tensor& x, int64_t heads);

/// Pairs of elements of the last axis turned by their angles; `cos` and `sin` are (batch or 1,
/// length, pairs). The elements after the pairs are unchanged. Source: Su et al. 2021.
Tensor rotated(const Tensor& x, const Tensor& cos, const Tensor& sin, bool is_interleaved);

/// f32 for smaller floats.
Tensor widened(const Tensor& x);

/// The condition that both are; either may be undefined.
Tensor both(const Tensor& a, const Tensor& b);

}  // namespace plugrad::onnx

// Scaled dot-product attention.
#include <algorithm>
#include <cmath>
#include <limits>

#include "plugrad/functional.h"
#include "tensor/compute_dtype.h"
#include "tensor/lazy_text.h"
#include "tensor/named_function.h"

namespace plugrad {

namespace {

constexpr const char* kAttentionName = "scaled_dot_product_attention";
constexpr double kNever = -std::numeric_limits<double>::infinity();  // score of a masked key

void require_sizes(const Tensor& q, const Tensor& k, const Tensor& v) {
  require(q.ndim() >= 2 && k.ndim() >= 2 && v.ndim() >= 2,
          "[{}] {}, {} and {} need two axes at least", kAttentionName, tensor::lazy_text(q),
          tensor::lazy_text(k), tensor::lazy_text(v));
  require(q.size(-1) == k.size(-1), "[{}] queries {} and keys {} differ in their last axis",
          kAttentionName, tensor::lazy_text(q), tensor::lazy_text(k));
  require(k.size(-2) == v.size(-2), "[{}] keys {} and values {} differ in number, their axis -2",
          kAttentionName, tensor::lazy_text(k), tensor::lazy_text(v));
}

/// Repeats each head of x for the query heads that share it.
Tensor shared_heads(const Tensor& x, const Tensor& q) {
  require(q.ndim() >= 3 && x.ndim() >= 3, "[{}] enable_gqa needs an axis of heads: {} and {}",
          kAttentionName, tensor::lazy_text(q), tensor::lazy_text(x));
  const int64_t heads = q.size(-3), own = x.size(-3);
  require(own > 0 && heads % own == 0, "[{}] {} heads of queries are no multiple of {} of {}",
          kAttentionName, heads, own, tensor::lazy_text(x));
  Shape split = x.shape(), merged = split;
  const size_t at = split.size() - 3;
  split.insert(split.begin() + static_cast<int64_t>(at) + 1, 1);
  Shape repeated = split;
  repeated[at + 1] = heads / own;
  merged[at] = heads;
  return x.reshape(split).expand(repeated).reshape(merged);
}

void require_mask(const Tensor& mask, const Tensor& scores) {
  const Shape shape = mask.shape(), full = scores.shape();
  require_type(mask.dtype() == DType::Bool || is_float(mask.dtype()),
               "[{}] the mask is {}, neither bool nor a float", kAttentionName,
               name_of(mask.dtype()));
  bool fits = shape.size() <= full.size();
  for (size_t i = 1; fits && i <= shape.size(); ++i) {
    const int64_t size = shape[shape.size() - i];
    fits = size == 1 || size == full[full.size() - i];
  }
  require(fits, "[{}] mask {} does not broadcast to scores {}: (…, queries, keys)", kAttentionName,
          tensor::lazy_text(shape), tensor::lazy_text(full));
}

/// Softmax of the last axis; 0 in rows that are masked completely.
Tensor masked_softmax(const Tensor& scores) {
  const Tensor top = scores.max(-1, true).detach();
  const Tensor e = (scores - where(top == kNever, 0.0, top)).exp(), sum = e.sum(-1, true);
  return e / where(sum == 0.0, 1.0, sum);
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const Tensor& mask, bool is_causal, double dropout,
                                    bool enable_gqa, std::optional<double> scale) {
  const tensor::NamedFunction named("scaled_dot_product_attention");
  require_sizes(q, k, v);
  require(!(mask.defined() && is_causal), "[{}] give a mask or is_causal, not both",
          kAttentionName);
  const Tensor keys = enable_gqa ? shared_heads(k, q) : k,
               values = enable_gqa ? shared_heads(v, q) : v;
  const double by =
      scale.value_or(1.0 / std::sqrt(static_cast<double>(std::max<int64_t>(q.size(-1), 1))));
  Tensor scores =
      matmul(tensor::to_compute_dtype(q), tensor::to_compute_dtype(keys).transpose()) * by;
  if (is_causal) {
    const int64_t l = q.size(-2), s = k.size(-2);
    scores = where(Tensor::arange(s) <= Tensor::arange(l).reshape({l, 1}), scores, kNever);
  }
  if (mask.defined()) {
    require_mask(mask, scores);
    scores = mask.dtype() == DType::Bool ? where(mask, scores, kNever) : scores + mask;
  }
  const Tensor weights = mask.defined() ? masked_softmax(scores) : scores.softmax();
  const Tensor y = matmul(weights.dropout(dropout, dropout > 0), tensor::to_compute_dtype(values));
  return y.cast(tensor::real_dtype(promote(promote(q.dtype(), k.dtype()), v.dtype())));
}

}  // namespace plugrad

// Elementwise losses: distances, binary cross entropy, divergence, margins.
#include "tensor/functional/loss.h"

#include <cmath>

#include "plugrad/functional.h"
#include "tensor/record.h"

namespace plugrad {

namespace tensor {

Tensor reduced(const Tensor& loss, Reduction reduction, const Tensor& predictions) {
  const Tensor value = reduction == Reduction::None  ? loss
                       : reduction == Reduction::Sum ? loss.sum()
                                                     : loss.mean();
  return to_result_dtype(value, predictions);
}

void require_same(std::string_view function, const Tensor& x, const Tensor& target) {
  if (x.shape() != target.shape())
    fail(ErrorKind::User, "[{}] shapes {} and {} differ", function, shown_shape(x),
         shown_shape(target));
}

}  // namespace tensor

using tensor::reduced;
using tensor::require_same;
using tensor::to_compute_dtype;

namespace {

/// x - target in the wider of their compute dtypes.
Tensor difference(std::string_view function, const Tensor& x, const Tensor& target) {
  const tensor::NamedFunction named(function);
  require_same(function, x, target);
  return to_compute_dtype(x) - to_compute_dtype(target);
}

/// log p, clamped to -100. The slope of the clamped part is 1e12 instead of 0, so that a confident
/// wrong prediction has a gradient.
Tensor bounded_log(const Tensor& p) {
  const Tensor cut = p <= std::exp(-100.0);
  return where(cut, (p - p.detach()) * 1e12 - 100.0, where(cut, 1.0, p).log());
}

Tensor weighted(const Tensor& loss, const Tensor& weight) {
  return weight.defined() ? loss * to_compute_dtype(weight) : loss;
}

}  // namespace

Tensor binary_crossentropy(const Tensor& x, const Tensor& target,
                           const BinaryCrossentropyOptions& o) {
  const tensor::NamedFunction named("binary_crossentropy");
  require_same("binary_crossentropy", x, target);
  require(!o.pos_weight.defined(), "[binary_crossentropy] pos_weight is for logits alone");
  const Tensor p = to_compute_dtype(x), t = to_compute_dtype(target);
  const Tensor loss = -(t * bounded_log(p) + (1.0 - t) * bounded_log(1.0 - p));
  return reduced(weighted(loss, o.weight), o.reduction, x);
}
Tensor binary_crossentropy(const Tensor& x, const Tensor& target, Reduction reduction) {
  return binary_crossentropy(x, target, {.reduction = reduction});
}

// -w t log sigmoid(x) - (1 - t) log(1 - sigmoid(x)), where log sigmoid(x) = -softplus(-x) and
// softplus(x) = softplus(-x) + x.
Tensor binary_crossentropy_logits(const Tensor& logits, const Tensor& target,
                                  const BinaryCrossentropyOptions& o) {
  const tensor::NamedFunction named("binary_crossentropy_logits");
  require_same("binary_crossentropy_logits", logits, target);
  const Tensor x = to_compute_dtype(logits), t = to_compute_dtype(target);
  Tensor loss;
  if (o.pos_weight.defined())
    loss = t * to_compute_dtype(o.pos_weight) * (-x).softplus() + (1.0 - t) * x.softplus();
  else
    loss = x.softplus() - x * t;
  return reduced(weighted(loss, o.weight), o.reduction, logits);
}
Tensor binary_crossentropy_logits(const Tensor& logits, const Tensor& target, Reduction reduction) {
  return binary_crossentropy_logits(logits, target, {.reduction = reduction});
}

Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  return reduced(difference("mse_loss", x, target).square(), reduction, x);
}

Tensor l1_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  return reduced(difference("l1_loss", x, target).abs(), reduction, x);
}

namespace {

/// Squares only the distance up to `kink`, so that a large distance does not overflow.
Tensor huber(const Tensor& distance, double kink) {
  const Tensor below = where(distance < kink, distance, kink);
  return below.square() * 0.5 + (distance - below) * kink;
}

}  // namespace

Tensor huber_loss(const Tensor& x, const Tensor& target, double delta, Reduction reduction) {
  require(delta > 0.0, "[huber_loss] delta is {}, not positive", delta);
  const Tensor distance = difference("huber_loss", x, target).abs();
  return reduced(huber(distance, delta), reduction, x);
}

Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, double beta, Reduction reduction) {
  require(beta >= 0.0, "[smooth_l1_loss] beta is {}, which is negative", beta);
  const Tensor distance = difference("smooth_l1_loss", x, target).abs();
  return reduced(beta > 0.0 ? huber(distance, beta) / beta : distance, reduction, x);
}

Tensor kl_div(const Tensor& log_q, const Tensor& target, Reduction reduction, bool log_target) {
  const tensor::NamedFunction named("kl_div");
  require_same("kl_div", log_q, target);
  const Tensor q = to_compute_dtype(log_q), t = to_compute_dtype(target);
  if (log_target) return reduced(t.exp() * (t - q), reduction, log_q);
  const Tensor none = t == 0.0;
  return reduced(where(none, 0.0, t * where(none, 1.0, t).log()) - t * q, reduction, log_q);
}

Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin,
                           Reduction reduction) {
  const tensor::NamedFunction named("margin_ranking_loss");
  const Tensor ahead = to_compute_dtype(target) * (to_compute_dtype(a) - to_compute_dtype(b));
  return reduced((margin - ahead).relu(), reduction, a);
}

Tensor hinge_embedding_loss(const Tensor& x, const Tensor& target, double margin,
                            Reduction reduction) {
  const tensor::NamedFunction named("hinge_embedding_loss");
  require_same("hinge_embedding_loss", x, target);
  const Tensor promoted = to_compute_dtype(x);
  return reduced(where(target == 1, promoted, (margin - promoted).relu()), reduction, x);
}

namespace {

/// Clamped to eps, with gradient 0 there.
Tensor length(const Tensor& x, int64_t axis, double eps) {
  const Tensor squares = x.square().sum(axis), tiny = squares <= eps * eps;
  return where(tiny, eps, where(tiny, 1.0, squares).sqrt());
}

}  // namespace

Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t axis, double eps) {
  const tensor::NamedFunction named("cosine_similarity");
  const Tensor wide_a = to_compute_dtype(a), wide_b = to_compute_dtype(b),
               product = wide_a * wide_b;
  const int64_t at = tensor::checked_axis("cosine_similarity", axis, product.ndim());
  const Shape shape = product.shape();
  const Tensor lengths =
      length(wide_a.expand(shape), at, eps) * length(wide_b.expand(shape), at, eps);
  return (product.sum(at) / lengths).cast(tensor::real_dtype(promote(a.dtype(), b.dtype())));
}

}  // namespace plugrad

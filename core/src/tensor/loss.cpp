// Losses.
#include "base/check.h"
#include "plugrad/functional.h"
#include "plugrad/loss.h"

namespace plugrad {

namespace {

Tensor reduced(const Tensor& loss, Reduction reduction) {
  if (reduction == Reduction::None) return loss;
  return reduction == Reduction::Sum ? loss.sum() : loss.mean();
}

void require_same(const char* function, const Tensor& x, const Tensor& target) {
  require(x.shape() == target.shape(), "[{}] shapes {} and {} differ", function,
          to_string(x.shape()), to_string(target.shape()));
}

/// The log-probability of one class, mixed with the mean over all of them.
Tensor smoothed(const Tensor& of_class, const Tensor& log_p, double smoothing) {
  if (smoothing == 0.0) return of_class;
  return of_class * (1.0 - smoothing) + log_p.mean(-1) * smoothing;
}

}  // namespace

Tensor sparse_categorical_crossentropy(const Tensor& logits, const Tensor& labels,
                                       const CrossEntropyOptions& o) {
  constexpr const char* kName = "sparse_categorical_crossentropy";
  require(logits.ndim() > 0, "[{}] logits have no axis of classes", kName);
  Shape expected = logits.shape();
  const int64_t classes = expected.back();
  expected.pop_back();
  require(is_integer(labels.dtype()), "[{}] labels are {}, not integers; cast them", kName,
          name_of(labels.dtype()));
  require(labels.shape() == expected, "[{}] labels {} do not fit logits {}: expected {}", kName,
          to_string(labels.shape()), to_string(logits.shape()), to_string(expected));
  require(o.label_smoothing >= 0.0 && o.label_smoothing <= 1.0,
          "[{}] label_smoothing is {}, not in [0, 1]", kName, o.label_smoothing);
  const Tensor log_p = logits.log_softmax(-1);
  const Tensor hit = labels.unsqueeze(-1) == Tensor::arange(classes);
  Tensor loss = -smoothed(where(hit, log_p, 0.0).sum(-1), log_p, o.label_smoothing);
  if (!o.ignore_index) return reduced(loss, o.reduction);
  const Tensor counts = labels != *o.ignore_index;
  loss = where(counts, loss, 0.0);
  return o.reduction == Reduction::Mean ? loss.sum() / counts.sum() : reduced(loss, o.reduction);
}

Tensor cross_entropy(const Tensor& logits, const Tensor& probabilities,
                     const CrossEntropyOptions& o) {
  require_same("cross_entropy", logits, probabilities);
  const Tensor log_p = logits.log_softmax(-1);
  return reduced(-smoothed((log_p * probabilities).sum(-1), log_p, o.label_smoothing), o.reduction);
}

Tensor binary_crossentropy(const Tensor& x, const Tensor& target, Reduction reduction) {
  require_same("binary_crossentropy", x, target);
  const auto bounded_log = [](const Tensor& p) { return p.log().maximum(-100.0); };
  return reduced(-(target * bounded_log(x) + (1.0 - target) * bounded_log(1.0 - x)), reduction);
}

Tensor binary_crossentropy_logits(const Tensor& logits, const Tensor& target, Reduction reduction) {
  require_same("binary_crossentropy_logits", logits, target);
  return reduced(logits.softplus() - logits * target, reduction);
}

Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  require_same("mse_loss", x, target);
  return reduced((x - target).square(), reduction);
}

Tensor l1_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  require_same("l1_loss", x, target);
  return reduced((x - target).abs(), reduction);
}

}  // namespace plugrad

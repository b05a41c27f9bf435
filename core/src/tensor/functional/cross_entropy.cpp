// Losses of classification with one class for each sample.
#include "plugrad/functional.h"
#include "tensor/functional/loss.h"
#include "tensor/index/check_indices.h"
#include "tensor/lazy_text.h"
#include "tensor/record.h"

namespace plugrad {

using tensor::reduced;
using tensor::to_compute_dtype;

namespace {

struct Checked {
  std::string_view function;
  int64_t axis;  ///< the axis of classes
  int64_t classes;
};

void require_options(const Checked& c, const CrossEntropyOptions& o) {
  require(o.label_smoothing >= 0.0 && o.label_smoothing <= 1.0,
          "[{}] label_smoothing is {}, not in [0, 1]", c.function, o.label_smoothing);
  require(!o.weight.defined() || o.weight.shape() == Shape{c.classes},
          "[{}] weight {} does not have one value for each of {} classes", c.function,
          o.weight.defined() ? to_string(o.weight.shape()) : "", c.classes);
}

Tensor labels_of(const Checked& c, const Tensor& logits, const Tensor& labels,
                 const CrossEntropyOptions& o) {
  Shape expected = logits.shape();
  expected.erase(expected.begin() + c.axis);
  require_type(is_integer(labels.dtype()), "[{}] labels are {}, not integers; cast them",
               c.function, name_of(labels.dtype()));
  if (labels.shape() != expected)
    fail(ErrorKind::User, "[{}] labels {} do not fit logits {}: expected {}", c.function,
         tensor::shown_shape(labels), tensor::shown_shape(logits), to_string(expected));
  return tensor::in_range(c.function, "label", labels, 0, c.classes, o.ignore_index);
}

/// Reshapes one number for each class to the axis of classes.
Tensor classes_along(const Checked& c, int64_t rank, const Tensor& list) {
  Shape shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(c.axis)] = c.classes;
  return list.reshape(shape);
}

/// (1 - s) of_target + s / classes * the sum over all classes.
Tensor smoothed(const Checked& c, const Tensor& of_target, const Tensor& log_p, double s) {
  if (s == 0.0) return of_target;
  return of_target * (1.0 - s) + log_p.sum(c.axis) * (s / static_cast<double>(c.classes));
}

/// The loss for integer labels. Class weights scale `log_p`.
Tensor of_labels(const Checked& c, const Tensor& log_p, const Tensor& labels,
                 const CrossEntropyOptions& o, const Tensor& predictions) {
  const Tensor hit =
      labels.unsqueeze(c.axis) == classes_along(c, log_p.ndim(), Tensor::arange(c.classes));
  const auto pick = [&](const Tensor& x) { return where(hit, x, 0.0).sum(c.axis); };
  Tensor weights;
  Tensor scaled = log_p;
  if (o.weight.defined()) {
    const Tensor of_class = classes_along(c, log_p.ndim(), to_compute_dtype(o.weight));
    scaled = log_p * of_class;
    weights = pick(of_class);
  }
  Tensor loss = -smoothed(c, pick(scaled), scaled, o.label_smoothing);
  if (o.ignore_index) {
    const Tensor counts = labels != *o.ignore_index;
    loss = where(counts, loss, 0.0);
    weights = weights.defined() ? where(counts, weights, 0.0) : counts.cast(loss.dtype());
  }
  if (o.reduction == Reduction::Mean && weights.defined())
    return tensor::to_result_dtype(loss.sum() / weights.sum(), predictions);
  return reduced(loss, o.reduction, predictions);
}

Tensor of_probabilities(const Checked& c, const Tensor& log_p, const Tensor& probabilities,
                        const CrossEntropyOptions& o, const Tensor& predictions) {
  require(probabilities.shape() == log_p.shape(), "[{}] logits {} and probabilities {} differ",
          c.function, tensor::lazy_text(log_p), tensor::lazy_text(probabilities));
  require(!o.ignore_index, "[{}] ignore_index is for labels, and the targets are probabilities",
          c.function);
  const Tensor scaled = o.weight.defined()
                            ? log_p * classes_along(c, log_p.ndim(), to_compute_dtype(o.weight))
                            : log_p;
  const Tensor loss = -smoothed(c, (scaled * to_compute_dtype(probabilities)).sum(c.axis), scaled,
                                o.label_smoothing);
  return reduced(loss, o.reduction, predictions);
}

Checked checked(std::string_view function, const Tensor& logits, bool classes_last) {
  require(logits.ndim() > 0, "[{}] logits have no axis of classes", function);
  const int64_t last = logits.ndim() - 1, axis = classes_last ? last : std::min<int64_t>(1, last);
  return {function, axis, logits.size(axis)};
}

}  // namespace

Tensor sparse_categorical_crossentropy(const Tensor& logits, const Tensor& labels,
                                       const CrossEntropyOptions& o) {
  const tensor::NamedFunction named("sparse_categorical_crossentropy");
  const Checked c = checked("sparse_categorical_crossentropy", logits, true);
  require_options(c, o);
  const Tensor inside = labels_of(c, logits, labels, o);
  return of_labels(c, to_compute_dtype(logits).log_softmax(c.axis), inside, o, logits);
}

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const CrossEntropyOptions& o) {
  const tensor::NamedFunction named("cross_entropy");
  const Checked c = checked("cross_entropy", logits, false);
  require_options(c, o);
  if (is_float(targets.dtype()))
    return of_probabilities(c, to_compute_dtype(logits).log_softmax(c.axis), targets, o, logits);
  const Tensor labels = labels_of(c, logits, targets, o);
  return of_labels(c, to_compute_dtype(logits).log_softmax(c.axis), labels, o, logits);
}

Tensor nll_loss(const Tensor& log_p, const Tensor& labels, const CrossEntropyOptions& o) {
  const tensor::NamedFunction named("nll_loss");
  const Checked c = checked("nll_loss", log_p, false);
  require_options(c, o);
  require(o.label_smoothing == 0.0, "[nll_loss] has no label_smoothing; use cross_entropy");
  const Tensor inside = labels_of(c, log_p, labels, o);
  return of_labels(c, to_compute_dtype(log_p), inside, o, log_p);
}

}  // namespace plugrad

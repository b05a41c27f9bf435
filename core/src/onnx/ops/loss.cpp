// Losses of labels.
#include "plugrad/loss.h"

#include "base/check.h"
#include "onnx/ops/tables.h"

namespace plugrad::onnx {
namespace {

Reduction reduction_of(Call& call) {
  const std::string_view how = call.text("reduction", "mean");
  if (how == "mean") return Reduction::Mean;
  if (how == "sum") return Reduction::Sum;
  return Reduction::None;
}

// Classes are axis 1.
Tensor loss_of(Call& call, const Tensor& log_p) {
  CrossEntropyOptions options;
  options.reduction = reduction_of(call);
  options.weight = call.optional(2);
  if (call.attribute("ignore_index")) options.ignore_index = call.integer("ignore_index", 0);
  return nll_loss(log_p, call[1], options);
}

Values negative_log_likelihood(Call& call) {
  return {loss_of(call, call[0])};
}
Values softmax_cross_entropy(Call& call) {
  const Tensor log_p = call[0].log_softmax(1);
  return {loss_of(call, log_p), log_p};
}

constexpr OperatorRow kLossRows[] = {
    {"NegativeLogLikelihoodLoss", negative_log_likelihood},
    {"SoftmaxCrossEntropyLoss", softmax_cross_entropy},
};

}  // namespace

std::span<const OperatorRow> loss_operators() {
  return kLossRows;
}

}  // namespace plugrad::onnx

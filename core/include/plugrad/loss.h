/// Losses: how far predictions are from targets, as one number or one a sample.
#pragma once

#include "plugrad/tensor.h"

namespace plugrad {

/// How a loss over many samples becomes one number, or does not.
enum class Reduction : uint8_t { Mean, Sum, None };

struct CrossEntropyOptions {
  double label_smoothing = 0.0;
  std::optional<int64_t> ignore_index = {};  ///< samples of this class count for nothing
  Reduction reduction = Reduction::Mean;
};
/// -log softmax(logits)[label]. Shape: logits (…, classes), labels (…) of integers. Errors: User
/// for labels of another shape or of floats.
PLUGRAD_API Tensor sparse_categorical_crossentropy(const Tensor& logits, const Tensor& labels,
                                                   const CrossEntropyOptions& options = {});
/// Against probabilities of all classes, in the last axis of both.
PLUGRAD_API Tensor cross_entropy(const Tensor& logits, const Tensor& probabilities,
                                 const CrossEntropyOptions& options = {});
/// Of probabilities in [0, 1]; the logarithm is kept above -100.
PLUGRAD_API Tensor binary_crossentropy(const Tensor& x, const Tensor& target,
                                       Reduction reduction = Reduction::Mean);
/// Of sigmoid(logits), without overflow.
PLUGRAD_API Tensor binary_crossentropy_logits(const Tensor& logits, const Tensor& target,
                                              Reduction reduction = Reduction::Mean);
PLUGRAD_API Tensor mse_loss(const Tensor& x, const Tensor& target,
                            Reduction reduction = Reduction::Mean);
PLUGRAD_API Tensor l1_loss(const Tensor& x, const Tensor& target,
                           Reduction reduction = Reduction::Mean);

}  // namespace plugrad

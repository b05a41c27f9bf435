/// Losses: the distance of predictions from targets, as one number or one for each sample. Both
/// have one shape unless a loss says otherwise. Dtype: that of the predictions (integers as f32);
/// halves are computed in f32. Errors: User for shapes that differ.
#pragma once

#include "plugrad/tensor.h"

namespace plugrad {

/// Reduction of the losses of the samples: their mean, their sum, or none.
enum class Reduction : uint8_t { Mean, Sum, None };

struct CrossEntropyOptions {
  double label_smoothing = 0.0;  ///< fraction of each target that is spread over all classes
  /// samples with this label add neither loss nor weight
  std::optional<int64_t> ignore_index = {};
  Reduction reduction = Reduction::Mean;  ///< Mean: the weighted mean of the samples
  Tensor weight = {};                     ///< one for each class; undefined: 1
};
/// -log softmax(logits)[label]. Shape: logits (…, classes), labels (…) of integers. Errors: User
/// for labels of another shape or of a float dtype, or labels that the host knows to be out of
/// range.
PLUGRAD_API Tensor sparse_categorical_crossentropy(const Tensor& logits, const Tensor& labels,
                                                   const CrossEntropyOptions& options = {});
/// The same with classes in axis 1 (0 if it is the only one), as in PyTorch. Shape: logits (n,
/// classes, …); targets are labels (n, …) of integers, or probabilities as floats in the shape of
/// logits; the mean over probabilities divides by the number of samples, not by their weights.
PLUGRAD_API Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                                 const CrossEntropyOptions& options = {});
/// -log_p[label], where `log_p` are log-probabilities. Shape and errors as in cross_entropy with
/// labels; no label smoothing.
PLUGRAD_API Tensor nll_loss(const Tensor& log_p, const Tensor& labels,
                            const CrossEntropyOptions& options = {});

struct BinaryCrossentropyOptions {
  Tensor weight = {};      ///< of each element; broadcasts
  Tensor pos_weight = {};  ///< factor of the positive term; broadcasts; logits only
  Reduction reduction = Reduction::Mean;
};
/// -target log x - (1 - target) log(1 - x) of probabilities in [0, 1]. Logarithms are clamped to at
/// least -100; the slope there is 1e12.
PLUGRAD_API Tensor binary_crossentropy(const Tensor& x, const Tensor& target,
                                       const BinaryCrossentropyOptions& options = {});
PLUGRAD_API Tensor binary_crossentropy(const Tensor& x, const Tensor& target, Reduction reduction);
/// The same for sigmoid(logits), without overflow.
PLUGRAD_API Tensor binary_crossentropy_logits(const Tensor& logits, const Tensor& target,
                                              const BinaryCrossentropyOptions& options = {});
PLUGRAD_API Tensor binary_crossentropy_logits(const Tensor& logits, const Tensor& target,
                                              Reduction reduction);

/// (x - target)².
PLUGRAD_API Tensor mse_loss(const Tensor& x, const Tensor& target,
                            Reduction reduction = Reduction::Mean);
/// |x - target|.
PLUGRAD_API Tensor l1_loss(const Tensor& x, const Tensor& target,
                           Reduction reduction = Reduction::Mean);
/// (x - target)² / 2 up to a distance of delta, and delta (|x - target| - delta / 2) beyond; value
/// and slope are continuous. Errors: User unless delta is positive. Huber 1964.
PLUGRAD_API Tensor huber_loss(const Tensor& x, const Tensor& target, double delta = 1.0,
                              Reduction reduction = Reduction::Mean);
/// huber_loss / beta; l1_loss if beta is 0. Errors: User for a negative beta. Girshick 2015.
PLUGRAD_API Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, double beta = 1.0,
                                  Reduction reduction = Reduction::Mean);
/// target (log target - log_q), 0 where target is 0. With `log_target` the target is a logarithm
/// too. Mean is over all elements; for the mean over samples divide the Sum by their number.
/// Kullback and Leibler 1951.
PLUGRAD_API Tensor kl_div(const Tensor& log_q, const Tensor& target,
                          Reduction reduction = Reduction::Mean, bool log_target = false);

/// max(0, margin - target (a - b)), with targets of 1 and -1. The three broadcast.
PLUGRAD_API Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& target,
                                       double margin = 0.0, Reduction reduction = Reduction::Mean);
/// x where the target is 1, max(0, margin - x) where it is -1.
PLUGRAD_API Tensor hinge_embedding_loss(const Tensor& x, const Tensor& target, double margin = 1.0,
                                        Reduction reduction = Reduction::Mean);

/// The cosine of the angle between vectors along `axis`; lengths below eps count as eps.
/// Shape: the broadcast of both without the axis.
PLUGRAD_API Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t axis = 1,
                                     double eps = 1e-8);

}  // namespace plugrad

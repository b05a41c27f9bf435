#include "onnx/ops/learning/post_transform.h"

#include <numbers>

#include "base/check.h"

namespace plugrad::onnx {
namespace {

// The inverse of the normal distribution. Source: Winitzki 2008, with the constant 0.147.
Tensor probit(const Tensor& x) {
  constexpr double a = 0.147;
  const Tensor centred = x * 2 - 1;
  const Tensor log = ((1 - centred) * (1 + centred)).log();
  const Tensor v = log / 2 + 2 / (std::numbers::pi * a);
  const Tensor inverse = ((v.square() - log / a).sqrt() - v).sqrt();
  return centred.sign() * inverse * std::numbers::sqrt2;
}

}  // namespace

Tensor row_of(const std::vector<double>& numbers) {
  return Tensor::from(std::vector<float>(numbers.begin(), numbers.end()));
}

Tensor post_transformed(Call& call, std::string_view transform, const Tensor& scores) {
  if (transform == "NONE") return scores;
  if (transform == "LOGISTIC") return scores.sigmoid();
  if (transform == "SOFTMAX") return scores.softmax(-1);
  if (transform == "PROBIT") return probit(scores);
  if (transform != "SOFTMAX_ZERO")
    call.wrong(fmt::format("post_transform \"{}\" is unknown", transform));
  // A softmax in which scores of 0 stay 0.
  const Tensor e =
      (scores.abs() > 1e-7).where((scores - scores.max(-1, true)).exp(), scores.zeros_like());
  const Tensor sum = e.sum(-1, true);
  return (sum == 0).where(e.full_like(0.5), e / sum);
}

Value labels_of(Call& call, const Tensor& index, std::string_view integers) {
  const auto names = call.texts("classlabels_strings");
  if (names.empty()) return Tensor::from(call.integers(integers)).index_select(0, index);
  if (call.recording().is_jitted) throw NeedsHostValues();
  Strings labels{index.shape(), {}};
  for (const auto i : index.to_vector<int64_t>())
    labels.elements.emplace_back(names.at(static_cast<size_t>(i)));
  return labels;
}

}  // namespace plugrad::onnx

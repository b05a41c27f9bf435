// Support vector machines. Source of their meaning: the operator schemas of ONNX 1.23, and what these
// leave open, ONNX Runtime 1.32.
#include <algorithm>
#include <cmath>
#include <span>

#include "base/binding.h"
#include "base/check.h"
#include "onnx/ops/learning/post_transform.h"
#include "onnx/ops/tables.h"
#include "plugrad/functional.h"

namespace plugrad::onnx {
namespace {

using Numbers = std::vector<double>;

// The samples (n, features).
Tensor samples_for(Call& call, int64_t features) {
  const Tensor given = call[0].cast(DType::F32);
  const Tensor x = given.ndim() == 1 ? given.unsqueeze(0) : given;
  if (x.ndim() != 2 || x.size(1) != features)
    call.wrong(fmt::format("its vectors have {} features, the input has the shape {}", features,
                           to_string(given.shape())));
  return x;
}

// The numbers of an attribute as `rows` rows of equal length. Errors: User if they are none.
Tensor matrix_of(Call& call, std::string_view attribute, int64_t rows) {
  const Numbers numbers = call.numbers(attribute);
  if (rows < 1 || numbers.empty() || std::ssize(numbers) % rows != 0)
    call.wrong(
        fmt::format("{} has {} numbers, which are not {} rows", attribute, numbers.size(), rows));
  return row_of(numbers).reshape({rows, -1});
}

// The first `count` numbers of an attribute.
Numbers numbers_for(Call& call, std::string_view attribute, int64_t count) {
  Numbers numbers = call.numbers(attribute);
  if (std::ssize(numbers) < count)
    call.wrong(fmt::format("{} has {} numbers, it needs {}", attribute, numbers.size(), count));
  numbers.resize(static_cast<size_t>(count));
  return numbers;
}

// The kernel function of each sample and each vector. Shape: (n, vectors).
Tensor kernel_values(Call& call, const Tensor& vectors) {
  const Tensor x = samples_for(call, vectors.size(1));
  const std::string_view type = call.text("kernel_type", "LINEAR");
  if (type == "LINEAR") return x.matmul(vectors.transpose());
  const Numbers parameters = numbers_for(call, "kernel_params", 3);
  const double gamma = parameters[0], offset = parameters[1], degree = parameters[2];
  if (type == "RBF") return ((x.unsqueeze(1) - vectors).square().sum(-1) * -gamma).exp();
  const Tensor product = x.matmul(vectors.transpose()) * gamma + offset;
  return type == "POLY" ? product.pow(degree) : product.tanh();
}

// The score of each pair of classes is a sum over the support vectors of both.
struct Pairs {
  std::vector<float> weights;        // (vectors, pairs)
  std::vector<float> first, second;  // (pairs, classes): 1 at the pair's class
  int64_t count = 0;
};

Pairs pairs_of(Call& call, const std::vector<int64_t>& vectors_per_class, int64_t vectors) {
  const int64_t classes = std::ssize(vectors_per_class);
  Pairs pairs{{}, {}, {}, classes * (classes - 1) / 2};
  const int64_t most = std::max(vectors, classes);
  require_host_elements({most, pairs.count});
  const Numbers coefficients = numbers_for(call, "coefficients", (classes - 1) * vectors);
  const auto place = [](int64_t row, int64_t columns, int64_t column) {
    return static_cast<size_t>(row * columns + column);
  };
  pairs.weights.resize(place(vectors, pairs.count, 0));
  pairs.first.resize(place(pairs.count, classes, 0));
  pairs.second = pairs.first;
  std::vector<int64_t> start{0};
  for (const int64_t count : vectors_per_class) start.push_back(start.back() + count);
  int64_t pair = 0;
  for (int64_t i = 0; i < classes; ++i)
    for (int64_t j = i + 1; j < classes; ++j, ++pair) {
      poll_interruption();
      const auto take = [&](int64_t of, int64_t row) {
        for (auto v = start[static_cast<size_t>(of)]; v < start[static_cast<size_t>(of) + 1]; ++v)
          pairs.weights[place(v, pairs.count, pair)] =
              static_cast<float>(coefficients[place(row, vectors, v)]);
      };
      take(i, j - 1);
      take(j, i);
      pairs.first[place(pair, classes, i)] = 1;
      pairs.second[place(pair, classes, j)] = 1;
    }
  return pairs;
}

// The probabilities of the classes, of which r[i * classes + j] is that of i in the pair (i, j).
// Source: Wu, Lin, Weng. Probability estimates for multi-class classification by pairwise coupling.
// 2004, algorithm 2, which ends as soon as the error is small.
void couple(std::span<const double> r, std::span<double> p) {
  constexpr int kMostRounds = 100;
  const size_t classes = p.size();
  const double small = 0.005 / static_cast<double>(classes);
  Numbers q(classes * classes, 0), qp(classes);
  for (size_t i = 0; i < classes; ++i)
    for (size_t j = 0; j < classes; ++j) {
      if (i == j) continue;
      q[i * classes + i] += r[j * classes + i] * r[j * classes + i];
      q[i * classes + j] = -r[j * classes + i] * r[i * classes + j];
    }
  std::ranges::fill(p, 1 / static_cast<double>(classes));
  for (int round = 0; round < kMostRounds; ++round) {
    poll_interruption();
    double pqp = 0, error = 0;
    for (size_t i = 0; i < classes; ++i) {
      qp[i] = 0;
      for (size_t j = 0; j < classes; ++j) qp[i] += q[i * classes + j] * p[j];
      pqp += p[i] * qp[i];
    }
    for (const double each : qp) error = std::max(error, std::abs(each - pqp));
    if (error < small) return;
    for (size_t i = 0; i < classes; ++i) {
      const double own = q[i * classes + i], step = (pqp - qp[i]) / own, sum = 1 + step;
      p[i] += step;
      pqp = (pqp + step * (step * own + 2 * qp[i])) / sum / sum;
      for (size_t j = 0; j < classes; ++j) {
        qp[j] = (qp[j] + step * q[i * classes + j]) / sum;
        p[j] /= sum;
      }
    }
  }
}

// Of the scores of pairs (n, pairs), on the host: each sample takes a number of rounds of its own.
Tensor probabilities_of(Call& call, const Tensor& scores, size_t classes) {
  constexpr double kLeast = 1e-7;  // of a pair's probability
  if (call.recording().is_jitted) throw NeedsHostValues();
  const int64_t pairs = scores.size(1);
  const Numbers a = numbers_for(call, "prob_a", pairs), b = numbers_for(call, "prob_b", pairs);
  const auto given = scores.to_vector<float>();
  std::vector<float> results;
  Numbers r(classes * classes), p(classes);
  auto score = given.begin();
  for (int64_t sample = 0; sample < scores.size(0); ++sample) {
    size_t pair = 0;
    for (size_t i = 0; i < classes; ++i)
      for (size_t j = i + 1; j < classes; ++j, ++pair, ++score) {
        const double first = 1 / (1 + std::exp(*score * a[pair] + b[pair]));
        r[i * classes + j] = std::clamp(first, kLeast, 1 - kLeast);
        r[j * classes + i] = 1 - r[i * classes + j];
      }
    couple(r, p);
    results.insert(results.end(), p.begin(), p.end());
  }
  return Tensor::from(results, {scores.size(0), static_cast<int64_t>(classes)});
}

// Of a single pair, the scores of both classes.
Tensor both_scores(Call& call, const Tensor& score, std::string_view transform) {
  if (transform == "NONE" || transform == "LOGISTIC")
    return post_transformed(call, transform, cat({-score, score}, 1));
  const Tensor both = cat({1 - score, score}, 1);
  return transform == "PROBIT" ? post_transformed(call, transform, both) : both;
}

// Without support vectors, each class has its own coefficients.
Values linear_machine(Call& call, int64_t classes, std::string_view transform) {
  const Tensor weights = matrix_of(call, "coefficients", classes);
  const Tensor scores = samples_for(call, weights.size(1)).matmul(weights.transpose()) +
                        numbers_for(call, "rho", 1)[0];
  return {labels_of(call, scores.argmax(1), "classlabels_ints"),
          post_transformed(call, transform, scores)};
}

// The label is that of the class with most votes of pairs, the first one of several.
Values svm_classifier(Call& call) {
  const auto classes = static_cast<int64_t>(
      std::max(call.texts("classlabels_strings").size(), call.integers("classlabels_ints").size()));
  const std::string_view transform = call.text("post_transform", "NONE");
  const std::vector<int64_t> vectors_per_class = call.integers("vectors_per_class");
  int64_t vectors = 0;
  for (const int64_t count : vectors_per_class) vectors += count;
  if (vectors == 0) return linear_machine(call, classes, transform);
  if (classes < 2 || std::ssize(vectors_per_class) != classes)
    call.wrong(fmt::format("vectors_per_class has {} numbers for {} labels",
                           vectors_per_class.size(), classes));
  const Tensor kernels = kernel_values(call, matrix_of(call, "support_vectors", vectors));
  const Pairs pairs = pairs_of(call, vectors_per_class, vectors);
  const Tensor scores = kernels.matmul(Tensor::from(pairs.weights, {vectors, pairs.count})) +
                        row_of(numbers_for(call, "rho", pairs.count));
  const Tensor wins = (scores > 0).cast(DType::F32);
  const Shape table{pairs.count, classes};
  const Tensor votes = wins.matmul(Tensor::from(pairs.first, table)) +
                       (1 - wins).matmul(Tensor::from(pairs.second, table));
  const Value labels = labels_of(call, votes.argmax(1), "classlabels_ints");
  if (!call.numbers("prob_a").empty())
    return {labels, post_transformed(call, transform,
                                     probabilities_of(call, scores, static_cast<size_t>(classes)))};
  return {labels, classes == 2 ? both_scores(call, scores, transform)
                               : post_transformed(call, transform, scores)};
}

Values svm_regressor(Call& call) {
  if (call.text("post_transform", "NONE") != "NONE")
    call.unsupported("a post_transform, which ONNX Runtime leaves out");
  const int64_t vectors = call.integer("n_supports", 0);
  const Tensor weights = matrix_of(call, "coefficients", 1).transpose();
  const Tensor values = vectors == 0
                            ? samples_for(call, weights.size(0))
                            : kernel_values(call, matrix_of(call, "support_vectors", vectors));
  if (weights.size(0) != values.size(1))
    call.wrong(fmt::format("{} coefficients are not for {} support vectors", weights.size(0),
                           values.size(1)));
  const Tensor score = values.matmul(weights) + numbers_for(call, "rho", 1)[0];
  if (call.integer("one_class", 0) == 0) return {score};
  return {(score > 0).where(score.full_like(1), score.full_like(-1))};
}

constexpr OperatorRow kSupportVectorRows[] = {
    {"SVMClassifier", svm_classifier, false, kMachineLearning},
    {"SVMRegressor", svm_regressor, false, kMachineLearning},
};

}  // namespace

std::span<const OperatorRow> support_vector_operators() {
  return kSupportVectorRows;
}

}  // namespace plugrad::onnx

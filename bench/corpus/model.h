// Compares the cost model's ranking of the corpus's rows with measured times.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "bench/corpus/run.h"

namespace plugrad::bench {

struct ModelKernel {
  std::string name, optimisations;
  double predicted;  ///< seconds
};

struct ModelRow {
  std::string name, family;
  int threads = 1;
  double predicted = 0, measured = 0;  ///< seconds of all kernels of a replay
  std::vector<ModelKernel> kernels = {};
};

/// Measures the selected rows without peers; medians of at least 7 replays.
void run_model(const CorpusChoice& choice, const std::function<void(const ModelRow&)>& report);

/// Spearman's rank correlation of two lists of equal length; equal values share their mean rank.
/// NaN for fewer than two values, or if all values of a list are equal.
double rank_correlation(std::span<const double> a, std::span<const double> b);

struct ModelSummary {
  std::string family;  ///< or "all"
  int threads;
  size_t rows;
  double rank_correlation;
  double ratio;   ///< geometric mean of predicted over measured
  double spread;  ///< geometric standard deviation of the ratio
};
std::vector<ModelSummary> summarise(const std::vector<ModelRow>& rows);

nlohmann::ordered_json to_json(const ModelRow& row);
nlohmann::ordered_json to_json(const ModelSummary& summary);

}  // namespace plugrad::bench

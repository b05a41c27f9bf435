#include "bench/corpus/model.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/settings.h"
#include "bench/rows/subject.h"
#include "engine/refine/choices.h"
#include "engine/session.h"
#include "runtime/registry.h"
#include "tensor/handles.h"
#include "tuning/calibration/machines.h"

namespace plugrad::bench {
namespace {

constexpr Rounds kRounds{.warm_up = 2, .least = 7, .seconds = 0.1};

// A replay stores results that are views of inputs, as contiguous() does.
void predict(const std::vector<Tensor>& results, ModelRow& row) {
  std::vector<Tensor> outputs;
  for (const Tensor& result : results) outputs.push_back(result.contiguous());
  std::vector<engine::TensorState*> states;
  for (const Tensor& output : outputs) states.push_back(tensor::state_of(output).get());
  for (const engine::KernelReport& kernel : engine::Session::current().kernels_of(states)) {
    const auto machine =
        tuning::machine_of(runtime::Registry::instance().find_device(kernel.device));
    const double seconds = engine::prediction_of(kernel).prediction.seconds(*machine, row.threads);
    row.kernels.push_back({kernel.name, kernel.optimisations, seconds});
    row.predicted += seconds;
  }
}

ModelRow measure_model_row(const CorpusRow& row, int threads) {
  engine::Session::current().collect();
  engine::Session::current().clear_caches();
  const ThreadScope scope(threads);
  // Uses the heuristic's schedules, ignoring search results.
  const SettingScope search([](Settings& s) { s.schedule_database = "/dev/null", s.tune = false; });
  ModelRow out{.name = row.item.name, .family = row.family, .threads = threads};
  Case item = row.item;
  item.threads = threads;
  const Subject subject = make_subject(item);
  predict(subject.record(), out);
  out.measured = measure({subject.round}, kRounds)[0].median;
  return out;
}

std::vector<double> ranks_of(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (size_t first = 0; first < order.size();) {
    size_t end = first + 1;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    for (size_t i = first; i < end; ++i) ranks[order[i]] = static_cast<double>(first + end - 1) / 2;
    first = end;
  }
  return ranks;
}

ModelSummary model_summary(const std::string& family, int threads,
                           const std::vector<ModelRow>& rows) {
  std::vector<double> predicted, measured;
  double sum = 0, squares = 0;
  for (const ModelRow& row : rows) {
    if (row.threads != threads || (family != "all" && row.family != family)) continue;
    predicted.push_back(row.predicted);
    measured.push_back(row.measured);
    const double logarithm = std::log(row.predicted / row.measured);
    sum += logarithm;
    squares += logarithm * logarithm;
  }
  const auto count = static_cast<double>(predicted.size());
  const double mean = sum / count;
  return {family,           threads,
          predicted.size(), rank_correlation(predicted, measured),
          std::exp(mean),   std::exp(std::sqrt(std::max(0.0, squares / count - mean * mean)))};
}

}  // namespace

void run_model(const CorpusChoice& choice, const std::function<void(const ModelRow&)>& report) {
  for (const int threads : choice.threads)
    for (const CorpusRow& row : chosen_rows(choice)) report(measure_model_row(row, threads));
}

double rank_correlation(std::span<const double> a, std::span<const double> b) {
  const std::vector<double> ranks_a = ranks_of(a), ranks_b = ranks_of(b);
  const double mean = (static_cast<double>(a.size()) - 1) / 2;
  double both = 0, of_a = 0, of_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    both += (ranks_a[i] - mean) * (ranks_b[i] - mean);
    of_a += (ranks_a[i] - mean) * (ranks_a[i] - mean);
    of_b += (ranks_b[i] - mean) * (ranks_b[i] - mean);
  }
  return both / std::sqrt(of_a * of_b);
}

std::vector<ModelSummary> summarise(const std::vector<ModelRow>& rows) {
  std::set<int> threads;
  for (const ModelRow& row : rows) threads.insert(row.threads);
  std::vector<ModelSummary> out;
  for (const int count : threads) {
    std::vector<std::string> families = corpus_families();
    families.emplace_back("all");
    for (const std::string& family : families) {
      ModelSummary summary = model_summary(family, count, rows);
      if (summary.rows > 0) out.push_back(std::move(summary));
    }
  }
  return out;
}

nlohmann::ordered_json to_json(const ModelRow& row) {
  nlohmann::ordered_json out = {
      {"name", row.name},         {"family", row.family},
      {"threads", row.threads},   {"predicted", row.predicted},
      {"measured", row.measured}, {"kernels", nlohmann::ordered_json::array()}};
  for (const ModelKernel& kernel : row.kernels)
    out["kernels"].push_back({{"name", kernel.name},
                              {"optimisations", kernel.optimisations},
                              {"predicted", kernel.predicted}});
  return out;
}

nlohmann::ordered_json to_json(const ModelSummary& summary) {
  return {{"family", summary.family},
          {"threads", summary.threads},
          {"rows", summary.rows},
          {"rank_correlation", summary.rank_correlation},
          {"predicted_over_measured", summary.ratio},
          {"spread", summary.spread}};
}

}  // namespace plugrad::bench

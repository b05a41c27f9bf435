#include "bench/micro/micro.h"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace plugrad::bench {
namespace {

// Collects the repetitions instead of printing them.
class Collector : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.error_occurred) throw std::runtime_error(run.error_message);
      if (run.run_type == Run::RT_Iteration) runs_.push_back(run);
    }
  }
  const std::vector<Run>& runs() const { return runs_; }

 private:
  std::vector<Run> runs_;
};

benchmark::TimeUnit time_unit(const std::string& unit) {
  if (unit == "s") return benchmark::kSecond;
  if (unit == "ms") return benchmark::kMillisecond;
  return benchmark::kMicrosecond;
}

bool is_rate(const Micro& micro) {
  return micro.unit == "million/s";
}

double value_of(const Micro& micro, const benchmark::BenchmarkReporter::Run& run) {
  return is_rate(micro) ? run.counters.at("items_per_second").value * 1e-6
                        : run.GetAdjustedRealTime();
}

double statistic_of(const Micro& micro, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  if (micro.statistic == Statistic::Median) return values[values.size() / 2];
  return is_rate(micro) ? values.back() : values.front();
}

void measure_micro(const Micro& micro, const Report& report) {
  const auto body = micro.prepare();
  const int unmeasured = micro.is_warmed_up ? 1 : 0;
  benchmark::ClearRegisteredBenchmarks();
  benchmark::internal::Benchmark* registered = benchmark::RegisterBenchmark(
      micro.name.c_str(), [&](benchmark::State& state) { body(state); });
  registered->Unit(time_unit(micro.unit))
      ->Iterations(micro.iterations)
      ->Repetitions(micro.repetitions + unmeasured);
  if (micro.is_timed_by_hand)
    registered->UseManualTime();
  else
    registered->UseRealTime();
  Collector collector;
  benchmark::RunSpecifiedBenchmarks(&collector, ".");
  benchmark::ClearRegisteredBenchmarks();
  std::vector<double> values;
  for (const auto& run : collector.runs()) values.push_back(value_of(micro, run));
  values.erase(values.begin(), values.begin() + unmeasured);
  report({.name = micro.name,
          .value = statistic_of(micro, std::move(values)),
          .unit = micro.unit,
          .higher_is_better = is_rate(micro)});
  for (const std::string& counter : micro.counters)
    report({.name = micro.name + ", " + counter,
            .value = collector.runs().back().counters.at(counter).value,
            .unit = "kernels",
            .higher_is_better = false});
}

}  // namespace

Row micro_row(const Micro& micro) {
  std::vector<std::string> names = {micro.name};
  for (const std::string& counter : micro.counters) names.push_back(micro.name + ", " + counter);
  return {std::move(names), 0, [micro](Peers&, const Report& report) {
            measure_micro(micro, report);
            return true;
          }};
}

}  // namespace plugrad::bench

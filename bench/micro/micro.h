// Rows without peers, measured by Google Benchmark.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <string>
#include <vector>

#include "bench/row.h"

namespace plugrad::bench {

/// Over the repetitions: durations use the median, rates the best.
enum class Statistic { Median, Best };

struct Micro {
  std::string name;
  /// "us", "ms" or "s" per iteration; "million/s" of the items that the body counts.
  std::string unit;
  /// Prepares a row; returns the body, which Google Benchmark calls once per repetition. The body
  /// sets the time of each iteration if `is_timed_by_hand`.
  std::function<std::function<void(benchmark::State&)>()> prepare;
  int iterations = 1;   ///< per repetition; the time is their mean
  int repetitions = 9;  ///< after a warm-up
  Statistic statistic = Statistic::Median;
  bool is_timed_by_hand = false;
  bool is_warmed_up = true;                ///< false: measures the first call
  std::vector<std::string> counters = {};  ///< additional rows "NAME, COUNTER", in kernels
};

Row micro_row(const Micro& micro);

// The rows of the suite `framework`, by subject.
std::vector<Micro> graph_micros();
std::vector<Micro> call_micros();
std::vector<Micro> compile_micros();
std::vector<Micro> cold_micros();
std::vector<Micro> loading_micros();

}  // namespace plugrad::bench

// Rows without a peer: each is measured by Google Benchmark.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <string>
#include <vector>

#include "bench/row.h"

namespace plugrad::bench {

/// Of the repetitions: a duration is seldom too short, a rate seldom too high.
enum class Statistic { Median, Best };

struct Micro {
  std::string name;
  /// "us", "ms" or "s" of an iteration; "million/s": of the items that the body counts.
  std::string unit;
  /// What one row needs before it is measured; gives the body, which Google Benchmark calls once a
  /// repetition. A body sets the time of each iteration where `is_timed_by_hand`.
  std::function<std::function<void(benchmark::State&)>()> prepare;
  int iterations = 1;   ///< of a repetition, whose time is their mean
  int repetitions = 9;  ///< after one that does not count
  Statistic statistic = Statistic::Median;
  bool is_timed_by_hand = false;
  bool is_warmed_up = true;                ///< false: the first call is what is measured
  std::vector<std::string> counters = {};  ///< more rows, named "NAME, COUNTER", in kernels
};

Row micro_row(const Micro& micro);

// Those of the suite `framework`, by what they measure.
std::vector<Micro> graph_micros();
std::vector<Micro> call_micros();
std::vector<Micro> compile_micros();
std::vector<Micro> cold_micros();
std::vector<Micro> loading_micros();

}  // namespace plugrad::bench

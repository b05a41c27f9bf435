// Looks for the list of optimisations that makes one kernel fastest, by timing those that the cost
// model predicts to be fast. Sees no device: `measure` runs kernels, `accept` checks them.
#pragma once

#include <functional>
#include <span>

#include "codegen/search/search_space.h"

namespace plugrad::codegen {

/// A list that was timed.
struct Timed {
  KernelSchedule list;
  KernelCode code;
  double cost = 0;     // predicted
  double seconds = 0;  // of one launch
};

struct BeamProgress {
  uint32_t tried = 0;
  double first_seconds = 0, best_seconds = 0;  // of the heuristic's kernel and of the best so far
  double seconds_left = 0;
};

struct BeamOptions {
  uint32_t width = 1;                 // lists whose neighbours are looked at
  double seconds = 10;                // after which no more are measured
  std::vector<KernelSchedule> seeds;  // tried first, as far as they are legal
  uint32_t batch = 8;                 // lists measured at a time
  std::function<double()> now;        // seconds of some clock
  /// Seconds of one launch of each kernel, all timed side by side; infinity where one does not
  /// compile, crashes, or is clearly slower than the first.
  std::function<std::vector<double>(std::span<const KernelCode* const>)> measure;
  /// Whether the kernel, faster than all before it, computes the right values: a wrong one is
  /// dropped.
  std::function<bool(const Timed&)> accept;
  std::function<void(const BeamProgress&)> report = [](const BeamProgress&) {};
};

struct BeamResult {
  KernelSchedule list;  // the heuristic's where nothing accepted is faster
  double first_seconds = 0, seconds = 0;
  uint32_t tried = 0;
  bool is_better = false;  // than the heuristic's
};

/// Errors: what `measure` and `accept` throw.
BeamResult beam_search(const Graph& ast, Id sink, const pgr_device_caps& caps,
                       const Options& options, const BeamOptions& beam);

}  // namespace plugrad::codegen

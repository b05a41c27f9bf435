// Summarises corpus results: a geometric mean per family, and the worst rows.
#pragma once

#include <string>
#include <vector>

#include "bench/corpus/results.h"

namespace plugrad::bench {

constexpr double kCorpusFloor = 0.8;  ///< minimum ratio of a row

struct FamilySummary {
  std::string family;
  int threads;
  size_t rows;  ///< number of rows with a peer
  double mean;  ///< geometric, of the ratios
  double least;
  size_t below, wrong;  ///< rows below the floor; rows whose result differs
};

/// By family and number of threads; families without rows are omitted.
std::vector<FamilySummary> summarise(const std::vector<CorpusResult>& results);
/// The rows with the lowest ratios, lowest first.
std::vector<CorpusResult> worst_rows(std::vector<CorpusResult> results, size_t count);
/// The median by ratio of an odd number of runs of one row.
CorpusResult middle_run(std::vector<CorpusResult> runs);

}  // namespace plugrad::bench

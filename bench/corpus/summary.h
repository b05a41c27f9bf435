// Results of the corpus -> a geometric mean a family, and the rows that are worst.
#pragma once

#include <string>
#include <vector>

#include "bench/corpus/results.h"

namespace plugrad::bench {

constexpr double kCorpusFloor = 0.8;  ///< no row should be below it

struct FamilySummary {
  std::string family;
  int threads;
  size_t rows;  ///< with a peer
  double mean;  ///< geometric, of the ratios
  double least;
  size_t below, wrong;  ///< rows below the floor; rows whose result differs
};

/// By family and number of threads; families without a row are left out.
std::vector<FamilySummary> summarise(const std::vector<CorpusResult>& results);
/// Those of the lowest ratios, the lowest first.
std::vector<CorpusResult> worst_rows(std::vector<CorpusResult> results, size_t count);
/// Of an odd number of runs of one row, the one in the middle by ratio.
CorpusResult middle_run(std::vector<CorpusResult> runs);

}  // namespace plugrad::bench

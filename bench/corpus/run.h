// Measures corpus rows against their peers, and saves each result immediately.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/corpus/results.h"
#include "bench/corpus/rows.h"
#include "bench/peers/peers.h"

namespace plugrad::bench {

struct CorpusChoice {
  std::string family, filter;  ///< empty: all; `filter` is a part of the names
  std::vector<int> threads;
};

/// Errors: User for an unknown family.
std::vector<CorpusRow> chosen_rows(const CorpusChoice& choice);

/// Measures the rows that `file` lacks; a row below the floor is measured three times, and the
/// median is kept.
void run_corpus(const CorpusChoice& choice, Peers& peers, ResultFile& file,
                const std::function<void(const CorpusResult&)>& report);

}  // namespace plugrad::bench

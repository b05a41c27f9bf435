// Measures rows of the corpus beside their peers, each result kept at once.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/corpus/results.h"
#include "bench/corpus/rows.h"
#include "bench/peers/peers.h"

namespace plugrad::bench {

struct CorpusChoice {
  std::string family, filter;  ///< empty: all; part of names
  std::vector<int> threads;
};

/// Errors: User for a family that there is not.
std::vector<CorpusRow> chosen_rows(const CorpusChoice& choice);

/// Measures what `file` lacks; a row below the floor three times, of which the middle one counts.
void run_corpus(const CorpusChoice& choice, Peers& peers, ResultFile& file,
                const std::function<void(const CorpusResult&)>& report);

}  // namespace plugrad::bench

// `plugrad bench corpus`: the shapes of known networks, each compared with the fastest peer.
#pragma once

#include <string>
#include <vector>

#include "bench/corpus/run.h"

namespace plugrad::tools {

struct CorpusRun {
  bench::CorpusChoice choice;
  std::string results;  ///< results file; empty: in the cache folder
  bool is_resumed = false, json = false;
};

/// Peers that implement the corpus's kinds.
const std::vector<std::string>& corpus_peers();
/// Predicted and measured times, without peers.
int bench_model(const bench::CorpusChoice& choice, bool json);
void print_corpus(const bench::CorpusChoice& choice, bool json);
/// The exit code: failure if a row's result is wrong.
int bench_corpus(const CorpusRun& run, const std::vector<std::string>& names, bench::Peers& peers);

}  // namespace plugrad::tools

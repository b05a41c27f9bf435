// The shapes of known networks, read from the JSON files beside this one: a file a network.
//   {"title": where it comes from, "rows": [{"kind": of bench/rows/kinds.cpp, "inputs": [shapes],
//    "options": {…}, "count": in one call of the network, "gradients": true where they are
//    wanted}]}
#pragma once

#include <string>
#include <vector>

#include "bench/rows/case.h"

namespace plugrad::bench {

struct CorpusRow {
  std::string network, family;
  int64_t count = 1;
  Case item;  ///< without threads
};

/// All rows, by network and in the order of its file. Each name is unique, and what is computed,
/// too. Errors: User, with the file and the row, where one is malformed.
std::vector<CorpusRow> corpus_rows(const std::string& folder = {});
/// In the order of reports.
const std::vector<std::string>& corpus_families();

}  // namespace plugrad::bench

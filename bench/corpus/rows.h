// The shapes of known networks, read from the JSON files in this folder, one per network.
// {"title": source, "rows": [{"kind": of bench/rows/kinds.cpp, "inputs": [shapes],
// "options": {…}, "count": occurrences in one call of the network, "gradients": optional true}]}
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

/// All rows, by network and in file order. Names are unique, and so are computations. Errors: User,
/// with the file and the row, if one is malformed.
std::vector<CorpusRow> corpus_rows(const std::string& folder = {});
/// In report order.
const std::vector<std::string>& corpus_families();

}  // namespace plugrad::bench

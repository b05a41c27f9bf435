// Results of corpus rows, saved to a file during the run.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/suites.h"

namespace plugrad::bench {

struct CorpusResult {
  std::string name, network, family;
  int threads = 0;
  int runs = 1;           ///< number of runs; this is the median by ratio
  bool is_wrong = false;  ///< a peer's result differs: not timed
  Result result;

  bool has_ratio() const { return !is_wrong && result.peer.has_value(); }
};

nlohmann::ordered_json to_json(const CorpusResult& result);

/// One line of JSON per result, after a line that identifies the run.
class ResultFile {
 public:
  /// Starts a new file, or, when resuming, keeps its results. Damaged lines, such as the last one
  /// after an interruption, are dropped. Errors: User if the file belongs to another run or cannot
  /// be written.
  ResultFile(std::string path, const nlohmann::ordered_json& run, bool is_resumed);

  bool has(const std::string& name, int threads) const;
  void add(const CorpusResult& result);
  const std::vector<CorpusResult>& results() const { return results_; }

 private:
  void read(const nlohmann::ordered_json& run);
  void write() const;

  std::string path_, text_;
  std::vector<CorpusResult> results_;
};

}  // namespace plugrad::bench

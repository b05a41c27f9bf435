// Results of rows of the corpus, and the file that keeps them while the run goes on.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/suites.h"

namespace plugrad::bench {

struct CorpusResult {
  std::string name, network, family;
  int threads = 0;
  int runs = 1;           ///< of which the middle one by ratio is here
  bool is_wrong = false;  ///< a peer's result differs: there is no time
  Result result;

  bool has_ratio() const { return !is_wrong && result.peer.has_value(); }
};

nlohmann::ordered_json to_json(const CorpusResult& result);

/// A line of JSON a result, after a line that says of what run they are.
class ResultFile {
 public:
  /// Begins anew, or, resumed, keeps the results that are there. Lines that are damaged, as the
  /// last one after an interruption, are left out. Errors: User where the file is of another run or
  /// cannot be written.
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

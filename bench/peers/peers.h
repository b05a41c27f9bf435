// The peers that this machine has: which there are, how each is started, and what to install.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/peers/peer_process.h"

namespace plugrad::bench {

struct PeerProgram {
  const char* name;    ///< "openblas"
  const char* title;   ///< "OpenBLAS"
  const char* remedy;  ///< what to install where it is missing
  const char* script;  ///< in bench/peers; null: this program itself
  const char* python;  ///< environment variable that names its interpreter
  std::vector<std::string> environment;
};
const std::vector<PeerProgram>& peer_programs();

/// A peer that took part: what it ran, and whether rows are held against it.
struct PeerRun {
  std::string title, isa;
  bool counts;
};

/// Processes of peers, each started when it is first asked for and kept for the rows that follow.
class Peers {
 public:
  /// Those of `names` only.
  explicit Peers(std::vector<std::string> names) : names_(std::move(names)) {}
  /// Null where it is not wanted or not installed.
  PeerProcess* open(const PeerProgram& program, int threads);
  /// A new one, for the caller alone.
  std::unique_ptr<PeerProcess> start(const PeerProgram& program, int threads) const;
  /// Of those that were opened, each program once.
  std::vector<PeerRun> runs() const;

 private:
  std::vector<std::string> names_;
  std::map<std::pair<std::string, int>, std::unique_ptr<PeerProcess>> running_;
};

}  // namespace plugrad::bench

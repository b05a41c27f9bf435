// The peers available on this machine: detection, start and installation hints.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/peers/peer_process.h"

namespace plugrad::bench {

struct PeerProgram {
  const char* name;    ///< "openblas"
  const char* title;   ///< "OpenBLAS"
  const char* remedy;  ///< installation hint
  const char* script;  ///< in bench/peers; null: this program itself
  const char* python;  ///< environment variable that names its interpreter
  std::vector<std::string> environment;
};
const std::vector<PeerProgram>& peer_programs();

/// A peer that was used: its instruction set, and whether rows are compared with it.
struct PeerRun {
  std::string title, isa;
  bool counts;
};

/// Peer processes, each started on first use and kept for later rows.
class Peers {
 public:
  /// Only those in `names`.
  explicit Peers(std::vector<std::string> names) : names_(std::move(names)) {}
  /// Null if it is not selected or not installed. Its threads wait for work actively unless
  /// `is_passive`, where processor time counts.
  PeerProcess* open(const PeerProgram& program, int threads, bool is_passive = false);
  /// A new process, owned by the caller.
  std::unique_ptr<PeerProcess> start(const PeerProgram& program, int threads,
                                     bool is_passive = false) const;
  /// The opened peers, each program once.
  std::vector<PeerRun> runs() const;

 private:
  std::vector<std::string> names_;
  std::map<std::tuple<std::string, int, bool>, std::unique_ptr<PeerProcess>> running_;
};

}  // namespace plugrad::bench

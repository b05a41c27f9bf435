// Peers that are libraries or C, in a separate process: `plugrad bench-peer NAME`.
#pragma once

#include <string>

namespace plugrad::bench {

/// Answers the requests on stdin (format: bench/peers/peer_process.h) until end of file. Returns
/// the exit code.
int run_library_peer(const std::string& name);

}  // namespace plugrad::bench

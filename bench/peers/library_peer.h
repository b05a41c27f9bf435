// The peers that are libraries or C, in a process of their own: `plugrad bench-peer NAME`.
#pragma once

#include <string>

namespace plugrad::bench {

/// Answers the requests on stdin (bench/peers/peer_process.h has their form) until it ends. The
/// exit code.
int run_library_peer(const std::string& name);

}  // namespace plugrad::bench

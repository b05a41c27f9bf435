// Names accepted on the command line, for programs that do not link the benchmarks.
#pragma once

namespace plugrad::bench {

/// In the order of isas().
inline constexpr const char* kIsaNames[] = {"native", "v4", "v3", "v2", "v1"};
/// In the order of peer_programs().
inline constexpr const char* kPeerNames[] = {"c",       "openblas",      "blis",        "onednn",
                                             "pytorch", "pytorch-tuned", "onnxruntime", "tinygrad"};

}  // namespace plugrad::bench

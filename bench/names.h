// Names that the command line takes, for programs that link no benchmark.
#pragma once

namespace plugrad::bench {

/// Of isas(), in its order.
inline constexpr const char* kIsaNames[] = {"native", "v4", "v3", "v2", "v1"};
/// Of peer_programs(), in its order.
inline constexpr const char* kPeerNames[] = {"c",       "openblas",      "blis",        "onednn",
                                             "pytorch", "pytorch-tuned", "onnxruntime", "tinygrad"};

}  // namespace plugrad::bench

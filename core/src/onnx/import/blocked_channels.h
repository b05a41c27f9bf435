// Files that ONNX Runtime saved at its highest level of optimisation: com.microsoft.nchwc. Its tensors
// hold the channels in blocks; here they keep their order, and only their number is rounded up to whole
// blocks. What is left is the order of the convolutions' weights in the file.
#pragma once

#include <cstdint>
#include <map>

#include "onnx/file/messages.h"

namespace plugrad::onnx {

/// The channels of a block: 8 or 16, by the processor that saved the file, as the sizes of the graph
/// and of its subgraphs tell. Where both fit, a warning says so, and it is that of this processor.
/// Errors: User if neither fits.
std::int64_t channels_per_block(const GraphMessage& graph);

/// The weights of the graph's own convolutions of blocked channels, and a node that has each. Errors:
/// User for weights that are no f32 initialiser of the graph.
std::map<const TensorMessage*, const NodeMessage*> blocked_weights(const GraphMessage& graph);

/// `weights` in the order of ONNX: outputs, inputs, kernel. Errors: User for sizes that are no blocks.
std::vector<float> in_order(const std::vector<float>& weights, const TensorMessage& tensor,
                            const NodeMessage& node, std::int64_t block);

}  // namespace plugrad::onnx

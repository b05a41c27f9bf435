#include "onnx/import/blocked_channels.h"

#include <algorithm>
#include <unordered_map>

#include "base/check.h"
#include "base/log.h"
#include "onnx/import/value.h"

namespace plugrad::onnx {
namespace {

constexpr std::string_view kDomain = "com.microsoft.nchwc";
constexpr int64_t kSmallBlock = 8, kLargeBlock = 16;

int64_t integer_of(const NodeMessage& node, std::string_view name, int64_t otherwise) {
  const auto at = std::ranges::find(node.attributes, name, &AttributeMessage::name);
  return at == node.attributes.end() ? otherwise : at->integer.value_or(0);
}

bool is_blocked_conv(const NodeMessage& node) {
  return node.domain == kDomain && node.op == "Conv";
}

// Whether the inputs are in blocks, too: not those of an image, whose channels are fewer than one, and
// not the single one of each group of a depthwise convolution.
bool has_input_blocks(const NodeMessage& node, int64_t inputs, int64_t block) {
  return integer_of(node, "group", 1) > 1 ? inputs != 1 : inputs >= block;
}

// Finds the node that makes each value of a graph.
class Origins {
 public:
  explicit Origins(const GraphMessage& graph) {
    for (const TensorMessage& tensor : graph.constants) constants_.emplace(tensor.name, &tensor);
    for (const NodeMessage& node : graph.nodes)
      for (const std::string_view output : node.outputs) nodes_.emplace(output, &node);
  }
  const TensorMessage* weights_of(const NodeMessage& conv) const {
    return conv.inputs.size() < 2 ? nullptr : at(constants_, conv.inputs[1]);
  }
  // The node that computes the first input.
  const NodeMessage* before(const NodeMessage& node) const {
    return node.inputs.empty() ? nullptr : at(nodes_, node.inputs[0]);
  }

 private:
  template <class Message>
  static const Message* at(const std::unordered_map<std::string_view, const Message*>& by_name,
                           std::string_view name) {
    const auto found = by_name.find(name);
    return found == by_name.end() ? nullptr : found->second;
  }
  std::unordered_map<std::string_view, const TensorMessage*> constants_;
  std::unordered_map<std::string_view, const NodeMessage*> nodes_;
};

// Whether blocks of this size explain the node.
bool fits(const NodeMessage& node, const Origins& origins, int64_t block) {
  if (node.op == "ReorderOutput" && node.domain == kDomain) {
    const NodeMessage* const conv = origins.before(node);
    const TensorMessage* const weights =
        conv && is_blocked_conv(*conv) ? origins.weights_of(*conv) : nullptr;
    const int64_t channels = integer_of(node, "channels", 0);
    return !weights || weights->dims.empty() ||
           weights->dims[0] == channels + (block - channels % block) % block;
  }
  const TensorMessage* const weights = is_blocked_conv(node) ? origins.weights_of(node) : nullptr;
  if (!weights || weights->dims.size() < 3) return true;
  const int64_t outputs = weights->dims[0], inputs = weights->dims[1];
  if (outputs % block != 0) return false;
  const bool has_blocks = has_input_blocks(node, inputs, block);
  if (has_blocks && inputs % block != 0) return false;
  if (integer_of(node, "group", 1) > 1) return true;
  const NodeMessage* const source = origins.before(node);
  if (!source || source->domain != kDomain) return true;  // may be of either kind
  return has_blocks == (source->op != "ReorderOutput");
}

struct Evidence {
  bool is_needed = false, fits_small = true, fits_large = true;
};

void look_for_blocks(const GraphMessage& graph, Evidence& evidence) {
  const Origins origins(graph);
  for (const NodeMessage& node : graph.nodes) {
    evidence.is_needed |= is_blocked_conv(node);
    evidence.fits_small &= fits(node, origins, kSmallBlock);
    evidence.fits_large &= fits(node, origins, kLargeBlock);
    for (const AttributeMessage& attribute : node.attributes)
      for (const auto& inner : attribute.graphs) look_for_blocks(*inner, evidence);
  }
}

// As ONNX Runtime chooses it.
int64_t block_of_this_processor() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") ? kLargeBlock : kSmallBlock;
#elif defined(__aarch64__)
  return kLargeBlock;
#else
  return kSmallBlock;
#endif
}

}  // namespace

int64_t channels_per_block(const GraphMessage& graph) {
  Evidence evidence;
  look_for_blocks(graph, evidence);
  require(evidence.fits_small || evidence.fits_large,
          "[onnx] the sizes of the Conv nodes of {} fit neither blocks of {} nor of {} channels",
          kDomain, kSmallBlock, kLargeBlock);
  if (!evidence.fits_small || !evidence.fits_large)
    return evidence.fits_small ? kSmallBlock : kLargeBlock;
  const int64_t block = block_of_this_processor();
  if (evidence.is_needed)
    log_warning(
        "[onnx] the file holds weights in the order of one kind of processor, and not which: they "
        "are "
        "read in blocks of {} channels, as ONNX Runtime has them on this one; files that it saves "
        "with "
        "ORT_ENABLE_EXTENDED are the same everywhere",
        block);
  return block;
}

std::map<const TensorMessage*, const NodeMessage*> blocked_weights(const GraphMessage& graph) {
  std::map<const TensorMessage*, const NodeMessage*> found;
  if (std::ranges::none_of(graph.nodes, is_blocked_conv)) return found;
  const Origins origins(graph);
  for (const NodeMessage& node : graph.nodes) {
    if (!is_blocked_conv(node)) continue;
    const TensorMessage* const weights = origins.weights_of(node);
    if (!weights || weights->type != DataType::Float)
      fail(ErrorKind::User, "[onnx] {}: its weights must be an initialiser of floats",
           label_of(node));
    found.emplace(weights, &node);
  }
  return found;
}

std::vector<float> in_order(const std::vector<float>& weights, const TensorMessage& tensor,
                            const NodeMessage& node, int64_t block) {
  const auto& dims = tensor.dims;
  const int64_t inputs = dims.size() < 3 ? 0 : dims[1];
  const int64_t of_inputs = has_input_blocks(node, inputs, block) ? block : 1;
  if (dims.size() < 3 || dims[0] % block != 0 || inputs % of_inputs != 0)
    fail(ErrorKind::User, "[onnx] {}: weights of shape {} are no blocks of {} channels",
         label_of(node), to_string(dims), block);
  if (weights.empty()) return {};
  const int64_t kernel = static_cast<int64_t>(weights.size()) / dims[0] / inputs;
  std::vector<float> ordered;
  ordered.reserve(weights.size());
  for (int64_t o = 0; o < dims[0]; ++o)
    for (int64_t i = 0; i < inputs; ++i)
      for (int64_t k = 0; k < kernel; ++k) {
        const int64_t of_block = (o / block * (inputs / of_inputs) + i / of_inputs) * kernel + k;
        const int64_t at = (of_block * of_inputs + i % of_inputs) * block + o % block;
        ordered.push_back(weights[static_cast<size_t>(at)]);
      }
  return ordered;
}

}  // namespace plugrad::onnx

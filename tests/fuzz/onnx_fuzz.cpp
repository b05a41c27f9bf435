// An arbitrary ONNX file gives messages that lie within it, or an Error.
#include <cstdint>
#include <span>

#include "onnx/file/messages.h"
#include "plugrad/error.h"

namespace {

using namespace plugrad::onnx;

size_t touched(const GraphMessage& graph) {
  size_t sum = 0;
  for (const TensorMessage& tensor : graph.constants) {
    sum += tensor.dims.size() + tensor.integers.size() + tensor.name.size();
    if (tensor.raw)
      for (const std::byte b : *tensor.raw) sum += static_cast<size_t>(b);
  }
  for (const NodeMessage& node : graph.nodes) {
    for (const auto name : node.inputs) sum += name.empty() ? 0 : static_cast<size_t>(name.back());
    for (const AttributeMessage& attribute : node.attributes)
      for (const auto& inner : attribute.graphs) sum += touched(*inner);
  }
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const ModelMessage model = read_model(std::as_bytes(std::span(data, size)));
    static volatile size_t sink;
    sink = touched(model.graph);
  } catch (const plugrad::Error& error) {
    if (error.kind() == plugrad::ErrorKind::Internal) __builtin_trap();
  }
  return 0;
}

// An arbitrary ONNX file gives messages that lie within it and pass the checks, or an
// Error, and the memory that reading
// it takes at one time is at most four times the file and 64 MB.
#include <sanitizer/allocator_interface.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "onnx/file/graph_check.h"
#include "onnx/file/messages.h"
#include "plugrad/error.h"

namespace {

size_t allocated = 0, most_allocated = 0;  // bytes since the file's reading began
bool is_reading = false;

void on_malloc(const volatile void*, size_t size) {
  if (!is_reading) return;
  allocated += size;
  most_allocated = std::max(most_allocated, allocated);
}
void on_free(const volatile void* memory) {
  if (is_reading && memory)
    allocated -= std::min(allocated, __sanitizer_get_allocated_size(memory));
}

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

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) == 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  allocated = most_allocated = 0;
  is_reading = true;
  try {
    const ModelMessage model = read_model(std::as_bytes(std::span(data, size)));
    static volatile size_t sink;
    sink = touched(model.graph);
    require_sound(model);
  } catch (const plugrad::Error& error) {
    if (error.kind() == plugrad::ErrorKind::Internal) __builtin_trap();
  }
  is_reading = false;
  if (most_allocated > 4 * size + (size_t{64} << 20)) __builtin_trap();
  return 0;
}

#include "models/halves.h"

#include <algorithm>

#include "base/file.h"
#include "onnx/file/file_errors.h"
#include "onnx/file/messages.h"

namespace plugrad::tools {
namespace {

using onnx::DataType;

bool is_half(DataType type) {
  return type == DataType::Float16 || type == DataType::Bfloat16;
}
bool is_half_tensor(const onnx::TensorMessage& tensor) {
  return is_half(tensor.type);
}
bool is_half_value(const onnx::ValueMessage& value) {
  return value.type.kind == onnx::TypeMessage::Kind::Tensor && is_half(value.type.element);
}

bool has_halves(const onnx::GraphMessage& graph);

bool has_halves(const onnx::NodeMessage& node) {
  return std::ranges::any_of(node.attributes, [&](const onnx::AttributeMessage& attribute) {
    return (node.op == "Cast" && attribute.name == "to" &&
            is_half(static_cast<DataType>(attribute.integer.value_or(0)))) ||
           std::ranges::any_of(attribute.tensors, is_half_tensor) ||
           std::ranges::any_of(attribute.graphs,
                               [](const auto& graph) { return has_halves(*graph); });
  });
}

bool has_halves(const onnx::GraphMessage& graph) {
  return std::ranges::any_of(graph.constants, is_half_tensor) ||
         std::ranges::any_of(graph.inputs, is_half_value) ||
         std::ranges::any_of(graph.values, is_half_value) ||
         std::ranges::any_of(graph.nodes, [](const auto& node) { return has_halves(node); });
}

}  // namespace

bool computes_with_halves(const std::string& path) {
  const MappedFile file(path, "onnx");
  const onnx::ModelMessage model =
      onnx::with_name(path, [&] { return onnx::read_model(file.bytes()); });
  return has_halves(model.graph) ||
         std::ranges::any_of(model.functions, [](const onnx::FunctionMessage& function) {
           return std::ranges::any_of(function.nodes,
                                      [](const auto& node) { return has_halves(node); });
         });
}

}  // namespace plugrad::tools

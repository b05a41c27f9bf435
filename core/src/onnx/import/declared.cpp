#include "onnx/import/declared.h"

#include <algorithm>

#include "base/check.h"
#include "onnx/import/value.h"

namespace plugrad::onnx {
namespace {

ValueInfo info_of(const ValueMessage& value) {
  using Kind = TypeMessage::Kind;
  ValueInfo info{std::string(value.name), "", {}, {}};
  switch (value.type.kind) {
    case Kind::Tensor:
      info.type = name_of(value.type.element);
      info.dtype = dtype_of(value.type.element);
      break;
    case Kind::Sequence:
      info.type = "sequence";
      break;
    case Kind::Optional:
      info.type = "optional";
      break;
    case Kind::SparseTensor:
      info.type = "sparse tensor";
      break;
    case Kind::Map:
      info.type = "map";
      break;
    case Kind::None:
      info.type = "any";
  }
  if (value.type.shape) {
    info.shape.emplace();
    for (const auto& dim : *value.type.shape)
      info.shape->push_back(
          {dim.size && *dim.size >= 0 ? dim.size : std::nullopt, std::string(dim.name)});
  }
  return info;
}

}  // namespace

std::vector<ValueInfo> inputs_of(const ModelMessage& model) {
  const auto& constants = model.graph.constants;
  std::vector<ValueInfo> inputs;
  for (const ValueMessage& value : model.graph.inputs)
    if (std::ranges::find(constants, value.name, &TensorMessage::name) == constants.end())
      inputs.push_back(info_of(value));
  return inputs;
}

std::vector<ValueInfo> outputs_of(const ModelMessage& model) {
  std::vector<ValueInfo> outputs;
  for (const ValueMessage& value : model.graph.outputs) outputs.push_back(info_of(value));
  return outputs;
}

std::string to_string(const ValueInfo& value) {
  std::string text = value.name + ": " + value.type;
  if (!value.shape) return text;
  std::vector<std::string> sizes;
  for (const Dimension& dim : *value.shape)
    sizes.push_back(dim.size ? std::to_string(*dim.size) : dim.name.empty() ? "?" : dim.name);
  return text + fmt::format(" ({}{})", fmt::join(sizes, ", "), sizes.size() == 1 ? "," : "");
}

}  // namespace plugrad::onnx

#include "onnx/import/declared.h"

#include <unordered_set>

#include "base/check.h"

namespace plugrad::onnx {
namespace {

using Kind = TypeMessage::Kind;

std::string text_of(const TypeMessage& type) {
  switch (type.kind) {
    case Kind::Tensor:
      return name_of(type.element);
    case Kind::Sequence:
      return "sequence" + (type.inner ? " of " + text_of(*type.inner) : "");
    case Kind::Optional:
      return "optional" + (type.inner ? " " + text_of(*type.inner) : "");
    case Kind::SparseTensor:
      return "sparse tensor";
    case Kind::Map:
      return "map";
    case Kind::None:
      break;
  }
  return "any";
}

ValueInfo info_of(const ValueMessage& value) {
  ValueInfo info{std::string(value.name), text_of(value.type), {}, {}};
  if (value.type.kind == Kind::Tensor) info.dtype = dtype_of(value.type.element);
  if (!value.type.shape) return info;
  info.shape.emplace();
  for (const auto& dim : *value.type.shape)
    info.shape->push_back(
        {dim.size && *dim.size >= 0 ? dim.size : std::nullopt, std::string(dim.name)});
  return info;
}

// Why the value is not of the type; empty if it is.
std::string mismatch_of_value(const Value& value, const TypeMessage& type) {
  if (type.kind == Kind::Optional && type.inner)
    return value.is_given() ? mismatch_of_value(value, *type.inner) : "";
  if (type.kind == Kind::Sequence) {
    if (!value.elements()) return "is no sequence";
    for (const Value& element : *value.elements())
      if (const std::string what = type.inner ? mismatch_of_value(element, *type.inner) : "";
          !what.empty())
        return "has an element that " + what;
  }
  if (type.kind == Kind::Map) return value.map() ? "" : "is no map";
  if (type.kind != Kind::Tensor || type.element == DataType::Undefined) return "";
  if (type.element == DataType::String) return value.strings() ? "" : "is no tensor of strings";
  if (!value.is_tensor()) return "is no tensor of numbers";
  const DType dtype = value.known() ? value.known()->dtype : value.tensor().dtype();
  const auto declared = dtype_of(type.element);
  return !declared || *declared == dtype ? "" : fmt::format("is {}", plugrad::name_of(dtype));
}

std::vector<const ValueMessage*> inputs_where(const ModelMessage& model, bool is_constant) {
  std::unordered_set<std::string_view> constants;
  for (const TensorMessage& tensor : model.graph.constants) constants.insert(tensor.name);
  for (const SparseTensorMessage& tensor : model.graph.sparse_constants)
    constants.insert(tensor.values.name);
  std::vector<const ValueMessage*> inputs;
  for (const ValueMessage& value : model.graph.inputs)
    if (constants.contains(value.name) == is_constant) inputs.push_back(&value);
  return inputs;
}

}  // namespace

std::vector<const ValueMessage*> declared_inputs(const ModelMessage& model) {
  return inputs_where(model, false);
}
std::vector<const ValueMessage*> defaulted_inputs(const ModelMessage& model) {
  return inputs_where(model, true);
}

std::vector<ValueInfo> infos_of(const std::vector<const ValueMessage*>& inputs) {
  std::vector<ValueInfo> infos;
  for (const ValueMessage* input : inputs) infos.push_back(info_of(*input));
  return infos;
}

std::vector<ValueInfo> inputs_of(const ModelMessage& model) {
  return infos_of(declared_inputs(model));
}

std::vector<ValueInfo> outputs_of(const ModelMessage& model) {
  std::vector<ValueInfo> outputs;
  for (const ValueMessage& value : model.graph.outputs) outputs.push_back(info_of(value));
  return outputs;
}

void require_declared(const Value& value, const ValueMessage& output) {
  const std::string what = mismatch_of_value(value, output.type);
  require(what.empty(), "[onnx] output \"{}\" {}, the model declares:\n  {}", shown(output.name),
          what, to_string(info_of(output)));
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

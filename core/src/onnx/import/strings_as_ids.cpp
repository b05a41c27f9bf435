#include "onnx/import/strings_as_ids.h"

#include <algorithm>
#include <span>

namespace plugrad::onnx {
namespace {

constexpr std::string_view kMoving[] = {
    "CenterCropPad",   "Compress",  "Concat",  "ConcatFromSequence", "DepthToSpace",
    "Expand",          "Flatten",   "Gather",  "GatherElements",     "GatherND",
    "OneHot",          "Pad",       "Reshape", "ReverseSequence",    "Scatter",
    "ScatterElements", "ScatterND", "Slice",   "SpaceToDepth",       "Split",
    "SplitToSequence", "Squeeze",   "Tile",    "TensorScatter",      "Transpose",
    "Trilu",           "Unsqueeze", "Where",
};
constexpr std::string_view kMovingIfNearest[] = {"Resize", "Upsample"};
constexpr std::string_view kComparing[] = {"Equal", "NonZero", "RandomNormalLike",
                                           "RandomUniformLike", "Unique"};

bool has(std::span<const std::string_view> names, const NodeMessage& node) {
  return (node.domain.empty() || node.domain == "ai.onnx") &&
         std::ranges::find(names, node.op) != names.end();
}

bool is_nearest(const NodeMessage& node) {
  const auto mode = std::ranges::find(node.attributes, "mode", &AttributeMessage::name);
  return mode == node.attributes.end() || mode->text.value_or("") == "nearest";
}

}  // namespace

size_t moved_results(const NodeMessage& node) {
  if (has(kMoving, node) || (has(kMovingIfNearest, node) && is_nearest(node)) ||
      (node.domain == "ai.onnx.ml" && node.op == "ArrayFeatureExtractor"))
    return node.outputs.size();
  return node.op == "Unique" ? 1 : 0;
}
bool compares_elements(const NodeMessage& node) {
  return has(kComparing, node);
}

StringIds::StringIds(const std::vector<Value>& values) {
  for (const Value& value : values) add(value);
  std::ranges::sort(sorted_);
  const auto rest = std::ranges::unique(sorted_);
  sorted_.erase(rest.begin(), rest.end());
}

void StringIds::add(const Value& value) {
  if (const Strings* strings = value.strings()) {
    has_strings_ = true;
    sorted_.insert(sorted_.end(), strings->elements.begin(), strings->elements.end());
  } else if (value.elements()) {
    for (const Value& element : *value.elements()) add(element);
  }
}

Value StringIds::ids_of(const Value& value) const {
  if (const Strings* strings = value.strings()) {
    tensor::HostValues ids{strings->shape, DType::I64, {}};
    for (const std::string& text : strings->elements)
      ids.bits.push_back(
          static_cast<uint64_t>(std::ranges::lower_bound(sorted_, text) - sorted_.begin()));
    return Value::known(std::move(ids));
  }
  if (!value.elements()) return value;
  std::vector<Value> elements;
  for (const Value& element : *value.elements()) elements.push_back(ids_of(element));
  return Value::sequence(std::move(elements));
}

Value StringIds::strings_of(const Value& ids, bool is_jitted) const {
  if (ids.elements()) {
    std::vector<Value> elements;
    for (const Value& element : *ids.elements()) elements.push_back(strings_of(element, is_jitted));
    return Value::sequence(std::move(elements));
  }
  if (!ids.is_tensor()) return ids;
  require_host_elements(ids.known() ? ids.known()->shape : ids.tensor().shape());
  const tensor::HostValues values = host_values_of(ids, is_jitted);
  Strings strings{values.shape, {}};
  for (const uint64_t id : values.bits) strings.elements.push_back(sorted_.at(id));
  return strings;
}

}  // namespace plugrad::onnx

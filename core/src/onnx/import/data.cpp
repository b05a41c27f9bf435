#include "onnx/import/data.h"

#include "base/check.h"
#include "ir/facts.h"
#include "onnx/import/emulated.h"
#include "tensor/record.h"

namespace plugrad::onnx {
namespace {

using Kind = TypeMessage::Kind;

std::string mismatch_of_shape(const Shape& shape,
                              const std::optional<std::vector<TypeMessage::Dimension>>& declared) {
  bool fits = !declared || declared->size() == shape.size();
  for (size_t i = 0; declared && fits && i < shape.size(); ++i) {
    const auto& size = (*declared)[i].size;
    fits = !size || *size < 0 || *size == shape[i];
  }
  return fits ? "" : "has the shape " + to_string(shape);
}

// A dtype of 8 bits that plugrad has but no device needs to store.
bool is_same_type(DType dtype, DataType type) {
  return (dtype == DType::F8E4M3 && type == DataType::Float8e4m3fn) ||
         (dtype == DType::F8E5M2 && type == DataType::Float8e5m2);
}

// A number without a dtype of its own, such as Tensor(16000) or 16000 from Python, takes the declared
// one.
bool takes_type(const Tensor& tensor, std::optional<DType> declared) {
  tensor::Recorder recorder("onnx");
  const DType dtype = recorder.dtype(recorder.use(tensor));
  if (!declared || strong(dtype) == dtype) return false;
  return is_float(*declared) || (dtype == DType::Index && *declared != DType::Bool);
}

// Errors: User if an integer dtype does not hold the number.
Tensor as_type(const Tensor& number, DType declared) {
  tensor::Recorder recorder("onnx");
  return recorder.done(recorder.take(recorder.use(number), declared));
}

std::string mismatch_of_tensor(const Data& data, const TypeMessage& type) {
  const auto* tensor = std::get_if<Tensor>(&data.value);
  if (std::holds_alternative<Sequence>(data.value))
    return "is a sequence (a list in Python), not a tensor or an array";
  if (!tensor) return "is no tensor of numbers";
  if (!tensor->defined()) return "is undefined";
  if (!data.type.empty() && data.type != name_of(type.element)) return "is " + data.type;
  const auto dtype = dtype_of(type.element);
  if (dtype && *dtype != tensor->dtype() && !is_same_type(tensor->dtype(), type.element) &&
      !takes_type(*tensor, dtype))
    return fmt::format("is {}", plugrad::name_of(tensor->dtype()));
  return mismatch_of_shape(tensor->shape(), type.shape);
}

}  // namespace

std::string mismatch(const Data& data, const TypeMessage& type) {
  switch (type.kind) {
    case Kind::Tensor: {
      if (type.element != DataType::String) return mismatch_of_tensor(data, type);
      const auto* strings = std::get_if<Strings>(&data.value);
      if (!strings) return "is no tensor of strings";
      if (element_count(std::span(strings->shape)) !=
          static_cast<int64_t>(strings->elements.size()))
        return fmt::format("has {} strings in the shape {}", strings->elements.size(),
                           to_string(strings->shape));
      return mismatch_of_shape(strings->shape, type.shape);
    }
    case Kind::Sequence: {
      const auto* sequence = std::get_if<Sequence>(&data.value);
      if (!sequence) return "is no sequence";
      for (size_t i = 0; type.inner && i < sequence->elements.size(); ++i)
        if (const std::string what = mismatch(sequence->elements[i], *type.inner); !what.empty())
          return fmt::format("has an element {} that {}", i, what);
      return "";
    }
    case Kind::Optional:
      if (std::holds_alternative<std::monostate>(data.value) || !type.inner) return "";
      return mismatch(data, *type.inner);
    case Kind::Map:
      return "is a map, which no operator that plugrad has takes";
    case Kind::SparseTensor:
    case Kind::None:
      break;
  }
  return "";
}

Value value_of(const Data& data, const TypeMessage& type, std::string_view device) {
  if (type.kind == Kind::Optional && type.inner) return value_of(data, *type.inner, device);
  if (const auto* strings = std::get_if<Strings>(&data.value)) return *strings;
  if (const auto* sequence = std::get_if<Sequence>(&data.value)) {
    std::vector<Value> values;
    const TypeMessage any;
    for (const Data& element : sequence->elements)
      values.push_back(value_of(element, type.inner ? *type.inner : any, device));
    return Value::sequence(std::move(values));
  }
  const auto* tensor = std::get_if<Tensor>(&data.value);
  if (!tensor) return {};
  if (tensor->defined())
    require(
        !tensor->is_sharded(),
        "[onnx] an input is on {}, but a model runs on one device, {}: pass x.unshard(), or one "
        "of x.shards()",
        tensor->device(), device);
  const auto declared = dtype_of(type.element);
  Tensor given = *tensor;
  if (is_same_type(given.dtype(), type.element))
    given = given.cast(DType::F32);
  else if (takes_type(given, declared))
    given = as_type(given, *declared);
  return Value(given.to(device)).as(type.element);
}

Data data_of(const Value& value) {
  if (value.strings()) return *value.strings();
  if (value.map()) return *value.map();
  if (const auto* elements = value.elements()) {
    Sequence sequence;
    for (const Value& element : *elements) sequence.elements.push_back(data_of(element));
    return sequence;
  }
  if (!value.is_tensor()) return {};
  Data data = value.tensor();
  if (is_emulated(value.emulated())) data.type = name_of(value.emulated());
  return data;
}

}  // namespace plugrad::onnx

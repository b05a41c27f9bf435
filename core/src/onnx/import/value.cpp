#include "onnx/import/value.h"

#include <bit>
#include <cstring>

#include "base/check.h"
#include "ir/round.h"
#include "onnx/import/emulated.h"

namespace plugrad::onnx {
namespace {

// The element in memory of its dtype (ir/graph.h has it as the widest dtype of its kind).
void store(uint64_t bits, DType dtype, std::byte* to) {
  if (dtype == DType::F32) {
    const auto value = static_cast<float>(std::bit_cast<double>(bits));
    std::memcpy(to, &value, sizeof value);
    return;
  }
  if (is_float(dtype) && dtype != DType::F64)
    bits = encode_small_float(std::bit_cast<double>(bits), dtype);
  std::memcpy(to, &bits, size_of(dtype));
}

}  // namespace

Value Value::known(tensor::HostValues values) {
  Value value;
  value.known_ = std::make_shared<Known>(Known{std::move(values), {}});
  return value;
}

Value Value::known(tensor::HostValues values, Tensor tensor) {
  Value value = known(std::move(values));
  value.tensor_ = std::move(tensor);
  return value;
}

Value Value::sequence(std::vector<Value> elements) {
  Value value;
  value.sequence_ = std::make_shared<const std::vector<Value>>(std::move(elements));
  return value;
}

DataType Value::emulated() const {
  if (!sequence_) return emulated_;
  return sequence_->empty() ? DataType::Undefined : sequence_->front().emulated();
}

Value Value::as(DataType type) const {
  Value value = *this;
  if (sequence_) {
    std::vector<Value> elements;
    for (const Value& element : *sequence_) elements.push_back(element.as(type));
    value = sequence(std::move(elements));
  } else {
    value.emulated_ = is_emulated(type) ? type : DataType::Undefined;
  }
  return value;
}

Tensor Value::host_tensor() const {
  require(known_ != nullptr, "[onnx] a value is no tensor of numbers where one is needed");
  const tensor::HostValues& values = known_->values;
  const DType dtype = strong(values.dtype);
  const size_t size = size_of(dtype);
  std::vector<std::byte> bytes(values.bits.size() * size);
  for (size_t i = 0; i < values.bits.size(); ++i)
    store(values.bits[i], dtype, bytes.data() + i * size);
  return Tensor::from_bytes(bytes, values.shape, dtype);
}

const Tensor& Value::tensor() const {
  if (tensor_.defined()) return tensor_;
  require(known_ != nullptr, "[onnx] a value is no tensor of numbers where one is needed");
  if (!known_->tensor.defined()) known_->tensor = host_tensor();
  return known_->tensor;
}

std::optional<DType> dtype_of(DataType type) {
  switch (type) {
    case DataType::Float:
    case DataType::Float8e4m3fn:
    case DataType::Float8e4m3fnuz:
    case DataType::Float8e5m2:
    case DataType::Float8e5m2fnuz:
    case DataType::Float4e2m1:
    case DataType::Float8e8m0:
      return DType::F32;
    case DataType::Double:
      return DType::F64;
    case DataType::Float16:
      return DType::F16;
    case DataType::Bfloat16:
      return DType::BF16;
    case DataType::Bool:
      return DType::Bool;
    case DataType::Int8:
    case DataType::Int4:
    case DataType::Int2:
      return DType::I8;
    case DataType::Uint8:
    case DataType::Uint4:
    case DataType::Uint2:
      return DType::U8;
    case DataType::Int16:
      return DType::I16;
    case DataType::Uint16:
      return DType::U16;
    case DataType::Int32:
      return DType::I32;
    case DataType::Uint32:
      return DType::U32;
    case DataType::Int64:
      return DType::I64;
    case DataType::Uint64:
      return DType::U64;
    default:
      return {};
  }
}

std::vector<std::int64_t> integers_of(const tensor::HostValues& values) {
  require(!is_float(values.dtype), "[onnx] integers are needed, the values are {}",
          plugrad::name_of(values.dtype));
  std::vector<std::int64_t> integers;
  for (const uint64_t bits : values.bits) integers.push_back(static_cast<std::int64_t>(bits));
  return integers;
}

}  // namespace plugrad::onnx

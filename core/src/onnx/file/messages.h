// The messages of an ONNX file, as far as a model needs them. Texts and bytes lie in the file's
// memory, which must outlive them. Source of the fields: onnx.proto of ONNX 1.23.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad::onnx {

/// TensorProto.DataType.
enum class DataType : std::int32_t {
  Undefined = 0,
  Float = 1,
  Uint8 = 2,
  Int8 = 3,
  Uint16 = 4,
  Int16 = 5,
  Int32 = 6,
  Int64 = 7,
  String = 8,
  Bool = 9,
  Float16 = 10,
  Double = 11,
  Uint32 = 12,
  Uint64 = 13,
  Complex64 = 14,
  Complex128 = 15,
  Bfloat16 = 16,
  Float8e4m3fn = 17,
  Float8e4m3fnuz = 18,
  Float8e5m2 = 19,
  Float8e5m2fnuz = 20,
  Uint4 = 21,
  Int4 = 22,
  Float4e2m1 = 23,
  Float8e8m0 = 24,
  Uint2 = 25,
  Int2 = 26,
};
/// Such as "float16"; "data type 99" for an unknown number.
std::string name_of(DataType type);

/// The domain "ai.onnx" has the empty name, too.
inline std::string_view canonical(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view() : domain;
}
/// A name of a file for messages: printable, the first bytes of a long one.
std::string shown(std::string_view name);

struct TensorMessage {
  std::vector<std::int64_t> dims;
  DataType type = DataType::Undefined;
  std::string_view name;
  std::optional<std::span<const std::byte>> raw;  // little-endian elements
  std::vector<float> floats;                      // or in one of these, by type
  std::vector<std::int64_t> integers;
  std::vector<double> doubles;
  std::vector<std::string_view> strings;
  struct External {
    std::string_view location;  // relative to the model's folder
    std::int64_t offset = 0;
    std::optional<std::int64_t> length;
  };
  std::optional<External> external;  // the elements are in another file
};

struct SparseTensorMessage {
  TensorMessage values, indices;
  std::vector<std::int64_t> dims;
};

struct TypeMessage {
  enum class Kind : std::uint8_t { None, Tensor, Sequence, Optional, SparseTensor, Map };
  struct Dimension {
    std::optional<std::int64_t> size;
    std::string_view name;  // of a symbolic dimension; empty: neither is known
  };
  Kind kind = Kind::None;
  DataType element = DataType::Undefined;       // of tensors
  std::optional<std::vector<Dimension>> shape;  // of tensors; none: any
  std::shared_ptr<const TypeMessage> inner;     // of sequences and optionals
};

struct ValueMessage {
  std::string_view name;
  TypeMessage type;
};

struct GraphMessage;

struct AttributeMessage {
  std::string_view name;
  std::int64_t type = 0;        // AttributeProto.AttributeType; old files leave it out
  std::string_view referenced;  // of a function's body: the attribute of the call
  std::optional<float> number;
  std::optional<std::int64_t> integer;
  std::optional<std::string_view> text;
  std::vector<float> numbers;
  std::vector<std::int64_t> integers;
  std::vector<std::string_view> texts;
  std::vector<TensorMessage> tensors;  // one for a single tensor
  std::vector<SparseTensorMessage> sparse_tensors;
  std::vector<std::shared_ptr<const GraphMessage>> graphs;
  std::vector<TypeMessage> types;
};

struct NodeMessage {
  std::string_view name, op, domain, overload;
  std::vector<std::string_view> inputs, outputs;  // an empty name: left out
  std::vector<AttributeMessage> attributes;
  std::size_t offset = 0;  // in the file, for errors
};

/// Such as "Conv node \"conv1\"" or "Conv node at byte 20", for messages.
std::string label_of(const NodeMessage& node);

struct GraphMessage {
  std::string_view name;
  std::vector<NodeMessage> nodes;
  std::vector<TensorMessage> constants;
  std::vector<SparseTensorMessage> sparse_constants;
  std::vector<ValueMessage> inputs, outputs, values;
};

struct Opset {
  std::string_view domain;
  std::int64_t version = 0;
};

struct FunctionMessage {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<std::string_view> attributes;  // without a default
  std::vector<AttributeMessage> defaults;
  std::vector<NodeMessage> nodes;
  std::vector<Opset> opsets;
};

struct EntryMessage {
  std::string_view key, value;
};

struct ModelMessage {
  std::int64_t ir_version = 0;
  std::string_view producer, producer_version;
  std::vector<Opset> opsets;
  GraphMessage graph;
  std::vector<FunctionMessage> functions;
  std::vector<EntryMessage> metadata;
};

/// Reads a model's file. Errors: User, with the byte's offset, for bytes that are no ONNX model.
ModelMessage read_model(std::span<const std::byte> file);
/// Reads a file of one tensor, such as those of the test cases of ONNX.
TensorMessage read_tensor(std::span<const std::byte> file);

}  // namespace plugrad::onnx

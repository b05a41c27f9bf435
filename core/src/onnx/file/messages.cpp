#include "onnx/file/messages.h"

#include <charconv>
#include <string>

#include "base/check.h"
#include "base/escaping/sanitise_text.h"
#include "io/foreign_format.h"
#include "onnx/file/wire.h"

namespace plugrad::onnx {
namespace {

constexpr std::int64_t kOldestIr = 3, kNewestIr = 14, kNewestOpset = 28;

void read(MessageReader from, TensorMessage& to);
void read(MessageReader from, SparseTensorMessage& to);
void read(MessageReader from, TypeMessage::Dimension& to);
void read(MessageReader from, TypeMessage& to);
void read(MessageReader from, ValueMessage& to);
void read(MessageReader from, AttributeMessage& to);
void read(MessageReader from, NodeMessage& to);
void read(MessageReader from, GraphMessage& to);
void read(MessageReader from, Opset& to);
void read(MessageReader from, EntryMessage& to);
void read(MessageReader from, FunctionMessage& to);

// Appends a message of type T to a list.
template <class T>
void add_message(const MessageReader& reader, const Field& field, std::string_view name,
                 std::vector<T>& to) {
  reader.charge(sizeof(T));
  read(reader.message(field, name), to.emplace_back());
}

void add_text(const MessageReader& reader, const Field& field, std::vector<std::string_view>& to) {
  reader.charge(sizeof(std::string_view));
  to.push_back(reader.text(field));
}

// A StringStringEntryProto of external_data.
void read_external(MessageReader from, TensorMessage::External& to) {
  std::string_view key, value;
  for (Field field; from.next(field);)
    if (field.number == 1)
      key = from.text(field);
    else if (field.number == 2)
      value = from.text(field);
  const auto number = [&, start = value] {
    std::int64_t parsed = 0;
    const auto [end, error] = std::from_chars(start.data(), start.data() + start.size(), parsed);
    require(error == std::errc() && end == start.data() + start.size() && parsed >= 0,
            "[onnx] external data has the {} \"{}\", which is no number", key, start);
    return parsed;
  };
  if (key == "location") to.location = value;
  if (key == "offset") to.offset = number();
  if (key == "length") to.length = number();
}

void read(MessageReader from, TensorMessage& to) {
  TensorMessage::External external;
  bool is_external = false;
  for (Field field; from.next(field);) switch (field.number) {
      case 1:
        from.add_integers(field, to.dims);
        break;
      case 2:
        to.type = static_cast<DataType>(from.integer(field));
        break;
      case 4:
        from.add_floats(field, to.floats);
        break;
      case 5:
      case 7:
      case 11:
        from.add_integers(field, to.integers);
        break;
      case 6:
        add_text(from, field, to.strings);
        break;
      case 8:
        to.name = from.text(field);
        break;
      case 9:
        to.raw = from.bytes(field);
        break;
      case 10:
        from.add_doubles(field, to.doubles);
        break;
      case 13:
        read_external(from.message(field, "StringStringEntryProto"), external);
        break;
      case 14:
        is_external = from.integer(field) == 1;
        break;
      default:
        break;
    }
  if (is_external) to.external = external;
}

void read(MessageReader from, SparseTensorMessage& to) {
  for (Field field; from.next(field);)
    if (field.number == 1)
      read(from.message(field, "TensorProto"), to.values);
    else if (field.number == 2)
      read(from.message(field, "TensorProto"), to.indices);
    else if (field.number == 3)
      from.add_integers(field, to.dims);
}

void read(MessageReader from, TypeMessage::Dimension& to) {
  for (Field field; from.next(field);)
    if (field.number == 1)
      to.size = from.integer(field);
    else if (field.number == 2)
      to.name = from.text(field);
}

void read_tensor_type(MessageReader from, TypeMessage& to) {
  for (Field field; from.next(field);)
    if (field.number == 1) {
      to.element = static_cast<DataType>(from.integer(field));
    } else if (field.number == 2) {
      to.shape.emplace();
      MessageReader shape = from.message(field, "TensorShapeProto");
      for (Field dim; shape.next(dim);)
        if (dim.number == 1) add_message(shape, dim, "Dimension", *to.shape);
    }
}

// The type of a sequence's elements, or of what an optional holds.
void read_inner(MessageReader from, TypeMessage& to) {
  for (Field field; from.next(field);) {
    if (field.number != 1) continue;
    from.charge(sizeof(TypeMessage));
    auto inner = std::make_shared<TypeMessage>();
    read(from.message(field, "TypeProto"), *inner);
    to.inner = std::move(inner);
  }
}

void read(MessageReader from, TypeMessage& to) {
  using Kind = TypeMessage::Kind;
  for (Field field; from.next(field);) switch (field.number) {
      case 1:
      case 8:
        to.kind = field.number == 1 ? Kind::Tensor : Kind::SparseTensor;
        read_tensor_type(from.message(field, "TypeProto.Tensor"), to);
        break;
      case 4:
      case 9:
        to.kind = field.number == 4 ? Kind::Sequence : Kind::Optional;
        read_inner(from.message(field, "TypeProto.Sequence"), to);
        break;
      case 5:
        to.kind = Kind::Map;
        break;
      default:
        break;
    }
}

void read(MessageReader from, ValueMessage& to) {
  for (Field field; from.next(field);)
    if (field.number == 1)
      to.name = from.text(field);
    else if (field.number == 2)
      read(from.message(field, "TypeProto"), to.type);
}

void add_graph(const MessageReader& from, const Field& field, AttributeMessage& to) {
  from.charge(sizeof(GraphMessage));
  auto graph = std::make_shared<GraphMessage>();
  read(from.message(field, "GraphProto"), *graph);
  to.graphs.push_back(std::move(graph));
}

void read(MessageReader from, AttributeMessage& to) {
  for (Field field; from.next(field);) switch (field.number) {
      case 1:
        to.name = from.text(field);
        break;
      case 2:
        to.number = from.number32(field);
        break;
      case 3:
        to.integer = from.integer(field);
        break;
      case 4:
        to.text = from.text(field);
        break;
      case 5:
      case 10:
        add_message(from, field, "TensorProto", to.tensors);
        break;
      case 6:
      case 11:
        add_graph(from, field, to);
        break;
      case 7:
        from.add_floats(field, to.numbers);
        break;
      case 8:
        from.add_integers(field, to.integers);
        break;
      case 9:
        add_text(from, field, to.texts);
        break;
      case 14:
      case 15:
        add_message(from, field, "TypeProto", to.types);
        break;
      case 20:
        to.type = from.integer(field);
        break;
      case 21:
        to.referenced = from.text(field);
        break;
      case 22:
      case 23:
        add_message(from, field, "SparseTensorProto", to.sparse_tensors);
        break;
      default:
        break;
    }
}

void read(MessageReader from, NodeMessage& to) {
  for (Field field; from.next(field);) {
    if (to.offset == 0) to.offset = field.offset;
    switch (field.number) {
      case 1:
        add_text(from, field, to.inputs);
        break;
      case 2:
        add_text(from, field, to.outputs);
        break;
      case 3:
        to.name = from.text(field);
        break;
      case 4:
        to.op = from.text(field);
        break;
      case 5:
        add_message(from, field, "AttributeProto", to.attributes);
        break;
      case 7:
        to.domain = from.text(field);
        break;
      case 8:
        to.overload = from.text(field);
        break;
      default:
        break;
    }
  }
}

void read(MessageReader from, GraphMessage& to) {
  for (Field field; from.next(field);) switch (field.number) {
      case 1:
        add_message(from, field, "NodeProto", to.nodes);
        break;
      case 2:
        to.name = from.text(field);
        break;
      case 5:
        add_message(from, field, "TensorProto", to.constants);
        break;
      case 11:
        add_message(from, field, "ValueInfoProto", to.inputs);
        break;
      case 12:
        add_message(from, field, "ValueInfoProto", to.outputs);
        break;
      case 13:
        add_message(from, field, "ValueInfoProto", to.values);
        break;
      case 15:
        add_message(from, field, "SparseTensorProto", to.sparse_constants);
        break;
      default:
        break;
    }
}

void read(MessageReader from, Opset& to) {
  for (Field field; from.next(field);)
    if (field.number == 1)
      to.domain = from.text(field);
    else if (field.number == 2)
      to.version = from.integer(field);
}

void read(MessageReader from, FunctionMessage& to) {
  for (Field field; from.next(field);) switch (field.number) {
      case 1:
        to.name = from.text(field);
        break;
      case 4:
        add_text(from, field, to.inputs);
        break;
      case 5:
        add_text(from, field, to.outputs);
        break;
      case 6:
        add_text(from, field, to.attributes);
        break;
      case 7:
        add_message(from, field, "NodeProto", to.nodes);
        break;
      case 9:
        add_message(from, field, "OperatorSetIdProto", to.opsets);
        break;
      case 10:
        to.domain = from.text(field);
        break;
      case 11:
        add_message(from, field, "AttributeProto", to.defaults);
        break;
      case 13:
        to.overload = from.text(field);
        break;
      default:
        break;
    }
}

void read(MessageReader from, EntryMessage& to) {
  for (Field field; from.next(field);) switch (field.number) {
      case 1:
        to.key = from.text(field);
        break;
      case 2:
        to.value = from.text(field);
        break;
      default:
        break;
    }
}

void read(MessageReader from, ModelMessage& to) {
  for (Field field; from.next(field);) switch (field.number) {
      case 1:
        to.ir_version = from.integer(field);
        break;
      case 2:
        to.producer = from.text(field);
        break;
      case 3:
        to.producer_version = from.text(field);
        break;
      case 7:
        read(from.message(field, "GraphProto"), to.graph);
        break;
      case 8:
        add_message(from, field, "OperatorSetIdProto", to.opsets);
        break;
      case 25:
        add_message(from, field, "FunctionProto", to.functions);
        break;
      case 14:
        add_message(from, field, "StringStringEntryProto", to.metadata);
        break;
      default:
        break;
    }
}

}  // namespace

std::string name_of(DataType type) {
  constexpr const char* kNames[] = {
      "undefined",      "float",    "uint8",        "int8",           "uint16",
      "int16",          "int32",    "int64",        "string",         "bool",
      "float16",        "double",   "uint32",       "uint64",         "complex64",
      "complex128",     "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
      "float8e5m2fnuz", "uint4",    "int4",         "float4e2m1",     "float8e8m0",
      "uint2",          "int2"};
  const auto number = static_cast<std::size_t>(type);
  return number < std::size(kNames) ? kNames[number] : fmt::format("data type {}", number);
}

std::string shown(std::string_view name) {
  constexpr size_t kMostShown = 100;  // bytes
  const std::string text = sanitise_text(name.substr(0, kMostShown));
  return name.size() <= kMostShown ? text : fmt::format("{}... ({} bytes)", text, name.size());
}

std::string label_of(const NodeMessage& node) {
  return node.name.empty() ? fmt::format("{} node at byte {}", shown(node.op), node.offset)
                           : fmt::format("{} node \"{}\"", shown(node.op), shown(node.name));
}

namespace {

ModelMessage parsed_model(std::span<const std::byte> file) {
  ReadLimits limits(file.size());
  ModelMessage model;
  read(MessageReader(file, "ModelProto", 0, limits), model);
  require(model.ir_version > 0 && !model.opsets.empty() && !model.graph.outputs.empty(),
          "[onnx] the file is no ONNX model: it has no {}",
          model.ir_version <= 0  ? "IR version"
          : model.opsets.empty() ? "operator sets"
                                 : "graph with outputs");
  return model;
}

void require_opsets(const std::vector<Opset>& opsets) {
  for (const Opset& opset : opsets) {
    const bool is_of_onnx = canonical(opset.domain).empty();
    require(opset.version >= (is_of_onnx ? 1 : 0),
            "[onnx] the file has operator set {} of the domain \"{}\", sets begin at 1; export the "
            "model again",
            opset.version, shown(opset.domain));
    require(!is_of_onnx || opset.version <= kNewestOpset,
            "[onnx] the file has operator set {}, this library reads sets up to {}; export the "
            "model with an older set",
            opset.version, kNewestOpset);
  }
}

}  // namespace

ModelMessage read_model(std::span<const std::byte> file) {
  ModelMessage model;
  try {
    model = parsed_model(file);
  } catch (const Error&) {
    const std::string foreign =
        file.empty() ? "the file is empty" : io::foreign_format(file, io::Wanted::Onnx);
    require(foreign.empty(), "[onnx] {}", foreign);
    throw;
  }
  require(model.ir_version >= kOldestIr,
          "[onnx] the file has IR version {}, this library reads versions from {} on; convert the "
          "model with onnx.version_converter",
          model.ir_version, kOldestIr);
  require_opsets(model.opsets);
  for (const FunctionMessage& function : model.functions) require_opsets(function.opsets);
  require(model.ir_version <= kNewestIr,
          "[onnx] the file has IR version {}, this library reads versions up to {}; export the "
          "model with an older version",
          model.ir_version, kNewestIr);
  return model;
}

TensorMessage read_tensor(std::span<const std::byte> file) {
  ReadLimits limits(file.size());
  TensorMessage tensor;
  read(MessageReader(file, "TensorProto", 0, limits), tensor);
  return tensor;
}

}  // namespace plugrad::onnx

#include "onnx/export/graph_writer.h"

#include <cstring>
#include <filesystem>

#include "base/check.h"
#include "base/file.h"

namespace plugrad::onnx {
namespace {

constexpr std::int64_t kIrVersion = 10, kOpset = 21;
constexpr std::uint64_t kMostInFile = std::uint64_t{2'000'000'000};  // protobuf allows 2 GiB
constexpr std::size_t kLeastExternal = 1024;  // bytes; smaller initialisers stay in the file

template <class T>
std::vector<std::byte> bytes_of_number(T value) {
  std::vector<std::byte> bytes(sizeof(T));
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

MessageWriter entry(std::string_view key, std::string_view value) {
  return MessageWriter().text(1, key).text(2, value);
}

std::span<const std::byte> bytes_in(const std::string& text) {
  return std::as_bytes(std::span(text));
}

void replace(const std::string& path, const std::vector<std::span<const std::byte>>& parts) {
  const int error = replace_file(path, parts);
  require(error == 0, "[onnx] \"{}\" cannot be written: {}", path, file_error_text(error));
}

}  // namespace

DataType data_type_of(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return DataType::Bool;
    case DType::I8:
      return DataType::Int8;
    case DType::U8:
      return DataType::Uint8;
    case DType::I16:
      return DataType::Int16;
    case DType::U16:
      return DataType::Uint16;
    case DType::I32:
      return DataType::Int32;
    case DType::U32:
      return DataType::Uint32;
    case DType::I64:
    case DType::Index:
      return DataType::Int64;
    case DType::U64:
      return DataType::Uint64;
    case DType::F16:
      return DataType::Float16;
    case DType::BF16:
      return DataType::Bfloat16;
    case DType::F32:
      return DataType::Float;
    case DType::F64:
    case DType::WeakFloat:
      return DataType::Double;
    case DType::F8E4M3:
      return DataType::Float8e4m3fn;
    case DType::F8E5M2:
      return DataType::Float8e5m2;
    case DType::Void:
      break;
  }
  fail(ErrorKind::Internal, "[onnx] a value without a dtype");
}

std::string GraphWriter::unique(const std::string& name) {
  if (names_.insert(name).second) return name;
  for (;;) {
    std::string numbered = name + "_" + std::to_string(++next_[name]);
    if (names_.insert(numbered).second) return numbered;
  }
}

void GraphWriter::add(std::string_view op, const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs,
                      const std::vector<NodeAttribute>& attributes) {
  MessageWriter node;
  for (const std::string& input : inputs) node.text(1, input);
  for (const std::string& output : outputs) node.text(2, output);
  node.text(3, outputs[0]).text(4, op);
  for (const NodeAttribute& a : attributes) {
    MessageWriter attribute;
    attribute.text(1, a.name);
    // The numbers of AttributeProto.AttributeType.
    if (a.form == NodeAttribute::Form::Integer) attribute.integer(3, a.integer).integer(20, 2);
    if (a.form == NodeAttribute::Form::Text) attribute.text(4, a.text).integer(20, 3);
    if (a.form == NodeAttribute::Form::Graph) attribute.text(6, a.text).integer(20, 5);
    if (a.form == NodeAttribute::Form::Integers) {
      for (const std::int64_t i : a.integers) attribute.integer(8, i);
      attribute.integer(20, 7);
    }
    node.message(5, attribute);
  }
  nodes_.back().message(1, node);
}

std::string GraphWriter::node(std::string_view op, const std::vector<std::string>& inputs,
                              const std::vector<NodeAttribute>& attributes) {
  std::string result = unique(std::string(op));
  add(op, inputs, {result}, attributes);
  return result;
}

std::vector<std::string> GraphWriter::add_with_body(std::string_view op,
                                                    const std::vector<std::string>& inputs,
                                                    std::size_t output_count,
                                                    std::vector<NodeAttribute> attributes,
                                                    const std::vector<Value>& body_inputs,
                                                    const std::vector<Value>& body_outputs) {
  MessageWriter graph = std::move(nodes_.back());
  nodes_.pop_back();
  graph.text(2, "body");
  for (const Value& v : body_inputs) graph.message(11, value_info(v.name, v.dtype, v.shape));
  for (const Value& v : body_outputs) graph.message(12, value_info(v.name, v.dtype, v.shape));
  attributes.emplace_back("body", graph);
  std::vector<std::string> results;
  for (std::size_t i = 0; i < output_count; ++i) results.push_back(unique(std::string(op)));
  add(op, inputs, results, attributes);
  return results;
}

void GraphWriter::rename(const std::string& value, const std::string& name) {
  add("Identity", {value}, {name}, {});
}

std::string GraphWriter::integers(const std::vector<std::int64_t>& values) {
  std::string& known = lists_[values];
  if (!known.empty()) return known;
  const auto bytes = std::as_bytes(std::span(values));
  return known = initialiser("list", DType::I64, {static_cast<std::int64_t>(values.size())},
                             {bytes.begin(), bytes.end()});
}

std::string GraphWriter::number(DType dtype, double real, std::int64_t integer) {
  std::vector<std::byte> bytes;
  if (dtype == DType::F32)
    bytes = bytes_of_number(static_cast<float>(real));
  else if (is_float(dtype))
    bytes = bytes_of_number(real);
  else
    bytes = bytes_of_number(integer);
  if (!is_float(dtype) && dtype != DType::Index) bytes.resize(size_of(dtype));
  std::string& known = numbers_[{dtype, bytes}];
  return known.empty() ? known = initialiser("number", dtype, {}, bytes) : known;
}

std::string GraphWriter::initialiser(const std::string& name, DType dtype, const Shape& shape,
                                     std::vector<std::byte> bytes) {
  initialisers_.push_back({unique(name), dtype, shape, std::move(bytes)});
  return initialisers_.back().name;
}

MessageWriter GraphWriter::value_info(const std::string& name, DType dtype, const Shape& shape) {
  MessageWriter sizes;
  for (const std::int64_t size : shape) sizes.message(1, MessageWriter().integer(1, size));
  MessageWriter tensor;
  tensor.integer(1, static_cast<std::int64_t>(data_type_of(dtype))).message(2, sizes);
  return MessageWriter().text(1, name).message(2, MessageWriter().message(1, tensor));
}

void GraphWriter::input(const std::string& name, DType dtype, const Shape& shape) {
  inputs_.message(11, value_info(name, dtype, shape));
}
void GraphWriter::output(const std::string& name, DType dtype, const Shape& shape) {
  outputs_.message(12, value_info(name, dtype, shape));
}

MessageWriter GraphWriter::header_of(const Initialiser& initialiser) {
  MessageWriter header;
  for (const std::int64_t size : initialiser.shape) header.integer(1, size);
  header.integer(2, static_cast<std::int64_t>(data_type_of(initialiser.dtype)));
  header.text(8, initialiser.name);
  return header;
}

void GraphWriter::write(const std::string& path, bool external) const {
  std::uint64_t all = nodes_[0].bytes().size();
  for (const Initialiser& i : initialisers_) all += i.bytes.size();
  external = external || all > kMostInFile;
  const std::string data_path = path + ".data";
  const std::string location = std::filesystem::path(data_path).filename().string();
  std::vector<std::span<const std::byte>> parts, data;
  std::uint64_t offset = 0, graph_bytes = 0;
  std::vector<MessageWriter> headers;
  std::vector<bool> is_external;
  headers.reserve(initialisers_.size());
  for (const Initialiser& i : initialisers_) {
    MessageWriter tensor = header_of(i);
    is_external.push_back(external && i.bytes.size() >= kLeastExternal);
    std::uint64_t behind = 0;
    if (is_external.back()) {
      tensor.message(13, entry("location", location))
          .message(13, entry("offset", std::to_string(offset)))
          .message(13, entry("length", std::to_string(i.bytes.size())))
          .integer(14, 1);
      offset += i.bytes.size();
      data.emplace_back(i.bytes);
    } else {
      tensor.begin_bytes(9, behind = i.bytes.size());
    }
    MessageWriter field;
    field.begin_bytes(5, tensor.bytes().size() + behind).append(tensor);
    headers.push_back(field);
    graph_bytes += field.bytes().size() + behind;
  }
  MessageWriter rest = nodes_[0];
  rest.text(2, "plugrad");
  rest.append(inputs_);
  rest.append(outputs_);
  MessageWriter model;
  model.integer(1, kIrVersion).text(2, "plugrad");
  model.message(8, MessageWriter().text(1, "").integer(2, kOpset));
  model.begin_bytes(7, rest.bytes().size() + graph_bytes).append(rest);
  parts.push_back(bytes_in(model.bytes()));
  for (std::size_t i = 0; i < initialisers_.size(); ++i) {
    parts.push_back(bytes_in(headers[i].bytes()));
    if (!is_external[i]) parts.emplace_back(initialisers_[i].bytes);
  }
  if (external) replace(data_path, data);
  replace(path, parts);
}

}  // namespace plugrad::onnx

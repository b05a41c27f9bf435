// Collects the nodes and constants of an ONNX graph and writes them to a file.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onnx/file/message_writer.h"
#include "onnx/file/messages.h"
#include "plugrad/dtype.h"
#include "plugrad/shape.h"

namespace plugrad::onnx {

/// The ONNX type of a dtype; that of Index is Int64, and that of WeakFloat Double.
DataType data_type_of(DType dtype);

/// An attribute: an integer, several, a text or the body of a node.
struct NodeAttribute {
  NodeAttribute(std::string_view of, std::int64_t value) : name(of), integer(value) {}
  NodeAttribute(std::string_view of, std::vector<std::int64_t> values)
      : name(of), form(Form::Integers), integers(std::move(values)) {}
  NodeAttribute(std::string_view of, const char* value) : name(of), form(Form::Text), text(value) {}
  NodeAttribute(std::string_view of, const MessageWriter& graph)
      : name(of), form(Form::Graph), text(graph.bytes()) {}

  std::string_view name;
  enum class Form : std::uint8_t { Integer, Integers, Text, Graph } form = Form::Integer;
  std::int64_t integer = 0;
  std::vector<std::int64_t> integers;
  std::string text;
};

class GraphWriter {
 public:
  /// Adds a node with one output, and returns the output's name.
  std::string node(std::string_view op, const std::vector<std::string>& inputs,
                   const std::vector<NodeAttribute>& attributes = {});
  /// Begins the graph of a node: nodes belong to it until add_with_body(), and may use values of the
  /// graphs around it.
  void begin_body() { nodes_.emplace_back(); }
  struct Value {
    std::string name;
    DType dtype;
    Shape shape;
  };
  /// Ends the body and adds the node that has it; returns the names of its outputs.
  std::vector<std::string> add_with_body(std::string_view op,
                                         const std::vector<std::string>& inputs,
                                         std::size_t output_count,
                                         std::vector<NodeAttribute> attributes,
                                         const std::vector<Value>& body_inputs,
                                         const std::vector<Value>& body_outputs);
  /// Gives the value another name by an Identity.
  void rename(const std::string& value, const std::string& name);

  // Constants; equal numbers and lists are one.
  std::string integers(const std::vector<std::int64_t>& values);
  /// A number of shape (); `dtype` is Bool, F32, F64 or an integer.
  std::string number(DType dtype, double real, std::int64_t integer);
  /// `name` becomes unique. The bytes are kept.
  std::string initialiser(const std::string& name, DType dtype, const Shape& shape,
                          std::vector<std::byte> bytes);

  void input(const std::string& name, DType dtype, const Shape& shape);
  void output(const std::string& name, DType dtype, const Shape& shape);
  /// A name that no value has yet, beginning with `name`.
  std::string unique(const std::string& name);

  /// Writes the file; with `external`, or beyond 2 GiB, the elements of larger initialisers are in
  /// `path`.data. Errors: User if a file cannot be written.
  void write(const std::string& path, bool external) const;

 private:
  struct Initialiser {
    std::string name;
    DType dtype;
    Shape shape;
    std::vector<std::byte> bytes;
  };
  static MessageWriter header_of(const Initialiser& initialiser);
  static MessageWriter value_info(const std::string& name, DType dtype, const Shape& shape);
  void add(std::string_view op, const std::vector<std::string>& inputs,
           const std::vector<std::string>& outputs, const std::vector<NodeAttribute>& attributes);

  std::vector<MessageWriter> nodes_ = std::vector<MessageWriter>(1);  // the last is the innermost
  MessageWriter inputs_, outputs_;
  std::vector<Initialiser> initialisers_;
  std::map<std::pair<DType, std::vector<std::byte>>, std::string> numbers_;
  std::map<std::vector<std::int64_t>, std::string> lists_;
  std::set<std::string, std::less<>> names_;
  std::map<std::string, int> next_;  // by beginning of a name
};

}  // namespace plugrad::onnx

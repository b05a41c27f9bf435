// Writes ONNX files for tests, field by field.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad::onnx {

/// Types of elements.
inline constexpr int64_t kFloat = 1, kInt64 = 7, kString = 8;

class Message {
 public:
  Message& integer(int field, int64_t value) {
    varint(static_cast<uint64_t>(field) << 3);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& text(int field, std::string_view value) {
    varint(static_cast<uint64_t>(field) << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& number(int field, float value) {
    varint(static_cast<uint64_t>(field) << 3 | 5);
    const auto bytes = std::bit_cast<std::array<char, 4>>(value);
    bytes_.append(bytes.data(), bytes.size());
    return *this;
  }
  Message& message(int field, const Message& value) { return text(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

inline Message node(std::string_view op, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs) {
  Message made;
  for (const std::string& name : inputs) made.text(1, name);
  for (const std::string& name : outputs) made.text(2, name);
  return made.text(3, "the " + std::string(op)).text(4, op);
}

/// The type of tensors with these elements; sizes below 0 are named "n".
inline Message tensor_type(int64_t element, const std::vector<int64_t>& shape) {
  Message dims;
  for (const int64_t size : shape)
    dims.message(1, size < 0 ? Message().text(2, "n") : Message().integer(1, size));
  return Message().message(1, Message().integer(1, element).message(2, dims));
}
inline Message sequence_type(const Message& element) {
  return Message().message(4, Message().message(1, element));
}
inline Message optional_type(const Message& element) {
  return Message().message(9, Message().message(1, element));
}

inline Message value(std::string_view name, const Message& type) {
  return Message().text(1, name).message(2, type);
}
/// A float tensor's declaration.
inline Message value(std::string_view name, const std::vector<int64_t>& shape) {
  return value(name, tensor_type(1, shape));
}

/// Attributes of a node.
inline Message attribute(std::string_view name, int64_t integer) {
  return Message().text(1, name).integer(3, integer).integer(20, 2);
}
inline Message attribute(std::string_view name, float number) {
  return Message().text(1, name).number(2, number).integer(20, 1);
}
inline Message attribute(std::string_view name, std::string_view text) {
  return Message().text(1, name).text(4, text).integer(20, 3);
}
inline Message attribute(std::string_view name, const std::vector<int64_t>& integers) {
  Message made = Message().text(1, name).integer(20, 7);
  for (const int64_t integer : integers) made.integer(8, integer);
  return made;
}
inline Message attribute(std::string_view name, const std::vector<float>& numbers) {
  Message made = Message().text(1, name).integer(20, 6);
  for (const float number : numbers) made.number(7, number);
  return made;
}
inline Message attribute(std::string_view name, const std::vector<std::string>& texts) {
  Message made = Message().text(1, name).integer(20, 8);
  for (const std::string& text : texts) made.text(9, text);
  return made;
}
inline Message attribute(std::string_view name, const Message& graph) {
  return Message().text(1, name).message(6, graph).integer(20, 5);
}

inline Message constant(std::string_view name, const std::vector<int64_t>& dims,
                        const std::vector<float>& elements) {
  Message made;
  for (const int64_t size : dims) made.integer(1, size);
  std::string raw(elements.size() * sizeof(float), '\0');
  std::memcpy(raw.data(), elements.data(), raw.size());
  return made.integer(2, 1).text(8, name).text(9, raw);
}

inline Message integer_constant(std::string_view name, const std::vector<int64_t>& dims,
                                const std::vector<int64_t>& elements) {
  Message made;
  for (const int64_t size : dims) made.integer(1, size);
  made.integer(2, 7).text(8, name);
  for (const int64_t element : elements) made.integer(7, element);
  return made;
}

inline std::string model_of_bytes(const Message& graph, int64_t ir_version = 8,
                                  int64_t opset = 17) {
  return Message()
      .integer(1, ir_version)
      .message(7, graph)
      .message(8, Message().integer(2, opset))
      .bytes();
}

}  // namespace plugrad::onnx

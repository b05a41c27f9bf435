// Writes fields of a protobuf message into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace plugrad::onnx {

class MessageWriter {
 public:
  MessageWriter& integer(std::uint32_t field, std::int64_t value);
  MessageWriter& number32(std::uint32_t field, float value);
  MessageWriter& text(std::uint32_t field, std::string_view value);
  MessageWriter& message(std::uint32_t field, const MessageWriter& value) {
    return text(field, value.bytes_);
  }
  /// The beginning of a field of bytes; the caller writes `size` bytes behind bytes().
  MessageWriter& begin_bytes(std::uint32_t field, std::uint64_t size);
  /// Appends the fields of another part of the same message.
  void append(const MessageWriter& part) { bytes_ += part.bytes_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value);
  std::string bytes_;
};

}  // namespace plugrad::onnx

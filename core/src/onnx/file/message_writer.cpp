#include "onnx/file/message_writer.h"

#include <bit>

namespace plugrad::onnx {
namespace {

// Forms of a field on the wire: Field::Form of wire.h.
constexpr std::uint64_t kVarint = 0, kBytes = 2, kFixed32 = 5;

std::uint64_t tag(std::uint32_t field, std::uint64_t form) {
  return (std::uint64_t{field} << 3) | form;
}

}  // namespace

void MessageWriter::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7f) | 0x80);
  bytes_ += static_cast<char>(value);
}

MessageWriter& MessageWriter::integer(std::uint32_t field, std::int64_t value) {
  varint(tag(field, kVarint));
  varint(static_cast<std::uint64_t>(value));
  return *this;
}

MessageWriter& MessageWriter::number32(std::uint32_t field, float value) {
  varint(tag(field, kFixed32));
  const auto bits = std::bit_cast<std::uint32_t>(value);
  for (int shift = 0; shift < 32; shift += 8) bytes_ += static_cast<char>((bits >> shift) & 0xff);
  return *this;
}

MessageWriter& MessageWriter::text(std::uint32_t field, std::string_view value) {
  begin_bytes(field, value.size());
  bytes_ += value;
  return *this;
}

MessageWriter& MessageWriter::begin_bytes(std::uint32_t field, std::uint64_t size) {
  varint(tag(field, kBytes));
  varint(size);
  return *this;
}

}  // namespace plugrad::onnx

#include "onnx/file/wire.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"

namespace plugrad::onnx {

ReadLimits::ReadLimits(std::size_t file_bytes) : left_(3 * file_bytes + (std::size_t{32} << 20)) {}

void ReadLimits::charge(std::size_t bytes) {
  require(bytes <= left_,
          "[onnx] the file holds more nodes, values or attributes than a model of its size can");
  left_ -= bytes;
}

MessageReader::MessageReader(std::span<const std::byte> bytes, std::string_view name,
                             std::size_t offset, ReadLimits& limits, int depth)
    : bytes_(bytes), name_(name), offset_(offset), limits_(&limits), depth_(depth) {
  if (depth > ReadLimits::kMostDepth) wrong(offset, "messages are nested too deep");
}

void MessageReader::wrong(std::size_t offset, std::string_view what) const {
  fail(ErrorKind::User, "[onnx] byte {}, in {}: {}", offset, name_, what);
}

// Only the file itself is too short if it was truncated, and no file of a model has 2 GB.
void MessageReader::too_short(std::size_t offset, std::uint64_t missing,
                              std::string_view otherwise) const {
  if (depth_ > 0 || offset == 0 || missing >> 31 != 0) wrong(offset, otherwise);
  fail(ErrorKind::User,
       "[onnx] the file is truncated: {} byte{} {} missing after byte {} (the field of {} at byte "
       "{} "
       "goes on)",
       missing, missing == 1 ? "" : "s", missing == 1 ? "is" : "are", offset_ + bytes_.size(),
       name_, offset);
}

std::uint64_t MessageReader::varint() {
  const std::size_t start = at_;
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at_ == bytes_.size()) too_short(offset_ + start, 1, "the message ends within a number");
    const auto byte = std::to_integer<std::uint64_t>(bytes_[at_++]);
    value |= (byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  wrong(offset_ + start, "a number has more than ten bytes");
}

bool MessageReader::next(Field& field) {
  if (at_ == bytes_.size()) return false;
  field = {};
  field.offset = offset_ + at_;
  const std::uint64_t tag = varint();
  field.number = static_cast<std::uint32_t>(tag >> 3);
  if (field.number == 0 || tag >> 32 != 0) wrong(field.offset, "the field has no valid number");
  const auto fixed = [&](std::size_t size) {
    if (bytes_.size() - at_ < size)
      too_short(field.offset, size - (bytes_.size() - at_), "the message ends within a number");
    std::memcpy(&field.bits, bytes_.data() + at_, size);
    at_ += size;
  };
  field.form = static_cast<Field::Form>(tag & 7);
  switch (field.form) {
    case Field::Form::Varint:
      field.bits = varint();
      return true;
    case Field::Form::Fixed64:
      fixed(8);
      return true;
    case Field::Form::Fixed32:
      fixed(4);
      return true;
    case Field::Form::Bytes: {
      const std::uint64_t size = varint();
      if (size > bytes_.size() - at_)
        too_short(field.offset, size - (bytes_.size() - at_),
                  "the field is longer than its message");
      field.bytes = bytes_.subspan(at_, size);
      at_ += size;
      return true;
    }
  }
  wrong(field.offset, "the field has a form that ONNX does not use");
}

void MessageReader::require_form(const Field& field, Field::Form form,
                                 std::string_view what) const {
  if (field.form != form) wrong(field.offset, fmt::format("field {} is no {}", field.number, what));
}

std::int64_t MessageReader::integer(const Field& field) const {
  require_form(field, Field::Form::Varint, "integer");
  return std::bit_cast<std::int64_t>(field.bits);
}

float MessageReader::number32(const Field& field) const {
  require_form(field, Field::Form::Fixed32, "32-bit float");
  return std::bit_cast<float>(static_cast<std::uint32_t>(field.bits));
}

std::span<const std::byte> MessageReader::bytes(const Field& field) const {
  require_form(field, Field::Form::Bytes, "sequence of bytes");
  return field.bytes;
}

std::string_view MessageReader::text(const Field& field) const {
  const auto all = bytes(field);
  return {reinterpret_cast<const char*>(all.data()), all.size()};
}

MessageReader MessageReader::message(const Field& field, std::string_view name) const {
  const auto all = bytes(field);
  const auto offset = static_cast<std::size_t>(all.data() - bytes_.data()) + offset_;
  return {all, name, offset, *limits_, depth_ + 1};
}

void MessageReader::add_integers(const Field& field, std::vector<std::int64_t>& to) const {
  if (field.form == Field::Form::Varint) {
    charge(sizeof(std::int64_t));
    return to.push_back(integer(field));
  }
  MessageReader packed = message(field, name_);
  const auto count = std::ranges::count_if(
      field.bytes, [](std::byte byte) { return std::to_integer<int>(byte) < 0x80; });
  charge(static_cast<std::size_t>(count) * sizeof(std::int64_t));
  to.reserve(to.size() + static_cast<std::size_t>(count));
  while (packed.at_ < packed.bytes_.size())
    to.push_back(std::bit_cast<std::int64_t>(packed.varint()));
}

template <class T>
void MessageReader::add_fixed(const Field& field, Field::Form form, std::vector<T>& to) const {
  const auto add = [&](const void* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    to.push_back(value);
  };
  charge(sizeof(T));
  if (field.form == form) return add(&field.bits);
  const auto packed = bytes(field);
  if (packed.size() % sizeof(T) != 0)
    wrong(field.offset, fmt::format("field {} ends within a number", field.number));
  charge(packed.size());
  for (std::size_t i = 0; i < packed.size(); i += sizeof(T)) add(packed.data() + i);
}

void MessageReader::add_floats(const Field& field, std::vector<float>& to) const {
  add_fixed(field, Field::Form::Fixed32, to);
}
void MessageReader::add_doubles(const Field& field, std::vector<double>& to) const {
  add_fixed(field, Field::Form::Fixed64, to);
}

}  // namespace plugrad::onnx

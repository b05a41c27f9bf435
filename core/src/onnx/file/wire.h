// Reads fields of a protobuf message from memory, with bounds on everything that the bytes say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace plugrad::onnx {

/// The limits of one file while it is read: how deep messages nest, and how much memory their
/// structures take. A message of two bytes becomes a structure of hundreds.
class ReadLimits {
 public:
  explicit ReadLimits(std::size_t file_bytes);
  static constexpr int kMostDepth = 64;

  /// Errors: User if the file's structures take too much memory.
  void charge(std::size_t bytes);

 private:
  std::size_t left_;
};

/// One field of a message: its number, and its value in the form that the wire has.
struct Field {
  enum class Form : std::uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };
  std::uint32_t number = 0;
  Form form = Form::Varint;
  std::uint64_t bits = 0;            // of a number
  std::span<const std::byte> bytes;  // of Form::Bytes
  std::size_t offset = 0;            // of the field in the file
};

/// Walks the fields of one message.
class MessageReader {
 public:
  /// `name` is the message's, for errors; `offset` that of `bytes` in the file.
  MessageReader(std::span<const std::byte> bytes, std::string_view name, std::size_t offset,
                ReadLimits& limits, int depth = 0);

  /// False at the message's end. Errors: User, with the byte's offset, for bytes that are no field.
  bool next(Field& field);

  // Values of a field. Errors: User if it has another form.
  std::int64_t integer(const Field& field) const;
  float number32(const Field& field) const;
  std::string_view text(const Field& field) const;
  std::span<const std::byte> bytes(const Field& field) const;
  MessageReader message(const Field& field, std::string_view name) const;

  // Appends the values of a repeated number, which may be packed or single.
  void add_integers(const Field& field, std::vector<std::int64_t>& to) const;
  void add_floats(const Field& field, std::vector<float>& to) const;
  void add_doubles(const Field& field, std::vector<double>& to) const;

  /// Counts memory for one more structure of this size.
  void charge(std::size_t bytes) const { limits_->charge(bytes); }
  /// Errors: always User, "byte N: ModelProto: what".
  [[noreturn]] void wrong(std::size_t offset, std::string_view what) const;
  /// Errors: always User, for a field at `offset` that goes on for `missing` bytes.
  [[noreturn]] void too_short(std::size_t offset, std::uint64_t missing,
                              std::string_view otherwise) const;

 private:
  std::uint64_t varint();
  void require_form(const Field& field, Field::Form form, std::string_view what) const;
  template <class T>
  void add_fixed(const Field& field, Field::Form form, std::vector<T>& to) const;

  std::span<const std::byte> bytes_;
  std::string_view name_;
  std::size_t offset_;  // of bytes_ in the file
  std::size_t at_ = 0;  // in bytes_
  ReadLimits* limits_;
  int depth_;
};

}  // namespace plugrad::onnx

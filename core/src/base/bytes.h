// Writes numbers, texts and trivial structs as bytes, and reads them back with the same build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace plugrad {

class ByteWriter {
 public:
  template <class T>
  ByteWriter& put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return append(std::as_bytes(std::span(&value, 1)));
  }
  ByteWriter& put_bytes(std::span<const std::byte> from) {
    return put(uint64_t{from.size()}).append(from);
  }
  ByteWriter& put_text(std::string_view text) { return put_bytes(std::as_bytes(std::span(text))); }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  ByteWriter& append(std::span<const std::byte> from) {
    bytes_.insert(bytes_.end(), from.begin(), from.end());
    return *this;
  }
  std::vector<std::byte> bytes_;
};

/// Reads the values in order. Missing values read as zero or empty, and is_whole() is then false.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}
  template <class T>
  T get() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    const auto from = take(sizeof value);
    if (!from.empty()) std::memcpy(&value, from.data(), sizeof value);
    return value;
  }
  std::span<const std::byte> get_bytes() { return take(get<uint64_t>()); }
  std::string get_text() {
    const auto from = get_bytes();
    return {reinterpret_cast<const char*>(from.data()), from.size()};
  }
  bool is_whole() const { return is_whole_; }
  bool is_at_end() const { return rest_.empty(); }

 private:
  std::span<const std::byte> take(uint64_t size) {
    if (size > rest_.size()) {
      is_whole_ = false;
      rest_ = {};
      return {};
    }
    const auto taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }
  std::span<const std::byte> rest_;
  bool is_whole_ = true;
};

}  // namespace plugrad

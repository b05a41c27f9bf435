// XXH3 hashes of bytes: names of cache entries, keys of in-process tables. Not cryptographic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace plugrad {

struct Hash128 {
  std::uint64_t high = 0, low = 0;
  bool operator==(const Hash128&) const = default;
  /// 32 hexadecimal digits.
  std::string hex() const;
};

std::uint64_t hash64(std::span<const std::byte> bytes, std::uint64_t seed = 0);
Hash128 hash128(std::span<const std::byte> bytes);

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// For hash tables keyed by Hash128: its low half is already well mixed.
struct Hash128Hasher {
  std::size_t operator()(const Hash128& h) const { return h.low; }
};

}  // namespace plugrad

// The only file that includes xxHash.
#include "base/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace plugrad {

std::string Hash128::hex() const {
  return fmt::format("{:016x}{:016x}", high, low);
}

std::uint64_t hash64(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

Hash128 hash128(std::span<const std::byte> bytes) {
  XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

}  // namespace plugrad

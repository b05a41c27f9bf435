// SHA-256 (FIPS 180-4), so that a report carries a digest that any tool can recompute.
#include <fmt/format.h>

#include <array>
#include <bit>

#include "conformance/report/report.h"

namespace plugrad::conformance {
namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
// clang-format off
constexpr uint32_t kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
// clang-format on

using Hash = std::array<uint32_t, 8>;

void add_block(Hash& hash, std::string_view block) {
  uint32_t words[64];
  for (size_t i = 0; i < 16; ++i) {
    words[i] = 0;
    for (size_t byte = 0; byte < 4; ++byte)
      words[i] = words[i] << 8 | static_cast<unsigned char>(block[4 * i + byte]);
  }
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t a = words[i - 15], b = words[i - 2];
    words[i] = words[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) + words[i - 7] +
               (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  Hash h = hash;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t mixed = h[7] + (std::rotr(h[4], 6) ^ std::rotr(h[4], 11) ^ std::rotr(h[4], 25)) +
                           ((h[4] & h[5]) ^ (~h[4] & h[6])) + kRounds[i] + words[i];
    const uint32_t spread = (std::rotr(h[0], 2) ^ std::rotr(h[0], 13) ^ std::rotr(h[0], 22)) +
                            ((h[0] & h[1]) ^ (h[0] & h[2]) ^ (h[1] & h[2]));
    h = {mixed + spread, h[0], h[1], h[2], h[3] + mixed, h[4], h[5], h[6]};
  }
  for (size_t i = 0; i < 8; ++i) hash[i] += h[i];
}

}  // namespace

std::string sha256(std::string_view bytes) {
  Hash hash = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
               0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const uint64_t bits = bytes.size() * 8;
  for (; bytes.size() >= 64; bytes.remove_prefix(64)) add_block(hash, bytes.substr(0, 64));
  std::string last(bytes);
  last += '\x80';
  while (last.size() % 64 != 56) last += '\0';
  for (int shift = 56; shift >= 0; shift -= 8) last += static_cast<char>(bits >> shift & 0xff);
  for (size_t at = 0; at < last.size(); at += 64)
    add_block(hash, std::string_view(last).substr(at, 64));
  std::string text;
  for (uint32_t word : hash) text += fmt::format("{:08x}", word);
  return text;
}

}  // namespace plugrad::conformance

#include "conformance/levels/expect.h"

#include <cstdio>

namespace plugrad::conformance {

std::vector<std::byte> patterned(uint64_t size, uint64_t seed) {
  std::vector<std::byte> bytes(size);
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

void expect_bytes(std::string_view what, std::span<const std::byte> found,
                  std::span<const std::byte> wanted) {
  expect(found.size() == wanted.size(), std::string(what) + ": sizes differ");
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] == wanted[i]) continue;
    char text[64];
    std::snprintf(text, sizeof text, ": byte %zu is 0x%02x, not 0x%02x", i,
                  static_cast<unsigned>(found[i]), static_cast<unsigned>(wanted[i]));
    throw Failed(std::string(what) + text);
  }
}

std::vector<std::byte> read_all(const Buffer& buffer) {
  std::vector<std::byte> bytes(buffer.size_bytes());
  buffer.read(bytes);
  return bytes;
}

std::string describe_range(uint64_t size, uint64_t offset) {
  return std::to_string(size) + " bytes at offset " + std::to_string(offset);
}

}  // namespace plugrad::conformance

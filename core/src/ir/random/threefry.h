// Threefry-2x32 with 20 rounds (Salmon et al. 2011), the hash of random numbers.
#pragma once

#include <array>
#include <cstdint>

namespace plugrad {

/// Both words of the hash of a counter under a key. `Word` is uint32_t, or what records the
/// operations; it has +, ^, |, << and >>, the latter four also with a number on the right.
template <class Word>
std::array<Word, 2> threefry(const std::array<Word, 2>& key, const std::array<Word, 2>& counter) {
  constexpr uint32_t kParity = 0x1BD11BDA;
  constexpr uint32_t kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const Word keys[3] = {key[0], key[1], key[0] ^ key[1] ^ kParity};
  Word x0 = counter[0] + keys[0], x1 = counter[1] + keys[1];
  for (uint32_t i = 0; i < 5; ++i) {
    for (const uint32_t by : kRotations[i % 2]) {
      x0 = x0 + x1;
      x1 = ((x1 << by) | (x1 >> (32 - by))) ^ x0;
    }
    x0 = x0 + keys[(i + 1) % 3];
    x1 = x1 + (keys[(i + 2) % 3] + (i + 1));
  }
  return {x0, x1};
}

}  // namespace plugrad

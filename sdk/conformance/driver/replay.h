// Replay tokens: a test, its seed and, if the shrinker produced one, its kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad::conformance {

struct Replay {
  std::string id;
  uint64_t seed = 0;  // of the test
  std::vector<std::byte> payload;
};

// The seed of one test, derived from the run's seed and the test's id.
uint64_t seed_of_test(uint64_t run_seed, std::string_view id);

// The token: letters, digits, - and _. A token too long for a command line is saved in the
// temporary directory, and the file's path is returned.
std::string encode_replay(const Replay& replay);
// Decodes a token, or a file that contains one. Throws std::runtime_error for malformed input.
Replay decode_replay(const std::string& token);

}  // namespace plugrad::conformance

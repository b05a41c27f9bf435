// Replay tokens: one test with its seed and, where the shrinker made one, its kernel.
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

// The seed of one test: from the run's and the test's id.
uint64_t seed_of_test(uint64_t run_seed, std::string_view id);

// Letters, digits, - and _; one that would be too long for a command line is written to a file in
// the temporary directory, and is the file's path.
std::string encode_replay(const Replay& replay);
// Of a token or of a file that holds one. Throws std::runtime_error for anything else.
Replay decode_replay(const std::string& token);

}  // namespace plugrad::conformance

// Kernels that every compiler of rendered C must compile correctly, with their buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace plugrad::testing {

using Contents = std::vector<std::vector<std::byte>>;

struct KernelCase {
  std::string name;
  std::vector<std::byte> block;  // a kernel named "k"
  uint64_t groups = 1;
  std::vector<uint64_t> scalars;
  std::vector<uint32_t> dtypes;  // of the buffers
  Contents contents;
};

// With vectors of at most `most_lanes` (1 or 32), and f16 only if the compiler has the type.
std::vector<KernelCase> make_kernels(uint32_t most_lanes, bool has_f16);

// The buffers after a run by the interpreter.
Contents interpret(const KernelCase& kernel);

// The first differing element (two NaNs are equal); empty: none.
std::string difference(uint32_t dtype, const std::vector<std::byte>& want, const char* got);

}  // namespace plugrad::testing

// Kernels that every compiler of rendered C has to get right, with buffers to run them on.
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

// In vectors of at most `most_lanes` (1 or 32), with f16 only where the compiler has the type.
std::vector<KernelCase> make_kernels(uint32_t most_lanes, bool has_f16);

// What the buffers hold behind a run by the interpreter.
Contents interpret(const KernelCase& kernel);

// The first element that differs, two NaNs not; empty: none.
std::string difference(uint32_t dtype, const std::vector<std::byte>& want, const char* got);

}  // namespace plugrad::testing

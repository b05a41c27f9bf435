// What the compiler hands out and the runner takes: PTX or machine code, the kernels in it with
// their parameters, and a header that tells damage and other GPUs' code apart.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plugrad::cuda {

struct KernelEntry {
  std::string name;
  std::string params;  // a letter each: b, a buffer, or s, a scalar
};

struct Binary {
  bool is_ptx = true;
  std::vector<KernelEntry> kernels;
  std::string code;
};

// The kernels that a source of the dialect "cuda" defines.
std::vector<KernelEntry> kernels_of(std::string_view source);

// `arch` is the GPU's, such as "sm_90".
std::string wrap_binary(const Binary& binary, const std::string& arch);

enum class BinaryState { Good, Damaged, Foreign };
BinaryState unwrap_binary(std::string_view bytes, const std::string& arch, Binary* out);

// As it is. Throws StatusError (BAD_BINARY).
Binary require_binary(std::string_view bytes, const std::string& arch);

}  // namespace plugrad::cuda

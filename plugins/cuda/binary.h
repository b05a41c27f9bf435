// The binary format: PTX or machine code, its kernels with their parameters, and a header that
// detects damage and code of other GPUs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plugrad::cuda {

struct KernelEntry {
  std::string name;
  std::string params;  // one letter each: b buffer, s scalar
};

struct Binary {
  bool is_ptx = true;
  std::vector<KernelEntry> kernels;
  std::string code;
};

// The kernels defined in a source of the dialect "cuda".
std::vector<KernelEntry> kernels_of(std::string_view source);

// `arch` is the GPU's architecture, e.g. "sm_90".
std::string wrap_binary(const Binary& binary, const std::string& arch);

enum class BinaryState { Good, Damaged, Foreign };
BinaryState unwrap_binary(std::string_view bytes, const std::string& arch, Binary* out);

// The content of a binary. Throws StatusError (BAD_BINARY).
Binary require_binary(std::string_view bytes, const std::string& arch);

}  // namespace plugrad::cuda

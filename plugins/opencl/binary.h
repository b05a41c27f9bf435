// The binary format: the driver's binary, the parameters of its kernels, and a header that detects
// damage and binaries of other drivers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad::opencl {

// A kernel's parameters in order: bytes of a scalar, 0 for a buffer.
struct KernelShape {
  std::string name;
  std::vector<uint8_t> param_bytes;
};

struct Binary {
  std::vector<KernelShape> kernels;
  std::string code;  // the driver's binary, or source that the driver builds when it is loaded
  std::string build_options;  // options for source; empty if `code` is the driver's binary
};

enum class BinaryState { Good, Damaged, Foreign };

// `identity` is a text that changes when the driver's output may change.
std::string wrap_binary(const Binary& binary, std::string_view identity);

// If Good, fills *out, which may be nullptr.
BinaryState unwrap_binary(std::string_view bytes, std::string_view identity, Binary* out);

}  // namespace plugrad::opencl

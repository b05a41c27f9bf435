// What the compiler hands out and the runner takes: the driver's binary, the parameters of each
// kernel in it, and a header that tells damage and other drivers' binaries apart.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad::opencl {

// A kernel's parameters in order: the bytes of a scalar, 0 for a buffer.
struct KernelShape {
  std::string name;
  std::vector<uint8_t> param_bytes;
};

struct Binary {
  std::vector<KernelShape> kernels;
  std::string code;           // the driver's, or the source that a driver builds again when loaded
  std::string build_options;  // of a source; empty where `code` is the driver's
};

enum class BinaryState { Good, Damaged, Foreign };

// `identity` is the text that changes when the driver would give something else.
std::string wrap_binary(const Binary& binary, std::string_view identity);

// Good: fills *out, which may be nullptr.
BinaryState unwrap_binary(std::string_view bytes, std::string_view identity, Binary* out);

}  // namespace plugrad::opencl

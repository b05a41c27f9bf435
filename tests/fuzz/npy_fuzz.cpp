// An arbitrary NumPy file gives an array that lies within the file, or an Error.
#include <cstdint>

#include "io/npy.h"
#include "plugrad/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plugrad;
  try {
    const io::NpyArray array = io::parse_npy(std::as_bytes(std::span(data, size)), "[fuzz] bytes");
    uint64_t count = 1;
    for (int64_t n : array.shape) count *= static_cast<uint64_t>(n);
    if (count * size_of(array.dtype) != array.bytes.size()) __builtin_trap();
    unsigned sum = 0;
    for (const std::byte b : array.bytes) sum += static_cast<unsigned>(b);
    static volatile unsigned sink;
    sink = sum;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Internal) __builtin_trap();
  }
  return 0;
}

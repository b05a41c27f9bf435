// An arbitrary safetensors file gives arrays that lie within the file, or an Error.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "io/safetensors.h"
#include "plugrad/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plugrad;
  static const std::string path = "/tmp/plugrad-fuzz-" + std::to_string(getpid()) + ".safetensors";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  try {
    const io::SafetensorsFile file = io::read_safetensors(path);
    unsigned sum = 0;
    for (const io::NamedArray& array : file.arrays)
      for (const std::byte b : array.bytes) sum += static_cast<unsigned>(b);
    static volatile unsigned sink;
    sink = sum;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Internal) __builtin_trap();
  }
  std::remove(path.c_str());
  return 0;
}

// An arbitrary library file is refused, or has a manifest text or none; the reader stays within the
// file and reads a bounded part of it.
#include <cstring>

#include "runtime/discovery/elf_manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plugrad::runtime;
  uint64_t read = 0;
  const LibraryFile found = inspect_library({size, [&](uint64_t offset, std::span<std::byte> out) {
                                               if (out.size() > size || offset > size - out.size())
                                                 __builtin_trap();
                                               if (!out.empty())
                                                 std::memcpy(out.data(), data + offset, out.size());
                                               read += out.size();
                                               return true;
                                             }});
  if (read > (5u << 20)) __builtin_trap();
  if (found.manifest && found.manifest->size() > size) __builtin_trap();
  return 0;
}

// An arbitrary index gives parts that lie within their tensors and cover them, or an Error.
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "io/checkpoint_index.h"
#include "plugrad/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plugrad;
  static const std::string folder = "/tmp/plugrad-fuzz-" + std::to_string(getpid()) + "-checkpoint";
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/index.json", std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  try {
    const io::CheckpointIndex index = io::read_checkpoint_index(folder);
    for (const io::StoredTensor& tensor : index.tensors) {
      int64_t elements = 0;
      for (const io::StoredPart& part : tensor.parts) elements += part.box.elements();
      if (elements != io::Box{{}, tensor.shape}.elements()) __builtin_trap();
    }
    io::to_text(index);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Internal) __builtin_trap();
  }
  std::filesystem::remove_all(folder);
  return 0;
}

// Reads a library's file: whether it is one for this machine, and the manifest in its ELF note.
// Reads a few small parts; opens and maps nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/discovery/regular_file.h"

namespace plugrad::runtime {

struct LibraryFile {
  std::string refusal;                  ///< empty, or why it is no library for this machine
  std::optional<std::string> manifest;  ///< JSON text of the plugrad note, if there is one
};

/// Accepts any bytes: checks their claims against the file's contents.
LibraryFile inspect_library(const ByteSource& file);

}  // namespace plugrad::runtime

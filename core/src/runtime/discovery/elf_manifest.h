// A library's file -> whether it is one for this machine, and the manifest that stands in it as an
// ELF note. Reads a few small parts of the file; nothing is opened or mapped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/discovery/regular_file.h"

namespace plugrad::runtime {

struct LibraryFile {
  std::string refusal;                  ///< empty, or why the file is no library of this machine
  std::optional<std::string> manifest;  ///< JSON text of the plugrad note, where there is one
};

/// Any bytes may be given: what they claim is checked against what is there.
LibraryFile inspect_library(const ByteSource& file);

}  // namespace plugrad::runtime

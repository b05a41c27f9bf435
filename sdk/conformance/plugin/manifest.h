// Reads a plugin's manifest without loading the library.
#pragma once

#include <optional>
#include <string>

#include "conformance/plugin/device.h"

namespace plugrad::conformance {

// The JSON file next to the library ("libx.json" for "libx.so"); nullopt if there is none.
std::optional<std::string> manifest_beside(const std::string& library_path);
// The JSON in the library's ELF note; nullopt without a note. Throws std::runtime_error for files
// that are damaged or not 64-bit little-endian ELF.
std::optional<std::string> manifest_inside(const std::string& library_path);

// Throws std::runtime_error for text that is not a JSON object, or has a key of a wrong type.
ManifestFacts parse_manifest(const std::string& text);

// The file next to the library, else the note. Throws std::runtime_error.
ManifestFacts read_manifest(const std::string& library_path);

}  // namespace plugrad::conformance

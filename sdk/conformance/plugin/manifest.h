// A plugin's manifest, read without opening the library.
#pragma once

#include <optional>
#include <string>

#include "conformance/plugin/device.h"

namespace plugrad::conformance {

// The JSON beside the library ("libx.json" for "libx.so"); nothing where there is none.
std::optional<std::string> manifest_beside(const std::string& library_path);
// The JSON in the library's ELF note; nothing where there is no note. Throws std::runtime_error for
// a file that is no 64-bit little-endian ELF, or is damaged.
std::optional<std::string> manifest_inside(const std::string& library_path);

// Throws std::runtime_error for text that is no JSON object, or has a key of a wrong type.
ManifestFacts parse_manifest(const std::string& text);

// The file beside the library, else the note. Throws std::runtime_error.
ManifestFacts read_manifest(const std::string& library_path);

}  // namespace plugrad::conformance

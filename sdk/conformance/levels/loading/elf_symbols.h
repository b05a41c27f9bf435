// Reads the dynamic symbols of a library file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plugrad::conformance {

struct LibrarySymbols {
  std::vector<std::string> exported;
  std::vector<std::string> imported;       // required imports
  std::vector<std::string> imported_weak;  // optional imports
  std::vector<std::string> needed;         // needed libraries: "libc.so.6"
};

// The function in the full symbol table that contains the address; empty if there is none, or the
// file is stripped or unreadable.
std::string function_at(const std::string& path, uint64_t address);

// Throws std::runtime_error for files that are damaged or not 64-bit little-endian ELF libraries.
LibrarySymbols read_symbols(const std::string& path);

}  // namespace plugrad::conformance

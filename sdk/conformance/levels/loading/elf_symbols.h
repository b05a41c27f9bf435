// The dynamic symbols of a library, read from the file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plugrad::conformance {

struct LibrarySymbols {
  std::vector<std::string> exported;
  std::vector<std::string> imported;       // that must be found
  std::vector<std::string> imported_weak;  // that may be absent
  std::vector<std::string> needed;         // libraries: "libc.so.6"
};

// The function of the full symbol table that holds the address; empty where there is none, or the
// file was stripped or cannot be read.
std::string function_at(const std::string& path, uint64_t address);

// Throws std::runtime_error for a file that is no 64-bit little-endian ELF library, or is damaged.
LibrarySymbols read_symbols(const std::string& path);

}  // namespace plugrad::conformance

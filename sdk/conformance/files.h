// Files whole, for readers of what plugins and users bring.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plugrad::conformance {

/// All of a regular file. Throws std::runtime_error, "PATH cannot be read: reason", for any other,
/// without waiting for a pipe's writer, and for one of more than `most_bytes`, without memory for
/// it.
std::string read_whole_file(const std::string& path, uint64_t most_bytes);

/// Throws std::runtime_error where not all of it could be written; then no file is left.
void write_whole_file(const std::string& path, std::string_view text);

/// Whether brackets outside of texts nest further than a manifest's or a report's do: what prints
/// and copies trees of JSON recurses.
bool nests_too_deep(std::string_view json);

}  // namespace plugrad::conformance

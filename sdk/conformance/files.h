// Reads and writes whole files given by plugins and users.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plugrad::conformance {

/// Reads a regular file. Throws std::runtime_error, "PATH cannot be read: reason", for other file
/// types (without blocking on a pipe) and for files over `most_bytes` (without allocating).
std::string read_whole_file(const std::string& path, uint64_t most_bytes);

/// The bytes of a regular file, mapped: for large files of which little is read. Refuses as
/// read_whole_file() does.
class MappedFile {
 public:
  MappedFile(const std::string& path, uint64_t most_bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::string_view bytes() const { return bytes_; }

 private:
  std::string_view bytes_;
};

/// Throws std::runtime_error if the file cannot be written completely; no partial file remains.
void write_whole_file(const std::string& path, std::string_view text);

/// True if brackets nest deeper than in any manifest or report: printing and copying JSON trees
/// recurses.
bool nests_too_deep(std::string_view json);

}  // namespace plugrad::conformance

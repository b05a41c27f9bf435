// Reads and writes zip archives: files, stored or deflated, then a directory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad::io {

/// One file of an archive: its packed bytes, and the size and checksum of the unpacked ones.
struct ZipEntry {
  std::string name;
  bool deflated = false;
  uint32_t crc = 0;
  uint64_t size_bytes = 0;  ///< unpacked
  std::span<const std::byte> packed;
};

/// Reads the directory and checks it: every entry is within the archive, none overlaps another, and
/// none announces more than deflate can hold. `name` is the prefix of messages. Errors: User, with
/// the reason.
std::vector<ZipEntry> read_zip(std::span<const std::byte> archive, std::string_view name);

/// The unpacked bytes; verifies their checksum. Errors: User.
std::vector<std::byte> unpack(const ZipEntry& entry, std::string_view name);

/// Builds an archive in memory.
class ZipWriter {
 public:
  /// Errors: User once the archive reaches 4 GiB, which needs an extension of the format.
  void add(const std::string& name, std::span<const std::byte> bytes, bool deflate);
  std::vector<std::byte> finish();

 private:
  std::vector<std::byte> archive_, directory_;
  uint16_t count_ = 0;
};

}  // namespace plugrad::io

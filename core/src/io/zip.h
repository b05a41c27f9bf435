// Zip archives: files one after the other, stored or deflated, and a directory at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad::io {

/// One file of an archive: where its packed bytes lie and what they unpack to.
struct ZipEntry {
  std::string name;
  bool deflated = false;
  uint32_t crc = 0;
  uint64_t size_bytes = 0;  ///< unpacked
  std::span<const std::byte> packed;
};

/// The directory, checked: every entry lies within the archive, none overlaps another, and none
/// announces more than deflate can hold. `name` begins messages. Errors: User, with what is wrong.
std::vector<ZipEntry> read_zip(std::span<const std::byte> archive, std::string_view name);

/// The unpacked bytes, their checksum compared. Errors: User.
std::vector<std::byte> unpack(const ZipEntry& entry, std::string_view name);

/// Makes an archive in memory.
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

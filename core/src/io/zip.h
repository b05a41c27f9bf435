// Zip archives in memory, by libzip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct zip;

namespace plugrad::io {

struct ZipEntry {
  std::string name;
  uint64_t index = 0;
  uint64_t size_bytes = 0;  ///< unpacked
  uint64_t packed_bytes = 0;
};

class ZipReader {
 public:
  /// The bytes stay in place as long as the reader. `name` begins messages. Errors: User, where the
  /// directory is damaged, entries overlap, or an entry announces more than deflate can hold.
  ZipReader(std::span<const std::byte> archive, std::string name);

  const std::vector<ZipEntry>& entries() const { return entries_; }
  /// The unpacked bytes, their checksum compared. Errors: User.
  std::vector<std::byte> unpack(const ZipEntry& entry) const;

 private:
  struct Close {
    void operator()(zip* archive) const;
  };
  void add_entry(uint64_t index);
  [[noreturn]] void refuse(std::string_view what) const;

  std::string name_;
  std::unique_ptr<zip, Close> zip_;
  std::vector<ZipEntry> entries_;
};

/// Makes an archive in memory.
class ZipWriter {
 public:
  void add(std::string name, std::vector<std::byte> bytes, bool deflate);
  std::vector<std::byte> finish() const;

 private:
  struct File {
    std::string name;
    std::vector<std::byte> bytes;
    bool deflate;
  };
  std::deque<File> files_;
};

}  // namespace plugrad::io

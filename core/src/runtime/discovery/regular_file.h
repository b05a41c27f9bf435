// Small regular files of unknown origin, read without ever blocking: a FIFO, device or directory is
// an error, and nothing is mapped, because a mapped file that shrinks ends the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/file.h"

namespace plugrad::runtime {

/// Bytes of known number that are read in parts.
struct ByteSource {
  std::uint64_t size = 0;
  /// Fills `out` from `offset` on; false where not all of it is there.
  std::function<bool(std::uint64_t offset, std::span<std::byte> out)> read;
};

class RegularFile {
 public:
  /// Nothing, with a reason, where the path is no regular file or cannot be opened.
  static std::optional<RegularFile> open(const std::string& path, std::string& reason);

  std::uint64_t size() const { return size_; }
  /// Valid as long as this file.
  ByteSource bytes() const;
  /// The whole text; nothing, with a reason, where it is longer than `most_bytes`.
  std::optional<std::string> text(std::uint64_t most_bytes, std::string& reason) const;

 private:
  FileDescriptor fd_;
  std::uint64_t size_ = 0;
};

}  // namespace plugrad::runtime

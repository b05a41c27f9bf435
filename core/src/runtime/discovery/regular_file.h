// Reads small regular files of unknown origin without blocking: a FIFO, device or directory is an
// error. Maps nothing, because a mapped file that shrinks ends the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/file.h"

namespace plugrad::runtime {

/// Bytes of known size, read in parts.
struct ByteSource {
  std::uint64_t size = 0;
  /// Fills `out` from `offset` on; false if the range is incomplete.
  std::function<bool(std::uint64_t offset, std::span<std::byte> out)> read;
};

class RegularFile {
 public:
  /// Nothing, with a reason, if the path is no regular file or cannot be opened.
  static std::optional<RegularFile> open(const std::string& path, std::string& reason);

  std::uint64_t size() const { return size_; }
  /// Valid during the file's lifetime.
  ByteSource bytes() const;
  /// The whole text; nothing, with a reason, if it is longer than `most_bytes`.
  std::optional<std::string> text(std::uint64_t most_bytes, std::string& reason) const;

 private:
  FileDescriptor fd_;
  std::uint64_t size_ = 0;
};

}  // namespace plugrad::runtime

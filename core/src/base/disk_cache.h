// Bytes by key on disk, shared by any number of processes. Never trusted: what does not check out
// is a miss.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/settings.h"

namespace plugrad {

/// One file an entry, named by the hash of its key: magic, sizes, checksum, key, payload. Entries
/// are written whole and renamed into place. What was not used for longest goes when the directory
/// exceeds its limit. A directory that is missing, read-only or full costs
/// one warning, and then everything is a miss.
class DiskCache {
 public:
  /// Empty: switched off. The limit is kept roughly.
  explicit DiskCache(std::string directory,
                     std::uint64_t limit_bytes = Settings().cache_limit_bytes);

  std::optional<std::vector<std::byte>> get(std::span<const std::byte> key);
  /// Whether the entry is stored now.
  bool put(std::span<const std::byte> key, std::span<const std::byte> payload);
  /// Forgets a payload that its reader found to be useless.
  void remove(std::span<const std::byte> key);

  struct Stats {
    std::uint64_t entries = 0, bytes = 0;                         // on disk now
    std::uint64_t hits = 0, misses = 0, damaged = 0, stored = 0;  // by this process
  };
  Stats stats() const;
  /// Removes every entry; how many.
  std::uint64_t clear();

  const std::string& directory() const { return directory_; }
  std::string path_of(std::span<const std::byte> key) const;

 private:
  void warn_once(const std::string& path, int error);

  std::string directory_;
  std::uint64_t limit_bytes_;
  std::atomic<bool> warned_{false};
  std::atomic<std::uint64_t> hits_{0}, misses_{0}, damaged_{0}, stored_{0};
};

/// PLUGRAD_CACHE_DIR, else $XDG_CACHE_HOME/plugrad, else ~/.cache/plugrad; empty when there is
/// none.
std::string cache_directory();

/// The cache of programs and compiled kernels in cache_directory(), of the size that the settings
/// say.
DiskCache& disk_cache();

}  // namespace plugrad

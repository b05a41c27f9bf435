// Caches bytes by key on disk, shared by any number of processes. An entry that fails its checks is
// a miss.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/settings.h"
#include "base/storage/database.h"

namespace plugrad {

/// Entries are rows of one database, each with a checksum. Evicts the least recently used ones when
/// the total exceeds the limit. If the directory is missing, read-only or full, warns once and
/// treats every request as a miss.
class DiskCache {
 public:
  /// Empty: disabled. The limit is approximate.
  explicit DiskCache(std::string directory,
                     std::uint64_t limit_bytes = Settings().cache_limit_bytes);

  std::optional<std::vector<std::byte>> get(std::span<const std::byte> key);
  /// Returns whether the entry is stored.
  bool put(std::span<const std::byte> key, std::span<const std::byte> payload);
  /// Removes a payload that its reader could not use.
  void remove(std::span<const std::byte> key);

  struct Stats {
    std::uint64_t entries = 0, bytes = 0;                         // on disk now; keys and payloads
    std::uint64_t hits = 0, misses = 0, damaged = 0, stored = 0;  // by this process
  };
  Stats stats();
  /// Removes every entry, frees their space and returns their number.
  std::uint64_t clear();

  const std::string& directory() const { return directory_; }
  /// The file that holds the entries.
  const std::string& path() const { return database_.path(); }

 private:
  void trim(sqlite3* connection);

  std::string directory_;
  std::uint64_t limit_bytes_;
  Database database_;
  std::atomic<std::uint64_t> hits_{0}, misses_{0}, damaged_{0}, stored_{0};
};

/// plugrad's cache directory: PLUGRAD_CACHE_DIR, else $XDG_CACHE_HOME/plugrad, else
/// ~/.cache/plugrad; empty if none is known.
std::string cache_directory();

/// The cache of compiled kernels: kernels/ in cache_directory(), limited by PLUGRAD_CACHE_LIMIT.
DiskCache& disk_cache();

}  // namespace plugrad

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
#include "base/storage/database.h"

namespace plugrad {

/// Entries are rows of one database, each with a checksum. Those that were not used for longest go
/// when their bytes exceed the limit. A directory that is missing, read-only or full costs one
/// warning, and then everything is a miss.
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
    std::uint64_t entries = 0, bytes = 0;                         // on disk now; keys and payloads
    std::uint64_t hits = 0, misses = 0, damaged = 0, stored = 0;  // by this process
  };
  Stats stats();
  /// Removes every entry and gives their room back; how many.
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
/// ~/.cache/plugrad. Empty where none of them is known.
std::string cache_directory();

/// The cache of compiled kernels: kernels/ in there, of the size that PLUGRAD_CACHE_LIMIT gives.
DiskCache& disk_cache();

}  // namespace plugrad

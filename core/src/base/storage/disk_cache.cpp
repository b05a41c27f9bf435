#include "base/storage/disk_cache.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>

#include "base/hash.h"
#include "base/log.h"

namespace plugrad {
namespace {

// Keys are found by hash; two keys of one hash replace each other.
constexpr const char* kSchema =
    "CREATE TABLE IF NOT EXISTS entry (hash BLOB PRIMARY KEY, key BLOB, payload BLOB, check_sum "
    "INTEGER, bytes INTEGER, used_ns INTEGER);"
    "CREATE INDEX IF NOT EXISTS by_use ON entry (used_ns, bytes)";

constexpr std::uint64_t kPutsBetweenTrims = 16;
// A use is recorded to the day, so that few hits write.
constexpr std::int64_t kUseGranularityNs = 86'400'000'000'000;

Database::Description description() {
  return {.purpose = "cache",
          .without =
              "kernels are compiled anew in each process (PLUGRAD_CACHE_DIR chooses another "
              "directory)",
          .schema = kSchema,
          .version = 1,
          .is_trusted = true};
}

std::int64_t now_ns() {
  return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::uint64_t checksum(std::span<const std::byte> key, std::span<const std::byte> payload) {
  return hash64(payload, hash64(key));
}

std::string home_directory() {
  if (auto home = environment_variable("HOME"); home && !home->empty()) return *home;
  passwd* user = getpwuid(geteuid());
  return user && user->pw_dir ? user->pw_dir : "";
}

}  // namespace

DiskCache::DiskCache(std::string directory, std::uint64_t limit_bytes, bool warns)
    : directory_(std::move(directory)),
      limit_bytes_(limit_bytes),
      warns_(warns),
      database_(directory_.empty() ? "" : directory_ + "/cache.db", description()) {}

std::optional<std::vector<std::byte>> DiskCache::get(std::span<const std::byte> key) {
  const Hash128 hash = hash128(key);
  const auto name = std::as_bytes(std::span(&hash, 1));
  std::optional<std::vector<std::byte>> found;
  const std::int64_t now = now_ns();
  bool is_damaged = false, is_used_lately = false;
  database_.read([&](sqlite3* connection) {
    Statement select(connection,
                     "SELECT payload, check_sum, used_ns FROM entry WHERE hash=? AND key=?");
    if (!select.bind(name, key).step()) return;
    const auto payload = select.blob(0);
    is_damaged = checksum(key, payload) != static_cast<std::uint64_t>(select.integer(1));
    if (!is_damaged) found.emplace(payload.begin(), payload.end());
    const std::int64_t used_ns = select.integer(2);  // ahead of now if the clock was set back
    is_used_lately = used_ns <= now && now - used_ns < kUseGranularityNs;
  });
  (found ? hits_ : misses_).fetch_add(1);
  if (is_damaged) {
    log_line(LogLevel::Info, fmt::format("a damaged entry of {} is removed", path()));
    damaged_.fetch_add(1);
    remove(key);
  }
  if (found && !is_used_lately)  // on failure the entry only looks older
    database_.write_if_idle([&](sqlite3* connection) {
      Statement(connection, "UPDATE entry SET used_ns=? WHERE hash=?").bind(now, name).step();
    });
  return found;
}

bool DiskCache::put(std::span<const std::byte> key, std::span<const std::byte> payload) {
  const Hash128 hash = hash128(key);
  const auto insert = [&](sqlite3* connection) {
    Statement(connection, "INSERT OR REPLACE INTO entry VALUES (?, ?, ?, ?, ?, ?)")
        .bind(std::as_bytes(std::span(&hash, 1)), key, payload, checksum(key, payload),
              std::uint64_t{key.size() + payload.size()}, now_ns())
        .step();
    if (stored_ % kPutsBetweenTrims == 0) trim(connection);
  };
  const bool is_stored = warns_ ? database_.write(insert) : database_.write_quietly(insert);
  if (is_stored) stored_.fetch_add(1);
  return is_stored;
}

// Trims to three quarters of the limit once it is exceeded; the entry just written stays.
void DiskCache::trim(sqlite3* connection) {
  Statement sum(connection, "SELECT sum(bytes) FROM entry");
  std::uint64_t total = sum.step() ? static_cast<std::uint64_t>(sum.integer(0)) : 0;
  if (total <= limit_bytes_) return;
  std::int64_t newest_dropped_ns = -1;
  Statement oldest(connection, "SELECT used_ns, bytes FROM entry ORDER BY used_ns");
  while (total > limit_bytes_ / 4 * 3 && oldest.step()) {
    newest_dropped_ns = oldest.integer(0);
    total -= static_cast<std::uint64_t>(oldest.integer(1));
  }
  Statement(connection,
            "DELETE FROM entry WHERE used_ns<=? AND used_ns<(SELECT max(used_ns) FROM entry)")
      .bind(newest_dropped_ns)
      .step();
}

void DiskCache::remove(std::span<const std::byte> key) {
  const Hash128 hash = hash128(key);
  database_.write([&](sqlite3* connection) {
    Statement(connection, "DELETE FROM entry WHERE hash=?")
        .bind(std::as_bytes(std::span(&hash, 1)))
        .step();
  });
}

DiskCache::Stats DiskCache::stats() {
  Stats out;
  out.hits = hits_;
  out.misses = misses_;
  out.damaged = damaged_;
  out.stored = stored_;
  database_.read([&](sqlite3* connection) {
    Statement select(connection, "SELECT count(*), sum(bytes) FROM entry");
    select.step();
    out.entries = static_cast<std::uint64_t>(select.integer(0));
    out.bytes = static_cast<std::uint64_t>(select.integer(1));
  });
  return out;
}

std::uint64_t DiskCache::clear() {
  std::uint64_t removed = 0;
  database_.write([&](sqlite3* connection) {
    Statement count(connection, "SELECT count(*) FROM entry");
    count.step();
    removed = static_cast<std::uint64_t>(count.integer(0));
    Statement(connection, "DELETE FROM entry").step();
  });
  if (removed > 0)
    database_.read([](sqlite3* connection) { Statement(connection, "VACUUM").step(); });
  return removed;
}

std::string cache_directory() {
  if (!settings().cache_dir.empty()) return settings().cache_dir;
  if (auto xdg = environment_variable("XDG_CACHE_HOME"); xdg && !xdg->empty())
    return *xdg + "/plugrad";
  std::string home = home_directory();
  return home.empty() ? "" : home + "/.cache/plugrad";
}

DiskCache& disk_cache() {
  static std::mutex mutex;
  using Key = std::pair<std::string, std::uint64_t>;
  static auto* caches = new std::map<Key, std::unique_ptr<DiskCache>>;  // used until exit
  std::string directory = cache_directory();
  if (!directory.empty()) directory += "/kernels";
  const std::uint64_t limit_bytes = settings().cache_limit_bytes;
  std::lock_guard lock(mutex);
  std::unique_ptr<DiskCache>& cache = (*caches)[{directory, limit_bytes}];
  if (!cache) cache = std::make_unique<DiskCache>(directory, limit_bytes);
  return *cache;
}

}  // namespace plugrad

// Layout of an entry: Header, key bytes, payload bytes. The checksum covers key and payload.
#include "base/disk_cache.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"

namespace plugrad {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".entry";

struct Header {
  std::array<char, 8> magic{'P', 'G', 'R', 'C', 'A', 'C', 'H', '1'};
  std::uint64_t key_bytes = 0, payload_bytes = 0;
  Hash128 key_hash, payload_hash;
};
static_assert(sizeof(Header) == 56);

Header header_of(std::span<const std::byte> key, std::span<const std::byte> payload) {
  Header header;
  header.key_bytes = key.size();
  header.payload_bytes = payload.size();
  header.key_hash = hash128(key);
  header.payload_hash = hash128(payload);
  return header;
}

// Where the payload starts in an intact entry; 0 for a damaged one.
std::size_t intact_payload(std::span<const std::byte> file) {
  Header found;
  if (file.size() < sizeof found) return 0;
  std::memcpy(&found, file.data(), sizeof found);
  std::size_t rest = file.size() - sizeof found;
  if (found.key_bytes > rest || found.payload_bytes != rest - found.key_bytes) return 0;
  auto key = file.subspan(sizeof found, found.key_bytes);
  auto payload = file.subspan(sizeof found + found.key_bytes);
  Header expected = header_of(key, payload);
  bool same = found.magic == expected.magic && found.key_hash == expected.key_hash &&
              found.payload_hash == expected.payload_hash;
  return same ? sizeof found + found.key_bytes : 0;
}

// A binary from the cache is run: a file that another user could have written is not taken. To open
// a FIFO would wait for its writer.
bool is_own_file(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  return (info.st_uid == geteuid() || info.st_uid == 0) && !(info.st_mode & S_IWOTH);
}

struct Entry {
  std::string path;
  std::uint64_t bytes;
  std::int64_t used_ns;
};

// The entries of one folder that holds no others.
void add_entries(const std::string& folder, std::vector<Entry>& out) {
  for (const std::string& name : names_in_folder(folder).value_or(std::vector<std::string>())) {
    const std::string path = folder + "/" + name;
    struct stat info;
    if (name.find(kSuffix) == name.npos || lstat(path.c_str(), &info) != 0) continue;
    if (!S_ISREG(info.st_mode)) continue;
    if (name.ends_with(kSuffix))
      out.push_back({path, static_cast<std::uint64_t>(info.st_size),
                     info.st_mtim.tv_sec * std::int64_t{1'000'000'000} + info.st_mtim.tv_nsec});
    else
      is_being_written(path);  // removes what a dead writer left
  }
}

std::vector<Entry> all_entries(const std::string& directory) {
  std::vector<Entry> out;
  for (const std::string& name : names_in_folder(directory).value_or(std::vector<std::string>())) {
    const std::string folder = directory + "/" + name;
    struct stat info;  // a link would lead to files that are not the cache's
    if (lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) add_entries(folder, out);
  }
  return out;
}

constexpr std::uint64_t kFolders = 256;  // entries are spread over them by hash
constexpr std::uint64_t kPutsBetweenTrims = 4;

/// Removes the entries of one folder that were not used for longest, down to three quarters of its
/// share, when it exceeds that.
void trim(const std::string& folder, std::uint64_t limit_bytes) {
  std::vector<Entry> entries;
  add_entries(folder, entries);
  std::uint64_t total = 0;
  for (const Entry& entry : entries) total += entry.bytes;
  if (total <= limit_bytes) return;
  std::ranges::sort(entries, {}, &Entry::used_ns);
  for (const Entry& entry : entries) {
    if (total <= limit_bytes / 4 * 3) return;
    unlink(entry.path.c_str());
    total -= entry.bytes;
  }
}

std::string home_directory() {
  if (auto home = environment_variable("HOME"); home && !home->empty()) return *home;
  passwd* user = getpwuid(geteuid());
  return user && user->pw_dir ? user->pw_dir : "";
}

// The file system's own clock ticks every few ms: entries of one tick would look equally old. A
// failure only makes the entry look older.
void mark_used(const std::string& path) {
  timespec now[2];
  clock_gettime(CLOCK_REALTIME, &now[0]);
  now[1] = now[0];
  utimensat(AT_FDCWD, path.c_str(), now, 0);
}

}  // namespace

DiskCache::DiskCache(std::string directory, std::uint64_t limit_bytes)
    : directory_(std::move(directory)), limit_bytes_(limit_bytes) {}

std::string DiskCache::path_of(std::span<const std::byte> key) const {
  std::string name = hash128(key).hex();
  return fmt::format("{}/{}/{}{}", directory_, name.substr(0, 2), name, kSuffix);
}

std::optional<std::vector<std::byte>> DiskCache::get(std::span<const std::byte> key) {
  if (directory_.empty()) return std::nullopt;
  std::string path = path_of(key);
  std::optional<std::vector<std::byte>> file;
  if (is_own_file(path)) file = read_file(path);
  if (!file) {
    misses_.fetch_add(1);
    return std::nullopt;
  }
  std::size_t payload = intact_payload(*file);
  if (payload == 0) {
    log_line(LogLevel::Info, fmt::format("cache entry {} is damaged: removed", path));
    unlink(path.c_str());
    damaged_.fetch_add(1);
    misses_.fetch_add(1);
    return std::nullopt;
  }
  std::size_t key_bytes = payload - sizeof(Header);
  if (key_bytes != key.size() ||
      std::memcmp(file->data() + sizeof(Header), key.data(), key_bytes)) {
    misses_.fetch_add(1);  // another key of the same hash: its entry stays
    return std::nullopt;
  }
  hits_.fetch_add(1);
  mark_used(path);
  file->erase(file->begin(), file->begin() + static_cast<std::ptrdiff_t>(payload));
  return file;
}

bool DiskCache::put(std::span<const std::byte> key, std::span<const std::byte> payload) {
  if (directory_.empty()) return false;
  std::string path = path_of(key);
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (error) {
    warn_once(directory_, error.value());
    return false;
  }
  Header header = header_of(key, payload);
  std::array<std::span<const std::byte>, 3> parts{std::as_bytes(std::span(&header, 1)), key,
                                                  payload};
  if (int failed = replace_file(path, parts, {.follow_links = false, .sync = false})) {
    warn_once(path, failed);
    return false;
  }
  if (stored_.fetch_add(1) % kPutsBetweenTrims == 0)
    trim(fs::path(path).parent_path().string(), limit_bytes_ / kFolders);
  return true;
}

void DiskCache::remove(std::span<const std::byte> key) {
  if (!directory_.empty()) unlink(path_of(key).c_str());
}

DiskCache::Stats DiskCache::stats() const {
  Stats out;
  out.hits = hits_;
  out.misses = misses_;
  out.damaged = damaged_;
  out.stored = stored_;
  for (const Entry& entry : all_entries(directory_)) {
    ++out.entries;
    out.bytes += entry.bytes;
  }
  return out;
}

std::uint64_t DiskCache::clear() {
  std::uint64_t removed = 0;
  for (const Entry& entry : all_entries(directory_)) removed += unlink(entry.path.c_str()) == 0;
  return removed;
}

void DiskCache::warn_once(const std::string& path, int error) {
  if (warned_.exchange(true)) return;
  log_warning(
      "cannot write to the cache, {}: {}; kernels are compiled anew in each process "
      "(PLUGRAD_CACHE_DIR chooses another directory)",
      path, std::strerror(error));
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

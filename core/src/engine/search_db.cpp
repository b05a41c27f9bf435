// A line: fields between tabs, the last of which is the hash of all before it.
#include "engine/search_db.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>

#include "base/disk_cache.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/settings.h"

namespace plugrad::engine {
namespace {

constexpr std::string_view kMagic = "plugrad-search-1";
constexpr size_t kFields = 13;
constexpr size_t kFieldsBefore = 12;  // without how many lists were tried
constexpr size_t kLongestLine = 16 << 10;
constexpr uint64_t kLargestFile = uint64_t{256} << 20;

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> out;
  for (;;) {
    const size_t end = text.find(at);
    out.push_back(text.substr(0, end));
    if (end == text.npos) return out;
    text.remove_prefix(end + 1);
  }
}

template <class T>
bool read(std::string_view text, T& out) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), out);
  return code == std::errc() && end == text.data() + text.size();
}

bool read_sizes(std::string_view text, std::vector<int64_t>& out) {
  if (text.empty()) return true;
  for (std::string_view part : split(text, ',')) {
    out.emplace_back();
    if (!read(part, out.back()) || out.back() < 1) return false;
  }
  return true;
}

// "/dev/null": no database.
bool is_null(const struct stat& info) {
  return S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3);
}

bool is_time(double seconds) {
  return std::isfinite(seconds) && seconds >= 0;
}

std::string checksum(std::string_view text) {
  return fmt::format("{:016x}", hash64(as_bytes(text)));
}

// How far apart, as the sum over axes of the ratio's logarithm.
double distance(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  if (a.size() != b.size()) return HUGE_VAL;
  double total = 0;
  for (size_t i = 0; i < a.size(); ++i)
    total += std::abs(std::log2(static_cast<double>(a[i])) - std::log2(static_cast<double>(b[i])));
  return total;
}

}  // namespace

std::string to_line(const SearchRecord& r) {
  std::string line =
      fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{:.6g}\t{:.6g}\t{}\t{}", kMagic, r.version,
                  r.device, r.compiler, r.kernel, r.family, fmt::join(r.sizes, ","), r.width,
                  r.seconds, r.first_seconds, r.list, r.tried);
  return line + '\t' + checksum(line);
}

std::optional<SearchRecord> parse_record(std::string_view line) {
  if (line.size() > kLongestLine) return std::nullopt;
  const std::vector<std::string_view> field = split(line, '\t');
  if (field[0] != kMagic) return std::nullopt;
  if (field.size() != kFields && field.size() != kFieldsBefore) return std::nullopt;
  if (field.back() != checksum(line.substr(0, line.size() - field.back().size() - 1)))
    return std::nullopt;
  SearchRecord r;
  if (!read(field[1], r.version) || !read_sizes(field[6], r.sizes) || !read(field[7], r.width))
    return std::nullopt;
  if (!read(field[8], r.seconds) || !read(field[9], r.first_seconds)) return std::nullopt;
  if (field.size() == kFields && !read(field[11], r.tried)) return std::nullopt;
  if (!is_time(r.seconds) || !is_time(r.first_seconds)) return std::nullopt;
  r.device = field[2];
  r.compiler = field[3];
  r.kernel = field[4];
  r.family = field[5];
  r.list = field[10];
  return r;
}

void SearchDb::warn(const std::string& text) {
  if (!was_warned_) log_line(LogLevel::Warning, fmt::format("search database {}: {}", path_, text));
  was_warned_ = true;
}

void SearchDb::read_lines(std::string_view text) {
  size_t damaged = 0, first_damaged = 0, number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty()) continue;
    if (auto record = parse_record(line)) {
      by_kernel_.emplace(record->kernel, records_.size());
      by_family_.emplace(record->family, records_.size());
      records_.push_back(std::move(*record));
    } else if (damaged++ == 0) {
      first_damaged = number;
    }
  }
  if (damaged > 0)
    warn(
        fmt::format("{} lines are damaged or of another version of plugrad and are ignored, the "
                    "first is line {}",
                    damaged, first_damaged));
}

// Reads the file again where it has changed.
void SearchDb::refresh() {
  struct stat info;
  if (path_.empty() || stat(path_.c_str(), &info) != 0) return;
  const int64_t time_ns = info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec;
  if (info.st_size == seen_size_ && time_ns == seen_time_ns_ && info.st_ino == seen_file_) return;
  seen_size_ = info.st_size;
  seen_time_ns_ = time_ns;
  seen_file_ = info.st_ino;
  records_.clear();
  by_kernel_.clear();
  by_family_.clear();
  if (is_null(info)) return;
  if (!S_ISREG(info.st_mode) || static_cast<uint64_t>(info.st_size) > kLargestFile)
    return warn(
        fmt::format("it is no regular file of at most {} MiB and is ignored", kLargestFile >> 20));
  const auto bytes = read_file(path_, kLargestFile);
  if (!bytes) return warn(fmt::format("it cannot be read: {}", file_error_text(errno)));
  read_lines({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
}

std::optional<SearchRecord> SearchDb::find(const SearchRecord& wanted) {
  const std::lock_guard lock(mutex_);
  refresh();
  const SearchRecord* last = nullptr;
  const auto [begin, end] = by_kernel_.equal_range(wanted.kernel);
  for (auto it = begin; it != end; ++it) {
    const SearchRecord& record = records_[it->second];
    if (record.same_key(wanted) && (!last || &record > last)) last = &record;
  }
  return last ? std::optional(*last) : std::nullopt;
}

std::vector<SearchRecord> SearchDb::near(const SearchRecord& wanted, size_t most) {
  const std::lock_guard lock(mutex_);
  refresh();
  std::vector<size_t> found;
  const auto [begin, end] = by_family_.equal_range(wanted.family);
  for (auto it = begin; it != end; ++it)
    if (records_[it->second].sizes.size() == wanted.sizes.size()) found.push_back(it->second);
  std::ranges::sort(found, {}, [&](size_t at) {
    const SearchRecord& record = records_[at];
    return std::tuple(record.device != wanted.device, distance(record.sizes, wanted.sizes),
                      -static_cast<int64_t>(at));
  });
  std::vector<SearchRecord> out;
  for (size_t at : found) {
    const auto same = [&](const SearchRecord& r) { return r.list == records_[at].list; };
    if (out.size() < most && std::ranges::none_of(out, same)) out.push_back(records_[at]);
  }
  return out;
}

bool SearchDb::is_empty() {
  const std::lock_guard lock(mutex_);
  refresh();
  return records_.empty();
}

std::vector<SearchRecord> SearchDb::all() {
  const std::lock_guard lock(mutex_);
  refresh();
  std::vector<SearchRecord> out;
  for (const SearchRecord& record : records_) {
    const auto it =
        std::ranges::find_if(out, [&](const SearchRecord& r) { return r.same_key(record); });
    if (it == out.end())
      out.push_back(record);
    else
      *it = record;
  }
  return out;
}

// Processes append beside each other, each a line under the lock: replace_file would lose the lines
// of all but the last. A line that is not whole fails its checksum.
bool SearchDb::append(const SearchRecord& record, std::string& problem) {
  std::error_code ignored;
  const std::string cache =
      cache_directory();  // a folder that somebody named is there, or mistyped
  if (!cache.empty() && std::filesystem::path(path_).parent_path() == cache)
    std::filesystem::create_directories(cache, ignored);
  const NoFileSizeSignal quiet;
  const FileDescriptor file(
      open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644));
  struct stat info;
  if (file && fstat(file.get(), &info) == 0 && is_null(info)) return false;
  if (!file || flock(file.get(), LOCK_EX) != 0 || fstat(file.get(), &info) != 0 ||
      !S_ISREG(info.st_mode)) {
    const bool is_other = file && !S_ISREG(info.st_mode);
    problem = fmt::format("{}; what searches find is lost with the process",
                          file_error_text(is_other ? kNotRegular : errno));
    return false;
  }
  char last = '\n';
  if (info.st_size > 0 && pread(file.get(), &last, 1, info.st_size - 1) != 1) last = 0;
  std::string line = to_line(record) + '\n';
  if (last != '\n') line = '\n' + line;  // a writer was killed amid its line
  const bool is_written =
      write(file.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size());
  if (!is_written) problem = std::strerror(errno);
  return is_written;
}

bool SearchDb::add(const SearchRecord& record) {
  const std::lock_guard lock(mutex_);
  if (path_.empty()) return false;
  std::string problem;
  const bool is_written = append(record, problem);
  if (!problem.empty()) warn("it cannot be written: " + problem);
  return is_written;
}

void SearchDb::add_quietly(const SearchRecord& record) {
  const std::lock_guard lock(mutex_);
  std::string ignored;
  if (!path_.empty()) append(record, ignored);
}

SearchDb& search_db() {
  static std::mutex mutex;
  static auto* open = new std::map<std::string, std::unique_ptr<SearchDb>>;  // used until exit
  std::string path = settings().search_db;
  if (path.empty()) {
    const std::string directory = cache_directory();
    if (!directory.empty()) path = directory + "/search.tsv";
  }
  const std::lock_guard lock(mutex);
  std::unique_ptr<SearchDb>& db = (*open)[path];
  if (!db) db = std::make_unique<SearchDb>(path);
  return *db;
}

}  // namespace plugrad::engine

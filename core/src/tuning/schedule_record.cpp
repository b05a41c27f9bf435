#include "tuning/schedule_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/file.h"
#include "base/hash.h"

namespace plugrad::tuning {
namespace {

constexpr std::string_view kMagic = "plugrad-search-1";
constexpr size_t kFields = 13;
constexpr size_t kFieldsBefore = 12;  // before the number of tried schedules was added
constexpr size_t kLongestLine = 16 << 10;

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

std::string checksum(std::string_view text) {
  return fmt::format("{:016x}", hash64(as_bytes(text)));
}

}  // namespace

bool read_sizes(std::string_view text, std::vector<int64_t>& out) {
  if (text.empty()) return true;
  for (std::string_view part : split(text, ',')) {
    out.emplace_back();
    if (!read(part, out.back()) || out.back() < 1) return false;
  }
  return true;
}

bool is_time(double seconds) {
  return std::isfinite(seconds) && seconds >= 0;
}

std::string to_line(const ScheduleRecord& r) {
  std::string line =
      fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{:.6g}\t{:.6g}\t{}\t{}", kMagic, r.version,
                  r.device, r.compiler, r.kernel, r.family, fmt::join(r.sizes, ","), r.width,
                  r.seconds, r.first_seconds, r.list, r.tried);
  return line + '\t' + checksum(line);
}

std::optional<ScheduleRecord> parse_record(std::string_view line) {
  if (line.size() > kLongestLine) return std::nullopt;
  const std::vector<std::string_view> field = split(line, '\t');
  if (field[0] != kMagic) return std::nullopt;
  if (field.size() != kFields && field.size() != kFieldsBefore) return std::nullopt;
  if (field.back() != checksum(line.substr(0, line.size() - field.back().size() - 1)))
    return std::nullopt;
  ScheduleRecord r;
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

ScheduleText parse_records(std::string_view text) {
  ScheduleText out;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    if (auto record = parse_record(line))
      out.records.push_back(std::move(*record));
    else if (out.damaged++ == 0)
      out.first_damaged = number;
  }
  return out;
}

bool is_schedule_text(const std::string& path) {
  const FileDescriptor file = open_regular_file(path);
  char start[kMagic.size()];
  return file && pread(file.get(), start, sizeof start, 0) == sizeof start &&
         std::string_view(start, sizeof start) == kMagic;
}

}  // namespace plugrad::tuning

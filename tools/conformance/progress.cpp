#include "progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace plugrad::tools {
namespace {

using conformance::Level;
using conformance::Status;

}  // namespace

// Only a terminal can overwrite a line.
Progress::Progress(bool silent, std::FILE* log, std::chrono::milliseconds interval)
    : silent_(silent), moving_(!silent && isatty(STDOUT_FILENO)), log_(log), interval_(interval) {}

void Progress::log_now_and_then(const conformance::TestResult& result, size_t done, size_t total) {
  const auto now = std::chrono::steady_clock::now();
  if (moving_ || done == total || now - logged_ < interval_) return;
  logged_ = now;
  fmt::print(log_, "{}   test {} of {}: {}\n", text(lines_.back()), done, total, result.id);
  std::fflush(log_);
}

void Progress::operator()(const conformance::TestResult& result, size_t done, size_t total) {
  if (lines_.empty() || lines_.back().level != result.level) {
    finish_level();
    lines_.push_back({result.level, {}});
  }
  ++lines_.back().counts[static_cast<size_t>(result.status)];
  if (moving_)
    fmt::print("\r\033[K{}   test {} of {}: {}", text(lines_.back()), done, total, result.id);
  if (!silent_) std::fflush(stdout);
  log_now_and_then(result, done, total);
}

void Progress::finish_level() {
  if (!silent_ && !lines_.empty())
    fmt::print("{}{}\n", moving_ ? "\r\033[K" : "", text(lines_.back()));
}

std::string Progress::line_of(Level level) const {
  for (const Line& line : lines_)
    if (line.level == level) return text(line);
  return "";
}

Level Progress::telling_level() const {
  for (const Line& line : lines_)
    for (const Status status : {Status::Fail, Status::Crash, Status::Timeout})
      if (line.counts[static_cast<size_t>(status)]) return line.level;
  return lines_.empty() ? Level::L0 : lines_.back().level;
}

std::string Progress::text(const Line& line) {
  const auto count = [&](Status status) { return line.counts[static_cast<size_t>(status)]; };
  std::string text =
      fmt::format("{:<12}{:>5} passed   {} failed", kLevels[static_cast<size_t>(line.level)].title,
                  count(Status::Pass), count(Status::Fail));
  const std::pair<Status, const char*> kRare[] = {{Status::Crash, "crashed"},
                                                  {Status::Timeout, "timed out"},
                                                  {Status::Waived, "waived"},
                                                  {Status::Unsupported, "unsupported"}};
  for (const auto& [status, name] : kRare)
    if (count(status)) text += fmt::format("   {} {}", count(status), name);
  return text;
}

}  // namespace plugrad::tools

#include "nn/progress/progress_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/clock.h"
#include "base/settings.h"
#include "nn/progress/axis.h"

namespace plugrad {
namespace {

constexpr uint64_t kRedrawNs = 50'000'000;  // least time between two redraws
constexpr int64_t kPlainLines = 10;         // lines of a loop, if stderr is no terminal

// The size of the first `columns` characters, or of all.
size_t bytes_of(std::string_view text, size_t columns) {
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_continuation = (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80;
    if (!is_continuation && columns-- == 0) return i;
  }
  return text.size();
}

// A line that wraps cannot be redrawn, so it is cut before the last column.
std::string_view fitted(std::string_view text) {
  winsize size{};
  const bool is_known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return is_known ? text.substr(0, bytes_of(text, size.ws_col - 1u)) : text;
}

std::string bar(int64_t done, int64_t total, std::string_view curve) {
  const int64_t width = ProgressLine::kBarWidth;
  const int64_t filled = total > 0 ? width * std::clamp<int64_t>(done, 0, total) / total : width;
  const auto columns = static_cast<size_t>(filled);
  std::string text =
      curve.empty() ? std::string(columns, '=') : std::string(curve, 0, bytes_of(curve, columns));
  if (filled < width) text += '>' + std::string(static_cast<size_t>(width - filled - 1), ' ');
  return "[" + text + "]";
}

// Of the variables that name the locale, the first that is not empty counts (POSIX).
bool is_utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string locale = environment_variable(name).value_or("");
    if (locale.empty()) continue;
    std::ranges::transform(locale, locale.begin(), [](char c) {
      return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return locale.find("utf-8") != locale.npos || locale.find("utf8") != locale.npos;
  }
  return false;
}

}  // namespace

ProgressLine::ProgressLine(int64_t total, ProgressBar::Options options)
    : total_(total),
      options_(std::move(options)),
      is_terminal_(::isatty(STDERR_FILENO) == 1),
      is_utf8_(is_utf8_locale()),
      start_ns_(monotonic_ns()) {}

ProgressLine::~ProgressLine() {
  end_line();
}

void ProgressLine::end_line() {
  if (is_drawn_ && is_terminal_) std::fputs("\n", stderr);
  is_drawn_ = false;
}

int64_t ProgressLine::tenth(int64_t done) const {
  return total_ > 0 ? done * kPlainLines / total_ : kPlainLines;
}

bool ProgressLine::is_due(int64_t done) const {
  if (options_.quiet) return false;
  if (!is_terminal_) return tenth(done) != drawn_tenth_;
  return !is_drawn_ || done >= total_ || monotonic_ns() - drawn_ns_ >= kRedrawNs;
}

void ProgressLine::draw(int64_t done, std::string_view note, std::string_view curve) {
  const std::string line = text(done, note, curve);
  if (is_terminal_)
    fmt::print(stderr, "\r{}\x1b[K", fitted(line));
  else
    fmt::print(stderr, "{}\n", line);
  std::fflush(stderr);
  drawn_ns_ = monotonic_ns();
  drawn_tenth_ = tenth(done);
  is_drawn_ = true;
}

std::string ProgressLine::text(int64_t done, std::string_view note, std::string_view curve) const {
  const double seconds = static_cast<double>(monotonic_ns() - start_ns_) * 1e-9;
  std::string text = options_.label.empty() ? "" : options_.label + "  ";
  const std::string of = std::to_string(total_);
  text += fmt::format("{:{}}/{}", done, is_terminal_ ? of.size() : 0, of);
  if (is_terminal_) text += " " + bar(done, total_, curve);
  if (!note.empty()) text += fmt::format("  {}", note);
  if (done > 0 && seconds > 0 && !options_.unit.empty())
    text += fmt::format("  {:.0f} {}/s",
                        static_cast<double>(done * options_.units_a_step) / seconds, options_.unit);
  if (done > 0 && done < total_)
    text += fmt::format("  {} left", elapsed_text(seconds / static_cast<double>(done) *
                                                  static_cast<double>(total_ - done)));
  if (done == total_) text += fmt::format("  in {}", elapsed_text(seconds));
  return text;
}

}  // namespace plugrad

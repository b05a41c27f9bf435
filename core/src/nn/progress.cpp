// Draws progress bars.
#include "plugrad/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/clock.h"

namespace plugrad {
namespace {

constexpr int64_t kBarWidth = 24;           // columns
constexpr uint64_t kRedrawNs = 50'000'000;  // least time between two redraws
constexpr int64_t kPlainLines = 10;         // lines per loop, if stderr is no terminal

std::string minutes(double seconds) {
  auto whole = static_cast<int64_t>(std::max(0.0, seconds) + 0.5);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

// A line that wraps cannot be redrawn, so it is cut before the last column.
std::string fitted(std::string text) {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 &&
      text.size() >= size.ws_col)
    text.resize(size.ws_col - 1u);
  return text;
}

std::string bar(int64_t done, int64_t total) {
  int64_t filled = total > 0 ? kBarWidth * std::clamp<int64_t>(done, 0, total) / total : kBarWidth;
  std::string text(static_cast<size_t>(filled), '=');
  if (filled < kBarWidth) text += '>';
  text.resize(kBarWidth, ' ');
  return "[" + text + "]";
}

}  // namespace

struct ProgressBar::State {
  int64_t total;
  Options options;
  bool terminal = false, drawn = false;
  uint64_t start_ns = 0, drawn_ns = 0;
  int64_t tenth = 0;

  std::string line(int64_t done, std::string_view note) const {
    double seconds = static_cast<double>(monotonic_ns() - start_ns) * 1e-9;
    std::string text = options.label.empty() ? "" : options.label + "  ";
    const std::string of = std::to_string(total);
    text += fmt::format("{:{}}/{}", done, terminal ? of.size() : 0, of);
    if (terminal) text += " " + bar(done, total);
    if (!note.empty()) text += fmt::format("  {}", note);
    if (done > 0 && seconds > 0 && !options.unit.empty())
      text += fmt::format("  {:.0f} {}/s",
                          static_cast<double>(done * options.units_a_step) / seconds, options.unit);
    if (done > 0 && done < total)
      text += fmt::format("  {} left", minutes(seconds / static_cast<double>(done) *
                                               static_cast<double>(total - done)));
    if (done == total) text += fmt::format("  in {}", minutes(seconds));
    return text;
  }
};

ProgressBar::ProgressBar(int64_t total, Options options)
    : state_(std::make_unique<State>(State{.total = total, .options = std::move(options)})) {
  state_->terminal = ::isatty(STDERR_FILENO) == 1;
  state_->start_ns = monotonic_ns();
}

ProgressBar::~ProgressBar() {
  if (state_->drawn && state_->terminal) std::fputs("\n", stderr);
}

void ProgressBar::update(int64_t done, std::string_view note) {
  State& s = *state_;
  if (s.options.quiet) return;
  if (s.terminal) {
    uint64_t now = monotonic_ns();
    if (s.drawn && done < s.total && now - s.drawn_ns < kRedrawNs) return;
    s.drawn_ns = now;
    fmt::print(stderr, "\r{}\x1b[K", fitted(s.line(done, note)));
  } else {
    int64_t tenth = s.total > 0 ? done * kPlainLines / s.total : kPlainLines;
    if (s.drawn && tenth == s.tenth) return;
    s.tenth = tenth;
    fmt::print(stderr, "{}\n", s.line(done, note));
  }
  s.drawn = true;
  std::fflush(stderr);
}

}  // namespace plugrad

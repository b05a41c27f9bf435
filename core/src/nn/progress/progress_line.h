// The line of a loop on stderr: redrawn on a terminal, at most ten plain lines elsewhere.
//   train  37/120 [======>             ]  loss 0.1234  6412 images/s  0:12 left
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plugrad/progress.h"

namespace plugrad {

class ProgressLine {
 public:
  static constexpr int64_t kBarWidth = 24;  // columns

  ProgressLine(int64_t total, ProgressBar::Options options);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  /// Whether the line would be drawn now for this number of finished steps.
  bool is_due(int64_t done) const;
  /// `curve`: kBarWidth characters that replace the "=" of the finished part; empty: none.
  void draw(int64_t done, std::string_view note, std::string_view curve = {});
  /// Moves the cursor to a new line, so that other text may follow.
  void end_line();
  /// Whether stderr shows the bar and the locale has more characters than ASCII.
  bool shows_curve() const { return is_terminal_ && is_utf8_; }

 private:
  std::string text(int64_t done, std::string_view note, std::string_view curve) const;
  int64_t tenth(int64_t done) const;

  int64_t total_;
  ProgressBar::Options options_;
  bool is_terminal_, is_utf8_, is_drawn_ = false;
  uint64_t start_ns_, drawn_ns_ = 0;
  int64_t drawn_tenth_ = -1;
};

}  // namespace plugrad

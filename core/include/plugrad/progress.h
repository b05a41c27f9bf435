/// A progress bar on stderr: a line that is redrawn on a terminal, occasional plain lines
/// elsewhere.
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "plugrad/export.h"

namespace plugrad {

/// "train  37/120 [======>             ]  loss 0.1234  6412 images/s  0:12 left"
class PLUGRAD_API ProgressBar {
 public:
  struct Options {
    std::string label = {};
    std::string unit = {};  ///< unit of the rate, e.g. "images"; empty: no rate
    int64_t units_a_step = 1;
    bool quiet = false;
  };
  ProgressBar(int64_t total, Options options);
  ~ProgressBar();  ///< ends the line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  /// Sets the number of finished steps; `note` is shown, e.g. "loss 0.1234".
  void update(int64_t done, std::string_view note = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A range that shows the progress of a loop over it: `for (auto [x, y] :
/// progress(set.batches(512)))`.
template <class Range>
class ProgressRange {
 public:
  ProgressRange(Range range, ProgressBar::Options options)
      : range_(std::move(range)), bar_(range_.size(), std::move(options)) {}

  class Iterator {
   public:
    Iterator(decltype(std::declval<Range&>().begin()) at, ProgressBar& bar)
        : at_(std::move(at)), bar_(&bar) {}
    decltype(auto) operator*() const { return *at_; }
    Iterator& operator++() {
      ++at_;
      bar_->update(++done_);
      return *this;
    }
    bool operator==(std::default_sentinel_t end) const { return at_ == end; }

   private:
    decltype(std::declval<Range&>().begin()) at_;
    ProgressBar* bar_;
    int64_t done_ = 0;
  };
  Iterator begin() { return Iterator(range_.begin(), bar_); }
  std::default_sentinel_t end() const { return {}; }

 private:
  Range range_;
  ProgressBar bar_;
};

/// Wraps a range that has size() and ends with a default sentinel.
template <class Range>
ProgressRange<Range> progress(Range range, ProgressBar::Options options = {}) {
  return ProgressRange<Range>(std::move(range), std::move(options));
}

}  // namespace plugrad

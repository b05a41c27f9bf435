/// Progress of a training loop: a line on stderr and, if asked for, a plot in a file.
///
///   optim::Progress progress(steps, {.units_a_step = 512, .plot = "train.html"});
///   for (auto [x, y] : train.batches(512, {.shuffle = true, .steps = steps}))
///     progress.update(step(x, y).item<double>());
///   progress.add_test_accuracy(nn::accuracy(net, test));
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "plugrad/export.h"

namespace plugrad::optim {

/// "images", or "steps" for one unit a step.
PLUGRAD_API std::string default_unit(int64_t units_a_step);

struct ProgressOptions {
  std::string title = "training";
  int64_t units_a_step = 1;  ///< e.g. the images of a batch
  std::string unit = {};     ///< of the rate; empty: default_unit(units_a_step)
  /// A path that ends in .html (a page that reloads itself during the training) or .svg; empty: no
  /// plot. The file is replaced as a whole, at most twice a second.
  std::string plot = {};
  bool quiet = false;  ///< no line on stderr
};

/// Takes numbers, not tensors: reading a loss waits for the device, so the loop decides how often
/// to read it. Memory and file size are bounded: of many steps, the plot shows ranges with their
/// lowest, highest and mean values. For one thread at a time.
class PLUGRAD_API Progress {
 public:
  /// Starts the clock. `steps`: number of steps to be done; 0: unknown, no line is drawn.
  /// Errors: User for negative numbers, another kind of file, and a file that cannot be written.
  explicit Progress(int64_t steps, ProgressOptions options = {});
  /// Ends the line and writes the final plot, which does not reload itself.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Call after each step. `accuracy` is a fraction, e.g. of the step's batch. A loss that is NaN
  /// or infinite is a marked gap in the curve; a step without a loss adds no point. A plot that
  /// cannot be written is one warning, not an error.
  void update(std::optional<double> loss = {}, std::optional<double> accuracy = {});
  /// Adds the accuracy on the test set, a fraction, after the steps done so far.
  void add_test_accuracy(double accuracy);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plugrad::optim

// Draws the curves of a training as SVG, and as an HTML page around the same drawings.
#pragma once

#include <cstdint>
#include <string>

#include "nn/progress/series.h"

namespace plugrad {

/// An axis is logarithmic if its highest value is more than this factor above its lowest.
inline constexpr double kLogFactor = 100;

/// The data of one plot.
struct TrainingRun {
  std::string title, unit;  // of the training; of its rate
  int64_t steps = 0;        // finished
  int64_t total_steps = 0;  // 0: unknown
  double seconds = 0;       // at the last step
  bool is_running = true;
  // accuracies in percent
  Series loss = {}, accuracy = {}, test_accuracy = {};
  Series rate = {};  // units per second; a point of every step
};

/// "running: step 37 of 120, 12.3 s".
std::string status_text(const TrainingRun& run);

/// One image; its colours follow the reader's light or dark scheme.
std::string training_svg(const TrainingRun& run);

/// One page without references to other files. While the training runs, it reloads itself.
std::string training_html(const TrainingRun& run);

/// `columns` characters: the means of the loss over `total_steps`, from U+2581 (lowest) to U+2588
/// (highest), a cross where values are missing. Columns after the last step are spaces.
std::string loss_curve(const TrainingRun& run, int columns);

}  // namespace plugrad

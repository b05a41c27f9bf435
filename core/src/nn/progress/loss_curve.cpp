// Draws the loss with block characters.
#include <algorithm>
#include <cmath>
#include <vector>

#include "nn/progress/plot.h"

namespace plugrad {
namespace {

constexpr int kLevels = 8;

// The bucket of each column: its steps are those with (step - 1) * columns / total == column.
std::vector<Bucket> columns_of(const TrainingRun& run, int columns) {
  std::vector<Bucket> found(static_cast<size_t>(columns));
  const double most = columns - 1;
  for (const Bucket& bucket : run.loss.buckets()) {
    const double at = (bucket.step() - 1) * columns / static_cast<double>(run.total_steps);
    found[static_cast<size_t>(std::clamp(at, 0.0, most))].append(bucket);
  }
  // Fewer steps than columns: a step fills the columns up to the next one.
  const int64_t filled = std::min<int64_t>(columns, columns * run.steps / run.total_steps);
  for (int64_t i = 1; i < filled; ++i) {
    const auto column = static_cast<size_t>(i);
    if (found[column].points == 0) found[column] = found[column - 1];
  }
  return found;
}

}  // namespace

std::string loss_curve(const TrainingRun& run, int columns) {
  if (run.total_steps <= 0 || run.loss.empty()) return {};
  const std::vector<Bucket> found = columns_of(run, columns);
  double low = kMostMagnitude, high = -kMostMagnitude;
  for (const Bucket& bucket : found) {
    if (!bucket.has_value()) continue;
    low = std::min(low, bucket.mean);
    high = std::max(high, bucket.mean);
  }
  const bool is_log = low > 0 && high / kLogFactor > low;
  const auto scaled = [is_log](double value) { return is_log ? std::log(value) : value; };
  std::string out;
  for (const Bucket& bucket : found) {
    if (bucket.points == 0) {
      out += ' ';
    } else if (bucket.missing > 0) {
      out += "\u00d7";
    } else {
      const double position = (scaled(bucket.mean) - scaled(low)) / (scaled(high) - scaled(low));
      const int level = high > low ? static_cast<int>(position * (kLevels - 1) + 0.5) : 0;
      out += "\xE2\x96";  // U+2581 to U+2588 are E2 96 81 to E2 96 88
      out += static_cast<char>(0x81 + level);
    }
  }
  return out;
}

}  // namespace plugrad

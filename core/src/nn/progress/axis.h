// Axes of a plot: round ticks around the values, and their labels.
#pragma once

#include <string>
#include <vector>

namespace plugrad {

struct Axis {
  double low = 0, high = 1;
  std::vector<double> ticks = {};  // within [low, high]
  bool is_log = false;

  /// Where a value lies: 0 at `low`, 1 at `high`.
  double position(double value) const;
};

/// Ends at ticks. Preconditions: low <= high; magnitudes of at most kMostMagnitude.
Axis linear_axis(double low, double high, int intervals = 4);
/// Ends at powers of ten. Precondition: 0 < low <= high.
Axis log_axis(double low, double high);
/// Whole numbers from 0; ends at `last`.
Axis step_axis(double last);

/// A number of four digits at most, e.g. 0.0312, 1500, 64k, 1e-07.
std::string number_text(double value);
/// Minutes and seconds, "0:07"; from one hour on "1:02:03".
std::string elapsed_text(double seconds);

}  // namespace plugrad

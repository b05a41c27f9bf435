// A roofline plot as SVG: the machine's peak performance, and each measured kernel.
#pragma once

#include <string>
#include <vector>

#include "bench/suites.h"

namespace plugrad::bench {

struct Roof {
  int threads = 1;
  double flops = 0;      ///< FLOP per second
  double bandwidth = 0;  ///< bytes per second
};

/// Plots the results with known work and memory traffic. Returns the text of an SVG file, readable
/// on light and dark backgrounds.
std::string roofline_svg(const std::string& machine, const std::vector<Roof>& roofs,
                         const std::vector<Result>& results);

}  // namespace plugrad::bench

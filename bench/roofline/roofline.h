// A roofline plot as SVG: what the machine can do, and where each measured kernel stands below it.
#pragma once

#include <string>
#include <vector>

#include "bench/suites.h"

namespace plugrad::bench {

struct Roof {
  int threads = 1;
  double flops = 0;      ///< a second
  double bandwidth = 0;  ///< bytes a second
};

/// Of the results that say how much they compute and move. The text of an SVG file, readable on
/// light and dark grounds.
std::string roofline_svg(const std::string& machine, const std::vector<Roof>& roofs,
                         const std::vector<Result>& results);

}  // namespace plugrad::bench

// First calls of programs that are long as written: what planning and compiling cost together, and
// how many kernels are compiled.
#pragma once

#include <string>
#include <vector>

#include "bench/suites.h"

namespace plugrad::bench {

std::vector<std::string> join_rows();
std::vector<std::string> unrolled_rows();
void report_joins(const Report& report);
/// A recurrent cell over 128 places with its optimiser, the gradient of a chain, a recurrence in
/// place.
void report_unrolled(const Report& report);

}  // namespace plugrad::bench

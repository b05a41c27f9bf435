// Finding plugins, and the first kernel of a process.
#pragma once

#include "bench/suites.h"

namespace plugrad::bench {

void report_discovery(const Report& report);
void report_first_kernel(const Report& report);

}  // namespace plugrad::bench

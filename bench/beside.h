// How long the host waits for copies while a device works.
#pragma once

#include "bench/suites.h"

namespace plugrad::bench {

void report_copies_beside_kernels(const Report& report);

}  // namespace plugrad::bench

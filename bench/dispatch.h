// The host's checks around a device's calls.
#pragma once

#include "bench/suites.h"

namespace plugrad::bench {

void report_dispatch(const Report& report);

}  // namespace plugrad::bench

// Finding plugins, and the first kernel of a process.
#pragma once

#include "bench/suites.h"

namespace plugrad::bench {

/// Of the framework's suite.
void report_loading(const Report& report);

}  // namespace plugrad::bench

// Measures a case in turns with its peers, after comparing what they compute.
#pragma once

#include <optional>
#include <string>

#include "bench/peers/peers.h"
#include "bench/rows/case.h"
#include "bench/suites.h"

namespace plugrad::bench {

/// Nothing where a peer's result differs: a wrong kernel gets no row. Says so on stderr.
std::optional<Result> measure_case(const Case& row, Peers& peers);

}  // namespace plugrad::bench

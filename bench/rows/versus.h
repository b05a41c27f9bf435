// Compares the results of a case and its peers, then measures them alternately.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "bench/peers/peers.h"
#include "bench/rows/case.h"
#include "bench/rows/subject.h"
#include "bench/suites.h"

namespace plugrad::bench {

/// nullopt if a peer's result differs: wrong kernels get no row. Reports this on stderr.
std::optional<Result> measure_case(
    const Case& row, Peers& peers,
    const std::function<Subject(const Case&)>& make = [](const Case& c) {
      return make_subject(c);
    });

}  // namespace plugrad::bench

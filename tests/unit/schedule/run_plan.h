// Runs a plan on the host: every kernel loop by loop after ir/kernel_ast.h, in exact values.
#pragma once

#include <vector>

#include "oracle/array.h"
#include "schedule/schedule.h"

namespace plugrad::test {

/// Values of the roots. Fails the test if a kernel accesses an element out of bounds or writes an
/// element twice.
std::vector<std::vector<uint64_t>> run_plan(const schedule::Plan& plan,
                                            const std::vector<oracle::Array>& inputs);

}  // namespace plugrad::test

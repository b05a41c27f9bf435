// Performs one step in a world.
#pragma once

#include <random>

#include "programs/operations.h"

namespace plugrad::programs {

/// Runs the step; with `random` its arguments are drawn and recorded in it. False: it does not fit
/// (in the pure world, errors of kind User and results that are too large included), and nothing
/// has changed.
bool perform(World& world, Step& step, std::mt19937_64* random);

}  // namespace plugrad::programs

// Compares the tensors of a world with their expected values.
#pragma once

#include <string>
#include <vector>

#include "oracle/measured.h"
#include "programs/operations.h"
#include "programs/run.h"

namespace plugrad::programs {

/// The expected values of a pure world, in the order of its variables.
std::vector<oracle::Measured> expected_of(const World& world);

/// Empty if the tensor equals the expected value within the permitted error.
std::string first_difference(const Tensor& tensor, const oracle::Measured& want,
                             Coverage* coverage = nullptr);

/// The name of a variable in texts.
std::string name_of(Variable variable);

}  // namespace plugrad::programs

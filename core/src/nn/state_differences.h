// Compares a state with one that is to be loaded into it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "plugrad/nn/state.h"

namespace plugrad::nn {

struct TensorFacts {
  Shape shape;
  DType dtype = DType::F32;
};

/// The differences that prevent loading `source` into `target`. Errors: User when Strict and there
/// is one, with a table of all.
std::vector<StateDifference> compare_states(std::string_view function, const StateDict& target,
                                            const std::map<std::string, TensorFacts>& source,
                                            Loading loading);

}  // namespace plugrad::nn

// The computations of cases, and the family of each kind. bench/peers/torch_kinds.py implements the
// same.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/rows/case.h"
#include "plugrad/tensor.h"

namespace plugrad::bench {

using Forward = std::function<Tensor(const std::vector<Tensor>& inputs)>;

struct Kind {
  const char* name;    ///< "conv2d"
  const char* family;  ///< "convolutions"
  size_t least_inputs, most_inputs;
  std::vector<const char*> options;  ///< supported options
  Forward (*make)(const nlohmann::json& options);
  int64_t integers = -1;  ///< the input with indices into the first input's rows
};

const std::vector<Kind>& kinds();
/// Null for unknown names.
const Kind* find_kind(const std::string& name);

/// Results of a case: the forward result; with the option "gradients", the gradients of all inputs
/// except index inputs and the last input, which is the gradient of the result.
std::vector<Tensor> compute_case(const Case& row, const std::vector<Tensor>& inputs);

}  // namespace plugrad::bench

// The computations that cases name: what is computed of the inputs, and the family that a kind is
// counted in. bench/peers/torch_kinds.py has the same.
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
  std::vector<const char*> options;  ///< that it takes
  Forward (*make)(const nlohmann::json& options);
  int64_t integers = -1;  ///< the input that holds indices into the first one's rows
};

const std::vector<Kind>& kinds();
/// Null where there is none of this name.
const Kind* find_kind(const std::string& name);

/// Results of a case: its forward result, and with the option "gradients" those of all inputs but
/// the last, which is the gradient of the result, and those that hold indices.
std::vector<Tensor> compute_case(const Case& row, const std::vector<Tensor>& inputs);

}  // namespace plugrad::bench

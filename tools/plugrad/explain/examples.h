// The built-in programs of `plugrad explain`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugrad/tensor.h"

namespace plugrad::tools {

struct Example {
  const char* name;
  const char* meaning;
  std::vector<Tensor> (*make)();  ///< returns the tensors to explain
};

std::span<const Example> explain_examples();
std::vector<std::string> example_names();
const Example* find_example(std::string_view name);

}  // namespace plugrad::tools

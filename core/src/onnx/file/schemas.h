// The attributes and the numbers of inputs and outputs of each operator, for checks of files.
#pragma once

#include <limits>
#include <string_view>

namespace plugrad::onnx {

constexpr int kMany = std::numeric_limits<int>::max();  // any number of inputs or outputs

/// The union of all versions of an operator.
struct OperatorSchema {
  std::string_view domain, name;
  std::string_view attributes;  // separated by spaces
  int most_inputs = 0, most_outputs = 0;

  bool has(std::string_view attribute) const;
};

/// Null if there is no such operator.
const OperatorSchema* find_schema(std::string_view domain, std::string_view name);

}  // namespace plugrad::onnx

// The attributes and the numbers of inputs and outputs of each operator, for checks of files.
#pragma once

#include <limits>
#include <string_view>
#include <vector>

namespace plugrad::onnx {

constexpr int kMany = std::numeric_limits<int>::max();  // any number of inputs or outputs

/// AttributeProto.AttributeType as letters: 1 is a float, 6 are floats.
constexpr std::string_view kAttributeTypes = "?fistgFISTGpPyY";

struct AttributeSchema {
  std::string_view name, types;  // one letter for each type that a version of the operator takes
  bool is_required = false;      // in all versions
};

/// The union of all versions of operators that take the same.
struct OperatorSchema {
  std::string_view domain, operators;
  std::string_view attributes;  // "name:types", "name:types!" for one that is required
  int most_inputs = 0, most_outputs = 0;

  std::vector<AttributeSchema> all_attributes() const;
};

/// Whether a text of words with single spaces between them has this one.
bool has_word(std::string_view words, std::string_view word);

/// Null if there is no such operator.
const OperatorSchema* find_schema(std::string_view domain, std::string_view name);

}  // namespace plugrad::onnx

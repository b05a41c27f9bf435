// Operators that only move, choose or compare elements run on strings as on numbers: each string
// becomes its place among all strings of the node's inputs, in order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "onnx/import/call.h"
#include "onnx/import/value.h"

namespace plugrad::onnx {

/// How many of the operator's first results have only elements of its inputs, and zeros.
size_t moved_results(const NodeMessage& node);
/// Whether other results depend on the order of its inputs' elements only.
bool compares_elements(const NodeMessage& node);

class StringIds {
 public:
  /// The strings of these values are the ones that ids stand for.
  explicit StringIds(const std::vector<Value>& values);

  /// Whether a value has strings.
  bool is_needed() const { return has_strings_; }
  /// The value with ids for strings, also in sequences.
  Value ids_of(const Value& value) const;
  /// The value with strings for ids. Errors: NeedsHostValues in a jitted call.
  Value strings_of(const Value& ids, bool is_jitted) const;

 private:
  void add(const Value& value);

  bool has_strings_ = false;
  std::vector<std::string> sorted_{""};  // which is 0 and so fills
};

}  // namespace plugrad::onnx

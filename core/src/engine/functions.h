// Implements Op::Function: the session's table of calls of user-defined functions.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace plugrad::engine {

/// One call of a function. Sources of its nodes: the node's own value, inputs, saved, all values.
struct FunctionCall {
  std::string name;
  uint32_t input_count = 0, saved_count = 0, output_count = 0;
  std::shared_ptr<const void> function;  // the user's object; only its creator knows the type
};
using FunctionCallPtr = std::shared_ptr<const FunctionCall>;

/// Calls by number. A call lives as long as a node refers to it.
class FunctionTable {
 public:
  uint64_t add(FunctionCallPtr call) {
    calls_.emplace(++last_, std::move(call));
    return last_;
  }
  bool contains(uint64_t call) const { return calls_.contains(call); }
  /// Errors: User where the call was removed.
  const FunctionCallPtr& operator[](uint64_t call) const;
  size_t size() const { return calls_.size(); }

  /// Removes the calls that no node of `ids` names. Returns them instead of destroying them: their
  /// functions may own tensors, whose destructors change the session.
  std::vector<FunctionCallPtr> retain(const Graph& graph, std::span<const Id> ids);

 private:
  std::unordered_map<uint64_t, FunctionCallPtr> calls_;
  uint64_t last_ = 0;
};

}  // namespace plugrad::engine

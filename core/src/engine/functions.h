// What the user's functions in the graph mean (Op::Function): the session's table of their calls.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace plugrad::engine {

/// One call of a function. The sources of its nodes are: own value, inputs, saved, all values.
struct FunctionCall {
  std::string name;
  uint32_t input_count = 0, saved_count = 0, output_count = 0;
  std::shared_ptr<const void> function;  // what the user gave, as its maker knows it
};
using FunctionCallPtr = std::shared_ptr<const FunctionCall>;

/// Calls by number. A call lives as long as a node of it.
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

  /// Removes the calls that no node of `ids` names. They are returned, because what the user gave
  /// may hold tensors, whose end changes the session.
  std::vector<FunctionCallPtr> retain(const Graph& graph, std::span<const Id> ids);

 private:
  std::unordered_map<uint64_t, FunctionCallPtr> calls_;
  uint64_t last_ = 0;
};

}  // namespace plugrad::engine

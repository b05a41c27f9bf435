#include "engine/functions.h"

#include <unordered_set>

#include "base/check.h"
#include "ir/user.h"

namespace plugrad::engine {

const FunctionCallPtr& FunctionTable::operator[](uint64_t call) const {
  const auto known = calls_.find(call);
  require(known != calls_.end(),
          "[gradient] a value on the way to the target has forgotten how it was computed: call "
          "gradient() before it is read, or mark the target with requires_grad_() before that");
  return known->second;
}

std::vector<FunctionCallPtr> FunctionTable::retain(const Graph& graph, std::span<const Id> ids) {
  std::vector<FunctionCallPtr> dead;
  if (calls_.empty()) return dead;
  std::unordered_set<uint64_t> named;
  for (Id id : ids)
    if (graph[id].op == Op::Function && !is_range_check(graph[id]))
      named.insert(function_call(graph[id].arg));
  std::erase_if(calls_, [&](auto& entry) {
    if (named.contains(entry.first)) return false;
    dead.push_back(std::move(entry.second));
    return true;
  });
  return dead;
}

}  // namespace plugrad::engine

#include "engine/functions.h"

#include <unordered_set>

#include "uop/user.h"

namespace plugrad::engine {

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

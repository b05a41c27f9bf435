// Evaluates integer expressions for given range values, directly from the definitions of the ops.
#pragma once

#include <map>
#include <vector>

#include "ir/fold.h"
#include "ir/range.h"

namespace plugrad::testing {

/// Evaluates in a separate graph, so that the graph under test does not grow.
class Evaluator {
 public:
  explicit Evaluator(const Graph& g) : g_(g) {}

  /// False when a node had no fixed value: a bitcast to a NaN.
  bool defined() const { return defined_; }

  int64_t operator()(Id root, const std::map<Id, int64_t>& values) {
    return static_cast<int64_t>(bits(root, values));
  }
  /// Constant bits of a node of any dtype; `values` are constant bits too.
  template <class Values>
  uint64_t bits(Id root, const Values& values) {
    Graph scratch;
    std::map<Id, Id> memo;
    return scratch[constant_of(scratch, root, values, memo)].arg;
  }

 private:
  template <class Values>
  Id constant_of(Graph& scratch, Id id, const Values& values, std::map<Id, Id>& memo) {
    if (const auto at = memo.find(id); at != memo.end()) return at->second;
    const Node& n = g_[id];
    Id result;
    if (const auto at = values.find(id); at != values.end()) {
      result = scratch.add(Op::Const, n.dtype, {}, static_cast<uint64_t>(at->second));
    } else if (n.op == Op::Const) {
      result = scratch.add(Op::Const, n.dtype, {}, n.arg);
    } else {
      std::vector<Id> sources;
      for (Id s : g_.sources(id)) sources.push_back(constant_of(scratch, s, values, memo));
      result = add_folded(scratch, n.op, n.dtype, sources);
      if (!is_const(scratch, result)) {
        defined_ = false;
        result = scratch.constant(n.dtype, int64_t{0});
      }
    }
    memo[id] = result;
    return result;
  }
  const Graph& g_;
  bool defined_ = true;
};

/// Calls f with every combination of range values.
template <class F>
void for_all_values(const Graph& g, const std::vector<Id>& ranges, F f) {
  std::map<Id, int64_t> values;
  for (Id r : ranges) values[r] = 0;
  while (true) {
    f(values);
    size_t i = 0;
    for (; i < ranges.size(); ++i) {
      if (++values[ranges[i]] < range_size(g, ranges[i])) break;
      values[ranges[i]] = 0;
    }
    if (i == ranges.size()) return;
  }
}

}  // namespace plugrad::testing

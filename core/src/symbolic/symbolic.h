// Algebra shared by the scheduler and codegen: simplification, substitution, loop dependence.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "rewrite/rewrite.h"
#include "symbolic/bounds.h"

namespace plugrad {

/// The rules of a Simplifier. Strict rules keep every IEEE result (docs/rules.md lists all rules).
enum class RuleSet : uint8_t {
  Strict = 0,  ///< constants, identities, casts, comparisons, index arithmetic, validity
  Fast = 1,    ///< also reassociates floats, x * 0 -> 0, …: last bits may differ, NaN may vanish
};

/// Rewrites to a fixpoint. Its memo lasts between calls, so that shared parts of roots cost once.
class Simplifier {
 public:
  explicit Simplifier(Graph& graph, RuleSet sets = RuleSet::Strict);
  ~Simplifier();
  Id operator()(Id root);
  Bounds& bounds();
  const Rewriter& rewriter() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Substitutes nodes below many roots; nodes without a substituted node stay. The memo lasts as
/// long as the object.
class Substitution {
 public:
  Substitution(Graph& graph, std::span<const std::pair<Id, Id>> map);
  Id operator()(Id root);

 private:
  Graph& graph_;
  std::vector<Id> done_;  // by id; kNoId: not yet
  std::vector<Id> stack_, scratch_;
};

/// The same for one root. Replacements are not substituted again.
Id substitute(Graph& graph, Id root, std::span<const std::pair<Id, Id>> map);
inline Id substitute(Graph& graph, Id root, std::initializer_list<std::pair<Id, Id>> map) {
  return substitute(graph, root, std::span<const std::pair<Id, Id>>(map.begin(), map.size()));
}

/// The open Range nodes that each node depends on, i.e. those that no Reduce below it closed, as
/// interned sets: equal sets have equal numbers.
class RangeSets {
 public:
  explicit RangeSets(const Graph& graph);
  ~RangeSets();
  /// Sorted ids of the open ranges of `id`.
  std::span<const Id> operator[](Id id);
  /// Number of that set; 0 is the empty set.
  uint32_t set_of(Id id);
  bool depends(Id id, Id range);

 private:
  struct Sets;
  void fill(Id id);
  const Graph& graph_;
  std::vector<uint32_t> by_id_;
  std::unique_ptr<Sets> sets_;
};

/// Whether `id` is or contains `node`. Visits all nodes below; RangeSets answers faster for ranges.
bool depends_on(const Graph& graph, Id id, Id node);

/// Simplifies, and replaces reductions in loop form by closed forms of the same value:
///   a loop-invariant value                            value * size  (floats: only if exact)
///   a sum of comparisons (arange, counts)             clamped differences of their bounds
///   a sum that selects one element (one-hot, gather)  that element; loads are gated if the index may
///                                                     lie outside the loop
/// RuleSet::Fast also multiplies floats by the size, and treats a product with a one-hot factor as
/// a selection.
Id collapse_reduces(Graph& graph, Id root, RuleSet sets = RuleSet::Strict);

}  // namespace plugrad

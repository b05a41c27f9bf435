// Algebra shared by schedule and codegen: simplification, substitution, and what depends on which
// loop.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "rewrite/rewrite.h"
#include "symbolic/bounds.h"

namespace plugrad {

/// Which rules a Simplifier applies. Strict rules keep every IEEE result (docs/rules.md lists them
/// all).
enum class RuleSet : uint8_t {
  Strict = 0,  ///< constants, identities, casts, comparisons, index arithmetic, validity
  Fast = 1,    ///< and reassociates floats, x * 0 -> 0, …: results may differ in the last bits, NaN
               ///< may vanish
};

/// Rewrites to a fixpoint. Keeps its memo between calls, so common parts of many roots cost once.
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

/// Replaces nodes below many roots; what does not contain a replaced node stays as it is. The memo
/// lasts as long as the object.
class Substitution {
 public:
  Substitution(Graph& graph, std::span<const std::pair<Id, Id>> map);
  Id operator()(Id root);

 private:
  Graph& graph_;
  std::vector<Id> done_;  // by id; kNoId: not yet
  std::vector<Id> stack_, scratch_;
};

/// The same for one root. Replacements are not searched again.
Id substitute(Graph& graph, Id root, std::span<const std::pair<Id, Id>> map);
inline Id substitute(Graph& graph, Id root, std::initializer_list<std::pair<Id, Id>> map) {
  return substitute(graph, root, std::span<const std::pair<Id, Id>>(map.begin(), map.size()));
}

/// The Range nodes that each node depends on and that no Reduce below it has closed, as sets
/// interned by number: equal sets have equal numbers, so comparing them is comparing integers.
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

/// Whether `id` is or contains `node`. Walks `id`; for many questions about ranges use RangeSets.
bool depends_on(const Graph& graph, Id id, Id node);

/// Simplifies, and replaces reductions (in loop form) by arithmetic where that keeps the value:
///   a value that does not change in the loop          value * size  (floats: only where that is
///   exact) a sum of comparisons (arange, counts)             clamped differences of their bounds
///   a sum that picks one element (one-hot, gather)    that element; its loads are gated where the
///   index may
///                                                     lie outside the loop
/// The set Fast also multiplies floats by the size, and takes a product with a one-hot factor for a
/// choice.
Id collapse_reduces(Graph& graph, Id root, RuleSet sets = RuleSet::Strict);

}  // namespace plugrad

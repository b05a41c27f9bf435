// The table of sharding rules: for each op, the specs that it needs of its sources, and the spec of
// its result. Where a source has another spec, lowering moves its data (collectives.h).
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "sharding/spec.h"

namespace plugrad::sharding {

struct Operand {
  Spec spec;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
  bool is_constant = false;  // computed of constants alone: has any spec without moving data
};

struct Propagation {
  std::vector<Spec> sources;
  Spec result;
};

/// What a rule sees of a node.
struct Subject {
  const Graph& graph;
  Id node;
  std::span<const int64_t> shape;  // of the result
  std::span<const Operand> sources;
  const Mesh& mesh;
  bool fast_math;  // partial sums may pass through products and sums
};

struct Rule {
  Op op;
  Propagation (*propagate)(const Subject&);
  std::string_view meaning;
};

/// The rules by op, for documentation and tests.
std::span<const Rule> propagation_rules();

/// The spec of a view's source for which the view has `wanted`, if data that move are better moved
/// before it: an Expand repeats them, other views cost nothing.
std::optional<Spec> source_spec(const Subject& subject, const Spec& wanted);

/// Errors: User for an op without a rule, with the op, shapes and specs and the reshard that helps.
Propagation propagate(const Subject& subject);

}  // namespace plugrad::sharding

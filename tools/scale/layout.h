// How the inputs of a step lie on a mesh, and the graph that one device then computes, by the
// rules and the lowering that run sharded programs (sharding/lowering.h).
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "scale/program.h"
#include "sharding/spec.h"

namespace plugrad::tools::scale {

struct Layout {
  sharding::AxisSet batch = 0;  ///< axes that cut dimension 0 of the batch
  sharding::AxisSet state = 0;  ///< axes that cut the optimiser's state, as Optimizer::shard_state
  std::vector<std::vector<sharding::AxisSet>> groups;  ///< by group: axes by dimension

  auto operator<=>(const Layout&) const = default;
};

/// Every device has all parameters and the whole batch.
Layout replicated(const Program& program);

/// A mesh with one device a process, seen from its last position, whose parts are the largest.
/// Errors: User: no axes, more than 32, one without a name or named twice, a size below 1, more
/// positions than `most`.
sharding::Mesh make_mesh(const std::vector<std::pair<std::string, int64_t>>& axes, uint64_t most,
                         const std::string& machine);
/// Of "data=8,model=4". Errors: User.
std::vector<std::pair<std::string, int64_t>> parse_axes(const std::string& text);

sharding::Spec spec_of(const Program& program, const Layout& layout, size_t leaf);

/// The graph of one position.
struct Part {
  Graph graph;
  std::vector<Id> roots;        ///< of the step, then collectives that no root needs
  std::vector<Id> inputs;       ///< those that the roots need
  std::vector<size_t> leaves;   ///< of the inputs: index of the leaf of the program
  std::vector<uint64_t> bytes;  ///< by leaf of the program, of the part
};

inline constexpr uint32_t kDevice = 1;  ///< number of the position's device in Part::graph

/// Errors: User, by the rules of propagation.
Part part_of(const Program& program, const sharding::Mesh& mesh, const Layout& layout);

}  // namespace plugrad::tools::scale

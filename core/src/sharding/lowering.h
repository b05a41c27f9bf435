// Turns a graph with sharded values into the graph that the devices of this process compute: each
// sharded node becomes one node a device, with the shapes of its parts, and collectives where a
// rule (propagation.h) asks for another spec than a source has.
//   before   %2 = add %0 [data, -], %1 [-, -]      on the mesh data=2
//   after    %3 = add %0.0, (shrink %1 rows 0..2)  on device 0
//            %4 = add %0.1, (shrink %1 rows 2..4)  on device 1
// Works in the session's graph, so that equal parts are equal nodes. Values do not change, except
// that sums over cut dimensions are added in another order.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "sharding/collectives.h"
#include "sharding/description.h"
#include "sharding/propagation.h"

namespace plugrad::sharding {

/// A sharded value that is stored: a Buffer, or a node that was computed.
struct StoredParts {
  Spec spec;
  std::vector<Id> parts;  // Buffers, by position; kNoId for those of other processes
};

/// What the lowering asks of its owner.
struct Owner {
  std::function<const Mesh*(uint32_t device)> mesh;  // null: a device, not a mesh
  std::function<bool(Id)> is_stored;                 // nothing below is looked at
  std::function<Spec(Id)> stored_spec;               // of a stored node on a mesh
  std::function<std::vector<Id>(Id)> stored_parts;   // their Buffers
  // The nodes from `first` on were made for `node`. May be empty.
  std::function<void(Id node, Id first)> note_made;
  // Whether there is a mesh that not all processes are part of. May be empty: no.
  std::function<bool()> has_meshes_of_some;
};

class Lowering {
 public:
  Lowering(Graph& graph, Shapes& shapes, Devices& devices, Owner owner);

  /// The spec of a node on a mesh. Errors: User, by the rules of propagation.
  const Spec& spec(Id node, bool fast_math);
  /// The nodes to compute for each of `nodes`: on a mesh one by position, without terms of sums;
  /// otherwise one.
  std::vector<StoredParts> lower(std::span<const Id> nodes, bool fast_math);
  /// The Collective nodes that were made since it was cleared: all processes must run them, also
  /// where a process needs none of the result.
  const std::vector<Id>& between_processes() const { return made_.nodes; }
  /// Forgets what it knows of nodes: call when values or ids change.
  void clear();

  /// The nodes that `node` is computed from, sources first, with their shapes and specs, and what
  /// moves between the devices before each of them: one line a node, one more a movement.
  std::string describe(Id node, bool fast_math);
  /// The sharded values that were lowered since it was cleared, sources first.
  std::vector<ShardedNode> lowered_values();
  /// The parts of these, and of what moved, by the nodes that compute them.
  std::unordered_map<Id, PartOf> lowered_parts();

 private:
  struct KeyOfReshard {
    Id node;
    Spec spec;
    auto operator<=>(const KeyOfReshard&) const = default;
  };
  struct Placed {
    std::vector<Id> parts;  // one where the value is on no mesh
    int64_t depth = 0;      // movements that they depend on, one after another
  };
  const Mesh* mesh_of(Id node);
  template <class Ends>
  std::vector<Id> in_order(std::span<const Id> nodes, Ends ends);
  void propagate_node(Id node, bool fast_math);
  Operand operand(Id source);
  void lower_node(Id node);
  Placed rebuilt(Id node);
  Placed lowered_on(const Mesh& mesh, Id node);
  Placed source_on(const Mesh& mesh, Id source, const Spec& spec);
  Placed resharded(const Mesh& mesh, Id source, const Spec& wanted);
  Placed copied(const Mesh& from, const Mesh& to, Id source, const Spec& spec);
  int64_t place_of(Id source) const;
  std::vector<int64_t> shape_of(Id node);
  std::optional<Placed> moved_below(const Mesh& mesh, Id view, const Spec& wanted);
  Id cut_of(const Mesh& mesh, Id value, const Spec& spec, uint32_t position);
  Id local_node(const Mesh& mesh, Id node, const Spec& spec, std::span<const Id> sources,
                uint32_t position);
  uint64_t bytes_to_move(Id source);
  std::optional<Spec> spec_below(const Mesh& mesh, Id view, const Spec& wanted);
  void add_movements(const Mesh& mesh, Id node, const Spec& wanted, std::set<KeyOfReshard>& seen,
                     std::vector<ValueMovement>& moves);
  std::vector<ShardedNode> sharded_nodes(std::span<const Id> nodes, std::span<const Id> roots);

  Graph& graph_;
  Shapes& shapes_;
  Devices& devices_;
  Owner owner_;
  LocalBuilder build_;
  Reachable reachable_;
  std::unordered_map<Id, Propagation> known_;
  std::unordered_map<Id, Placed> lowered_;
  std::map<KeyOfReshard, Placed> resharded_;
  std::vector<Id> roots_;                   // that were lowered
  std::unordered_map<Id, int64_t> places_;  // in the order of lowering
  int64_t next_place_ = 0;
  CollectiveList made_;
  Id reader_ = kNoId;  // the node that is being lowered
};

}  // namespace plugrad::sharding

#include "sharding/lowering.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "ir/user.h"
#include "sharding/transfers.h"

namespace plugrad::sharding {

Lowering::Lowering(Graph& graph, Shapes& shapes, Devices& devices, Owner owner)
    : graph_(graph),
      shapes_(shapes),
      devices_(devices),
      owner_(std::move(owner)),
      build_(graph, shapes, devices) {}

void Lowering::clear() {
  known_.clear();
  lowered_.clear();
  resharded_.clear();
  roots_.clear();
  places_.clear();
  next_place_ = 0;
  made_.nodes.clear();
}

const Mesh* Lowering::mesh_of(Id node) {
  const uint32_t device = devices_[node];
  return device == 0 ? nullptr : owner_.mesh(device);
}

// ---- Specs ----

namespace {

/// Of a copy to another mesh: parts keep their positions if both are alike.
Spec copied_spec(const Mesh& from, const Mesh& to, Spec spec) {
  if (!from.has_shape_of(to)) return Spec::replicated(spec.dims.size());
  spec.partial = 0;
  spec.reduction = Op::Add;
  return spec;
}

}  // namespace

Operand Lowering::operand(Id source) {
  const auto sizes = shapes_[source];
  Operand x{.spec = Spec::replicated(sizes.size()), .shape = {sizes.begin(), sizes.end()}};
  x.bytes = bytes_to_move(source);
  x.is_constant = devices_[source] == 0;
  if (mesh_of(source) != nullptr) x.spec = known_.at(source).result;
  return x;
}

/// Views are moved by their sources.
uint64_t Lowering::bytes_to_move(Id source) {
  int64_t count = element_count(shapes_[source]);
  for (Id id = source; is_movement(graph_[id].op);
       count = std::min(count, element_count(shapes_[id])))
    id = graph_.sources(id)[0];
  return static_cast<uint64_t>(count) * size_of(strong(graph_[source].dtype));
}

void Lowering::propagate_node(Id node, bool fast_math) {
  const Mesh* mesh = mesh_of(node);
  if (mesh == nullptr) return;
  if (owner_.is_stored(node)) {
    known_[node] = {{}, owner_.stored_spec(node)};
    return;
  }
  std::vector<Operand> sources;
  for (const Id source : graph_.sources(node)) sources.push_back(operand(source));
  const Mesh* const from = sources.empty() ? nullptr : mesh_of(graph_.sources(node)[0]);
  if (graph_[node].op == Op::Copy && from != nullptr && from != mesh) {
    const Spec spec = copied_spec(*from, *mesh, sources[0].spec);
    known_[node] = {{spec}, spec};
    return;
  }
  known_[node] = propagate({graph_, node, shape_of(node), sources, *mesh, fast_math});
}

const Spec& Lowering::spec(Id node, bool fast_math) {
  if (const auto known = known_.find(node); known != known_.end()) return known->second.result;
  const auto ends = [&](Id id) { return known_.contains(id) || owner_.is_stored(id); };
  for (const Id id : reachable_.from(graph_, std::span(&node, 1), ends))
    if (!known_.contains(id)) propagate_node(id, fast_math);
  ensure(known_.contains(node), "node {} is on no mesh", node);
  return known_.at(node).result;
}

// ---- Nodes ----

/// The nodes below `nodes` that `ends` does not hide, sources first. Alike in all processes, unlike
/// ids, which depend on when a process has dropped an equal node. By the longest way from stored
/// values, about as they were recorded: gradients of the last layers come first.
template <class Ends>
std::vector<Id> Lowering::in_order(std::span<const Id> nodes, Ends ends) {
  std::unordered_map<Id, int64_t> heights;
  for (const Id id : reachable_.from(graph_, nodes, ends)) {
    int64_t& height = heights[id];
    if (ends(id)) continue;
    const auto sources = graph_.sources(id);
    for (const Id source : sources) height = std::max(height, heights.at(source));
    // Processes may have computed other parts of what is on no mesh.
    if (mesh_of(id) != nullptr || std::ranges::any_of(sources, [&](Id s) { return mesh_of(s); }))
      ++height;
  }
  std::vector<Id> found, stack(nodes.rbegin(), nodes.rend());
  std::unordered_map<Id, bool> is_found;  // false: its sources are searched
  while (!stack.empty()) {
    const Id id = stack.back();
    const auto [known, is_new] = is_found.try_emplace(id, false);
    if (is_new && !ends(id)) {
      const auto sources = graph_.sources(id);
      stack.insert(stack.end(), sources.rbegin(), sources.rend());
      continue;
    }
    stack.pop_back();
    if (!std::exchange(known->second, true)) found.push_back(id);
  }
  std::ranges::stable_sort(found, {}, [&](Id id) { return heights.at(id); });
  return found;
}

// A movement is made for the first reader of its result, so that those before it come before it in
// the order of collectives, too.
std::vector<StoredParts> Lowering::lower(std::span<const Id> nodes, bool fast_math) {
  made_.are_alone = owner_.has_meshes_of_some && owner_.has_meshes_of_some();
  const auto ends = [&](Id id) { return lowered_.contains(id) || owner_.is_stored(id); };
  const std::vector<Id> below = in_order(nodes, ends);
  for (const Id id : below) {
    places_.emplace(id, next_place_++);
    if (mesh_of(id) != nullptr) spec(id, fast_math);
  }
  for (const Id id : below)
    if (const Id first = graph_.size(); !lowered_.contains(id)) {
      lower_node(id);
      if (owner_.note_made) owner_.note_made(id, first);
    }
  reader_ = kNoId;
  roots_.insert(roots_.end(), nodes.begin(), nodes.end());
  std::vector<StoredParts> made;
  for (const Id node : nodes) {
    const Mesh* const mesh = mesh_of(node);
    if (mesh == nullptr) {
      made.push_back({{}, lowered_.at(node).parts});
      continue;
    }
    Spec stored = spec(node, fast_math);
    stored.partial = 0;
    stored.reduction = Op::Add;
    made.push_back({stored, source_on(*mesh, node, stored).parts});
  }
  return made;
}

void Lowering::lower_node(Id node) {
  const Mesh* mesh = mesh_of(node);
  reader_ = node;
  Placed placed;
  if (mesh == nullptr)
    placed = rebuilt(node);
  else if (owner_.is_stored(node))
    placed.parts = owner_.stored_parts(node);
  else
    placed = lowered_on(*mesh, node);
  lowered_.emplace(node, std::move(placed));
}

/// A node on one device, reading what its sources became.
Lowering::Placed Lowering::rebuilt(Id node) {
  if (owner_.is_stored(node) || graph_.sources(node).empty()) return {{node}};
  if (graph_[node].op == Op::Copy)
    if (const Mesh* mesh = mesh_of(graph_.sources(node)[0]); mesh != nullptr) {
      const Id source = graph_.sources(node)[0];
      const Placed whole = source_on(*mesh, source, Spec::replicated(shapes_[source].size()));
      Transfers transfers(build_, {place_of(source), whole.depth}, made_, shape_of(source));
      const auto device = static_cast<uint32_t>(graph_[node].arg);
      return {{transfers.to_all(*mesh, whole.parts, graph_[node].dtype, device)}, whole.depth + 1};
    }
  Placed made;
  std::vector<Id> sources;
  for (const Id source : graph_.sources(node)) {
    const Mesh* const mesh = mesh_of(source);  // of a variable size, which every device has
    const Placed& placed = lowered_.at(source);
    const uint32_t position = mesh == nullptr ? 0 : mesh->first_here();
    if (mesh != nullptr && position == mesh->size())
      fail(
          ErrorKind::User,
          "[{}] it needs a variable size of a tensor on the mesh {}, which has no position in this "
          "process; pass tensors of one size between meshes",
          op_info(graph_[node].op).name, to_string(*mesh));
    sources.push_back(placed.parts[position]);
    made.depth = std::max(made.depth, placed.depth);
  }
  const bool is_same = std::ranges::equal(sources, graph_.sources(node));
  made.parts = {is_same ? node : graph_.with_sources(node, sources)};
  return made;
}

/// The part that a position has of a value that is not sharded, on the position's device.
Id Lowering::cut_of(const Mesh& mesh, Id value, const Spec& wanted, uint32_t position) {
  const auto sizes = shapes_[value];
  const std::vector<int64_t> shape(sizes.begin(), sizes.end());
  Id part = value;
  for (size_t d = 0; d < shape.size(); ++d)
    part = build_.slice(part, d, part_of(mesh, wanted.dims[d], shape[d], position));
  if (wanted.partial != 0 && mesh.index(position, wanted.partial) != 0)
    part = build_.identity(wanted.reduction, graph_[part].dtype, build_.shape(part));
  return build_.on(part, mesh.places[position].device);
}

Lowering::Placed Lowering::source_on(const Mesh& mesh, Id source, const Spec& wanted) {
  if (mesh_of(source) == nullptr) {
    const Placed& whole = lowered_.at(source);
    Placed cut{std::vector<Id>(mesh.size(), kNoId), whole.depth};
    for (uint32_t position = 0; position < mesh.size(); ++position)
      if (mesh.is_here(position))
        cut.parts[position] = cut_of(mesh, whole.parts[0], wanted, position);
    return cut;
  }
  if (known_.at(source).result == wanted) return lowered_.at(source);
  const KeyOfReshard key{source, wanted};
  if (const auto known = resharded_.find(key); known != resharded_.end()) return known->second;
  auto below = moved_below(mesh, source, wanted);
  Placed made = below ? *std::move(below) : resharded(mesh, source, wanted);
  return resharded_.emplace(key, std::move(made)).first->second;
}

/// A computed value moves when it is computed, which may be long before a view of it is recorded, as
/// the optimiser's of a gradient; a stored one when it is first read.
int64_t Lowering::place_of(Id source) const {
  Id id = source;
  while (!owner_.is_stored(id) && (is_movement(graph_[id].op) || graph_[id].op == Op::Detach))
    id = graph_.sources(id)[0];
  if (owner_.is_stored(id)) id = reader_;
  return id == kNoId ? next_place_ : places_.at(id);
}

std::vector<int64_t> Lowering::shape_of(Id node) {
  const auto sizes = shapes_[node];
  return {sizes.begin(), sizes.end()};
}

Lowering::Placed Lowering::resharded(const Mesh& mesh, Id source, const Spec& wanted) {
  const Spec& own = known_.at(source).result;
  const Placed& from = lowered_.at(source);
  Collectives collectives(build_, mesh, {place_of(source), from.depth}, made_);
  const auto moves = static_cast<int64_t>(movements(own, wanted).size());
  return {collectives.reshard(from.parts, own, wanted, shape_of(source)), from.depth + moves};
}

/// A copy from another mesh.
Lowering::Placed Lowering::copied(const Mesh& from, const Mesh& to, Id source, const Spec& spec) {
  const Placed placed = source_on(from, source, spec);
  Transfers transfers(build_, {place_of(source), placed.depth}, made_, shape_of(source));
  return {transfers.between(from, to, placed.parts, spec, graph_[source].dtype), placed.depth + 1};
}

/// The spec of a view's source if it moves in place of the view.
std::optional<Spec> Lowering::spec_below(const Mesh& mesh, Id view, const Spec& wanted) {
  if (owner_.is_stored(view) || !is_movement(graph_[view].op)) return std::nullopt;
  const Id source = graph_.sources(view)[0];
  if (mesh_of(source) == nullptr) return std::nullopt;
  const auto sizes = shapes_[view];
  const std::vector<int64_t> shape(sizes.begin(), sizes.end());
  const Operand operand_of_view = operand(source);
  return source_spec({graph_, view, shape, std::span(&operand_of_view, 1), mesh, false}, wanted);
}

/// A view with another spec, as the view of its source with another one.
std::optional<Lowering::Placed> Lowering::moved_below(const Mesh& mesh, Id view,
                                                      const Spec& wanted) {
  const auto spec = spec_below(mesh, view, wanted);
  if (!spec) return std::nullopt;
  Placed moved = source_on(mesh, graph_.sources(view)[0], *spec);
  for (uint32_t position = 0; position < mesh.size(); ++position) {
    const Id part = moved.parts[position];
    if (mesh.is_here(position))
      moved.parts[position] = local_node(mesh, view, wanted, std::span(&part, 1), position);
  }
  return moved;
}

Lowering::Placed Lowering::lowered_on(const Mesh& mesh, Id node) {
  const Propagation propagation = known_.at(node);
  const std::vector<Id> sources(graph_.sources(node).begin(), graph_.sources(node).end());
  const Op op = graph_[node].op;
  if (op == Op::Function && !is_range_check(graph_[node]))
    return lowered_.at(sources[0]);  // the others serve gradients
  if (const Mesh* const from = mesh_of(sources.empty() ? node : sources[0]);
      op == Op::Copy && from != nullptr && from != &mesh)
    return copied(*from, mesh, sources[0], propagation.sources[0]);
  std::vector<Placed> by_source;
  int64_t depth = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    require(mesh_of(sources[i]) == nullptr || devices_[sources[i]] == mesh.device,
            "[{}] tensors are on two meshes; bring one to a device with unshard(), then shard() it",
            op_info(op).name);
    by_source.push_back(source_on(mesh, sources[i], propagation.sources[i]));
    depth = std::max(depth, by_source.back().depth);
  }
  if (op == Op::Shard || op == Op::Copy) return by_source[0];
  std::vector<Id> parts(mesh.size(), kNoId);
  for (uint32_t position = 0; position < mesh.size(); ++position) {
    if (!mesh.is_here(position)) continue;
    std::vector<Id> local;
    for (const Placed& source : by_source) local.push_back(source.parts[position]);
    parts[position] = local_node(mesh, node, propagation.result, local, position);
  }
  return {std::move(parts), depth};
}

/// The node over the parts of its sources: its shapes are those of the position's parts.
Id Lowering::local_node(const Mesh& mesh, Id node, const Spec& spec, std::span<const Id> sources,
                        uint32_t position) {
  const Op op = graph_[node].op;
  if (op == Op::Reshape || op == Op::Expand) {
    const auto sizes = shapes_[node];
    const std::vector<int64_t> shape(sizes.begin(), sizes.end());
    return build_.move(op, sources[0], local_shape(mesh, spec, shape, position));
  }
  if (op == Op::Shrink) {
    std::vector<int64_t> box(graph_.arg_list(node).begin(), graph_.arg_list(node).end());
    const std::vector<int64_t> local = build_.shape(sources[0]);
    for (size_t d = 0; d < local.size(); ++d)
      if (spec.dims[d] != 0) box[2 * d + 1] = local[d];
    return build_.move(op, sources[0], box);
  }
  return graph_.with_sources(node, sources);
}

/// The collectives that give `node` another spec. A value that several nodes read moves once.
void Lowering::add_movements(const Mesh& mesh, Id node, const Spec& wanted,
                             std::set<KeyOfReshard>& seen, std::vector<ValueMovement>& moves) {
  KeyOfReshard moved{node, wanted};
  while (known_.at(moved.node).result != moved.spec) {
    const auto below = spec_below(mesh, moved.node, moved.spec);
    if (!below) break;
    moved = {graph_.sources(moved.node)[0], *below};
  }
  if (!seen.insert(moved).second) return;
  for (const Movement& move : movements(known_.at(moved.node).result, moved.spec))
    moves.push_back({move.kind, move.along, moved.node, bytes_to_move(moved.node)});
}

std::vector<ShardedNode> Lowering::sharded_nodes(std::span<const Id> nodes,
                                                 std::span<const Id> roots) {
  std::set<KeyOfReshard> seen;
  std::vector<ShardedNode> made;
  for (const Id id : nodes) {
    const auto sources = graph_.sources(id);
    const Mesh* const mesh = mesh_of(id);
    if (mesh == nullptr) {
      const Mesh* const from =
          graph_[id].op == Op::Copy && !owner_.is_stored(id) ? mesh_of(sources[0]) : nullptr;
      if (from == nullptr) continue;
      ShardedNode whole{id, from, Spec::replicated(shapes_[id].size()), {}, {}};
      add_movements(*from, sources[0], whole.spec, seen, whole.before);
      made.push_back(std::move(whole));
      continue;
    }
    const Propagation& propagation = known_.at(id);
    ShardedNode node{id, mesh, propagation.result, {}, {}};
    for (size_t i = 0; i < propagation.sources.size(); ++i)
      if (mesh_of(sources[i]) != nullptr)
        add_movements(*mesh, sources[i], propagation.sources[i], seen, node.before);
    if (std::ranges::find(roots, id) != roots.end()) {
      Spec stored = node.spec;
      stored.partial = 0;
      stored.reduction = Op::Add;
      add_movements(*mesh, id, stored, seen, node.after);
    }
    made.push_back(std::move(node));
  }
  return made;
}

std::string Lowering::describe(Id node, bool fast_math) {
  spec(node, fast_math);
  const auto ends = [&](Id id) { return mesh_of(id) == nullptr || owner_.is_stored(id); };
  const std::vector<Id> nodes = reachable_.from(graph_, std::span(&node, 1), ends);
  std::string text;
  const auto add = [&](const Mesh& mesh, std::span<const ValueMovement> moves) {
    for (const ValueMovement& move : moves)
      text += fmt::format("    {} %{} along {}: {} bytes\n", name_of(move.kind), move.value,
                          names_of(mesh, move.along), move.bytes);
  };
  for (const ShardedNode& value : sharded_nodes(nodes, std::span(&node, 1))) {
    if (text.empty()) text = fmt::format("mesh {}\n", to_string(*value.mesh));
    add(*value.mesh, value.before);
    text += fmt::format("  %{} {} {} ({}) {}\n", value.id, op_info(graph_[value.id].op).name,
                        plugrad::name_of(graph_[value.id].dtype),
                        fmt::join(shapes_[value.id], ", "), to_string(*value.mesh, value.spec));
    add(*value.mesh, value.after);
  }
  return text;
}

std::vector<ShardedNode> Lowering::lowered_values() {
  std::vector<Id> nodes;
  for (const auto& [node, placed] : lowered_) nodes.push_back(node);
  std::ranges::sort(nodes);
  return sharded_nodes(nodes, roots_);
}

std::unordered_map<Id, PartOf> Lowering::lowered_parts() {
  std::unordered_map<Id, PartOf> parts;
  const auto add = [&](Id whole, const Spec& spec, std::span<const Id> placed) {
    for (uint32_t position = 0; position < placed.size(); ++position)
      if (placed[position] != kNoId)
        parts.try_emplace(placed[position], PartOf{whole, spec, position});
  };
  for (const ShardedNode& value : lowered_values())
    if (mesh_of(value.id) != nullptr) add(value.id, value.spec, lowered_.at(value.id).parts);
  for (const auto& [key, placed] : resharded_) add(key.node, key.spec, placed.parts);
  return parts;
}

}  // namespace plugrad::sharding

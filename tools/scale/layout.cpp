#include "scale/layout.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "base/check.h"
#include "base/settings.h"
#include "base/text.h"
#include "sharding/lowering.h"

namespace plugrad::tools::scale {
namespace {

using sharding::AxisSet;
using sharding::Mesh;

constexpr uint32_t kMesh = 2;  // device number of values on the mesh

/// The spec with its first dimension that is not cut, cut along `axes`; itself if there is none, or
/// if one of the axes cuts it already.
sharding::Spec cut_further(sharding::Spec spec, AxisSet axes) {
  if ((spec.cut() & axes) != 0) return spec;
  if (const auto free = std::ranges::find(spec.dims, AxisSet{0}); free != spec.dims.end())
    *free = axes;
  return spec;
}

std::vector<int64_t> buffer_list(size_t number, uint32_t device, std::span<const int64_t> shape) {
  std::vector<int64_t> list = {static_cast<int64_t>(number), device};
  list.insert(list.end(), shape.begin(), shape.end());
  return list;
}

/// Copies the program onto the mesh, and lowers it to the mesh's own position.
class Builder {
 public:
  Builder(const Program& program, const Mesh& mesh, const Layout& layout)
      : program_(program), mesh_(mesh), shapes_(part_.graph), devices_(part_.graph) {
    for (size_t leaf = 0; leaf < program.leaves.size(); ++leaf) {
      specs_.push_back(spec_of(program, layout, leaf));
      const auto local =
          sharding::local_shape(mesh, specs_[leaf], program.leaves[leaf].shape, mesh.first_here());
      const uint64_t elements = static_cast<uint64_t>(element_count(local));
      part_.bytes.push_back(
          program.leaves[leaf].node == kNoId ? 0 : elements * size_of(program.leaves[leaf].dtype));
    }
  }

  Part build() {
    copy();
    sharding::Lowering lowering(
        part_.graph, shapes_, devices_,
        {.mesh = [this](uint32_t device) { return device == kMesh ? &mesh_ : nullptr; },
         .is_stored = [this](Id id) { return part_.graph[id].op == Op::Buffer; },
         .stored_spec = [this](Id id) { return specs_[buffer_number(part_.graph, id)]; },
         .stored_parts = [this](Id id) { return parts_of(id); },
         .note_made = {},
         .has_meshes_of_some = {}});
    const bool fast_math = settings().fast_math;
    const uint32_t here = mesh_.first_here();
    std::vector<Id> roots;
    for (const auto& lowered : lowering.lower(roots_on_mesh(), fast_math))
      roots.push_back(lowered.parts[lowered.parts.size() == mesh_.size() ? here : 0]);
    take_roots(std::move(roots), lowering.between_processes());
    return std::move(part_);
  }

 private:
  /// The program's nodes; inputs are on the mesh, copies between devices are gone.
  void copy() {
    Graph& graph = part_.graph;
    new_id_.assign(program_.graph.size(), kNoId);
    const std::unordered_map<Id, size_t> to_state(program_.to_state.begin(),
                                                  program_.to_state.end());
    Reachable reachable;
    for (const Id id : reachable.from(program_.graph, program_.roots)) {
      const Node& node = program_.graph[id];
      std::vector<Id> sources;
      for (const Id source : program_.graph.sources(id)) sources.push_back(new_id_[source]);
      if (node.op == Op::Copy) {
        new_id_[id] = sources[0];
        continue;
      }
      uint64_t arg = node.arg;
      if (node.op == Op::Buffer) {
        const size_t number = buffer_number(program_.graph, id);
        arg = graph.list(buffer_list(number, kMesh, program_.leaves[number].shape));
      } else if (op_info(node.op).arg == ArgKind::List) {
        arg = graph.list(program_.graph.arg_list(id));
      }
      new_id_[id] = graph.add(node.op, node.dtype, sources, arg);
      if (const auto state = to_state.find(id);
          state != to_state.end() && devices_[new_id_[id]] == kMesh)
        new_id_[id] = on_mesh(new_id_[id], specs_[state->second]);
    }
  }

  Id on_mesh(Id value, const sharding::Spec& spec) {
    const auto arg = sharding::shard_arg(mesh_, spec);
    return part_.graph.add(Op::Shard, part_.graph[value].dtype, {value}, part_.graph.list(arg));
  }

  /// A tensor that is assigned to keeps its spec.
  std::vector<Id> roots_on_mesh() {
    std::vector<Id> roots;
    for (const Id root : program_.roots) roots.push_back(new_id_[root]);
    for (size_t leaf = 0; leaf < program_.leaves.size(); ++leaf)
      if (const auto root = program_.leaves[leaf].root; root && devices_[roots[*root]] == kMesh)
        roots[*root] = on_mesh(roots[*root], specs_[leaf]);
    return roots;
  }

  std::vector<Id> parts_of(Id buffer) {
    const size_t number = buffer_number(part_.graph, buffer);
    const uint32_t here = mesh_.first_here();
    const auto local =
        sharding::local_shape(mesh_, specs_[number], program_.leaves[number].shape, here);
    std::vector<Id> parts(mesh_.size(), kNoId);
    parts[here] = part_.graph.add(Op::Buffer, part_.graph[buffer].dtype, {},
                                  part_.graph.list(buffer_list(number, kDevice, local)));
    return parts;
  }

  /// All positions run all collectives, also those that this one does not need.
  void take_roots(std::vector<Id> roots, const std::vector<Id>& collectives) {
    Reachable reachable;
    const std::vector<Id> needed = reachable.from(part_.graph, roots);
    for (const Id collective : collectives)
      if (!std::ranges::binary_search(needed, collective)) roots.push_back(collective);
    for (const Id id : reachable.from(part_.graph, roots)) {
      if (part_.graph[id].op != Op::Buffer) continue;
      part_.inputs.push_back(id);
      part_.leaves.push_back(buffer_number(part_.graph, id));
    }
    part_.roots = std::move(roots);
  }

  const Program& program_;
  const Mesh& mesh_;
  Part part_;
  Shapes shapes_;
  Devices devices_;
  std::vector<sharding::Spec> specs_;  // by leaf
  std::vector<Id> new_id_;             // by node of the program
};

}  // namespace

Layout replicated(const Program& program) {
  Layout layout;
  for (const Group& group : program.groups)
    layout.groups.emplace_back(group.shape.size(), AxisSet{0});
  return layout;
}

std::vector<std::pair<std::string, int64_t>> parse_axes(const std::string& text) {
  std::vector<std::pair<std::string, int64_t>> axes;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string axis = text.substr(begin, end - begin);
    const size_t equals = std::min(axis.find('='), axis.size());
    const std::string size = axis.substr(std::min(equals + 1, axis.size()));
    int64_t count = 0;
    const auto [stop, error] = std::from_chars(size.data(), size.data() + size.size(), count);
    require(equals > 0 && error == std::errc() && stop == size.data() + size.size() &&
                !size.empty() && count >= 1,
            "[plan-scale] --mesh {}: \"{}\" is no axis; an axis is NAME=SIZE, such as data=8", text,
            axis);
    axes.emplace_back(axis.substr(0, equals), count);
    begin = end + 1;
  }
  return axes;
}

Mesh make_mesh(const std::vector<std::pair<std::string, int64_t>>& axes, uint64_t most,
               const std::string& machine) {
  constexpr size_t kMostAxes = 32;  // bits of an AxisSet
  require(axes.size() <= kMostAxes, "[plan-scale] a mesh has at most {} axes", kMostAxes);
  Mesh mesh;
  uint64_t size = 1;
  for (const auto& [name, count] : axes) {
    require(std::ranges::find(mesh.axes, name) == mesh.axes.end(),
            "[plan-scale] the mesh names the axis {} twice", name);
    mesh.axes.push_back(name);
    mesh.sizes.push_back(count);
    size = size > most ? size : size * static_cast<uint64_t>(count);
  }
  require(size <= most, "[plan-scale] the mesh has more positions than {} has devices, {}", machine,
          most);
  for (uint32_t position = 0; position < size; ++position)
    mesh.places.push_back({.rank = position, .device = kDevice});
  mesh.rank = static_cast<uint32_t>(size) - 1;
  mesh.device = kMesh;
  return mesh;
}

sharding::Spec spec_of(const Program& program, const Layout& layout, size_t number) {
  const Leaf& leaf = program.leaves[number];
  sharding::Spec spec = sharding::Spec::replicated(leaf.shape.size());
  if (leaf.role == Role::Batch) spec.dims[0] = layout.batch;
  if (leaf.role == Role::Parameter) spec.dims = layout.groups[*leaf.group];
  if (leaf.role == Role::State) {
    spec.dims = layout.groups[*program.leaves[*leaf.parameter].group];
    if (layout.state != 0) spec = cut_further(std::move(spec), layout.state);
  }
  return spec;
}

Part part_of(const Program& program, const Mesh& mesh, const Layout& layout) {
  return Builder(program, mesh, layout).build();
}

}  // namespace plugrad::tools::scale

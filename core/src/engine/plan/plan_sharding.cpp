#include "engine/plan/plan_sharding.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/trace/json_line.h"
#include "engine/session_state.h"

namespace plugrad::engine {
namespace {

using sharding::Mesh;
using trace::JsonLine;

class Writer {
 public:
  Writer(const SessionState& state, const Graph& graph, Shapes& shapes)
      : state_(state), graph_(graph), shapes_(shapes) {}

  std::string value(const sharding::ShardedNode& node) {
    return JsonLine()
        .add("id", node.id)
        .add("op", op_info(graph_[node.id].op).name)
        .add("dtype", name_of(graph_[node.id].dtype))
        .add_list("shape", shapes_[node.id])
        .add_list("sources", graph_.sources(node.id))
        .add("operation", state_.operations.of(node.id))
        .add("mesh", number(*node.mesh))
        .add("spec", to_string(*node.mesh, node.spec))
        .add_raw("before", moves(*node.mesh, node.before))
        .add_raw("after", moves(*node.mesh, node.after))
        .str();
  }

  std::string meshes() const {
    std::vector<std::string> list;
    for (const Mesh* mesh : meshes_) list.push_back(text(*mesh));
    return fmt::format("[{}]", fmt::join(list, ","));
  }

 private:
  size_t number(const Mesh& mesh) {
    const auto known = std::ranges::find(meshes_, &mesh);
    const auto number = static_cast<size_t>(known - meshes_.begin());
    if (known == meshes_.end()) meshes_.push_back(&mesh);
    return number;
  }

  std::string text(const Mesh& mesh) const {
    std::vector<uint32_t> ranks;
    std::vector<std::string> devices;  // JSON strings; empty ones of other processes
    for (uint32_t position = 0; position < mesh.size(); ++position) {
      ranks.push_back(mesh.places[position].rank);
      trace::append_json_string(
          devices.emplace_back(),
          mesh.is_here(position) ? state_.devices.name(mesh.places[position].device) : "");
    }
    return JsonLine()
        .add("axes", to_string(mesh))
        .add_list("ranks", ranks)
        .add_list("devices", devices)
        .str();
  }

  static std::string moves(const Mesh& mesh, const std::vector<sharding::ValueMovement>& moves) {
    std::vector<std::string> list;
    for (const sharding::ValueMovement& move : moves)
      list.push_back(JsonLine()
                         .add("kind", name_of(move.kind))
                         .add("value", move.value)
                         .add("along", names_of(mesh, move.along))
                         .add("bytes", move.bytes)
                         .str());
    return fmt::format("[{}]", fmt::join(list, ","));
  }

  const SessionState& state_;
  const Graph& graph_;
  Shapes& shapes_;
  std::vector<const Mesh*> meshes_;
};

std::vector<PlanSharding::Part> parts_of(sharding::Lowering& lowering, const SessionState& state,
                                         const std::vector<sharding::ShardedNode>& nodes,
                                         const schedule::ScheduledGraph& scheduled) {
  std::unordered_map<Id, const Mesh*> meshes;
  for (const sharding::ShardedNode& node : nodes) meshes.emplace(node.id, node.mesh);
  const auto known = lowering.lowered_parts();
  std::vector<PlanSharding::Part> parts;
  for (const auto& value : scheduled.values) {
    const Id walked = value.source == kNoId ? kNoId : state.walked[value.source];
    const auto part = walked == kNoId ? known.end() : known.find(walked);
    if (part == known.end()) {
      parts.emplace_back();
      continue;
    }
    const sharding::PartOf& of = part->second;
    parts.push_back({of.whole, of.position, to_string(*meshes.at(of.whole), of.spec)});
  }
  return parts;
}

}  // namespace

std::shared_ptr<const PlanSharding> plan_sharding(sharding::Lowering& lowering,
                                                  const SessionState& state, const Graph& graph,
                                                  Shapes& shapes,
                                                  const schedule::ScheduledGraph& scheduled) {
  const std::vector<sharding::ShardedNode> nodes = lowering.lowered_values();
  if (nodes.empty()) return nullptr;
  auto made = std::make_shared<PlanSharding>();
  Writer writer(state, graph, shapes);
  std::vector<std::string> values;
  for (const sharding::ShardedNode& node : nodes) values.push_back(writer.value(node));
  made->values = fmt::format("[{}]", fmt::join(values, ","));
  made->meshes = writer.meshes();
  made->parts = parts_of(lowering, state, nodes, scheduled);
  return made;
}

}  // namespace plugrad::engine

// Layout: the number of nodes; for each node op, dtype, number of sources, the sources, then the arg
// or, for a list, its length and its numbers.
#include "engine/plan/graph_bytes.h"

#include <stdexcept>

#include "ir/facts.h"

namespace plugrad::engine {
namespace {

void require_valid(bool condition) {
  if (!condition) throw std::out_of_range("no graph");
}

uint64_t get_list(ByteReader& from, Graph& graph) {
  std::vector<int64_t> list;
  for (auto left = from.get<uint32_t>(); left > 0 && from.is_whole(); --left)
    list.push_back(from.get<int64_t>());
  return graph.list(list);
}

void get_node(ByteReader& from, Graph& graph) {
  const auto op = from.get<Op>();
  const auto dtype = from.get<DType>();
  const auto source_count = from.get<uint16_t>();
  const OpInfo& info = op_info(op);
  require_valid(info.known && name_of(dtype) != "unknown");
  std::vector<Id> sources;
  for (uint32_t i = 0; i < source_count; ++i) {
    sources.push_back(from.get<Id>());
    require_valid(sources.back() < graph.size());
  }
  const uint64_t arg = info.arg == ArgKind::List ? get_list(from, graph) : from.get<uint64_t>();
  const Id next = graph.size();
  require_valid(from.is_whole() && graph.add(op, dtype, sources, arg) == next);
}

}  // namespace

void put_graph(ByteWriter& to, const Graph& graph, Id root) {
  Reachable reachable;
  const std::vector<Id>& nodes = reachable.from(graph, std::span(&root, 1));
  std::vector<Id> number_of(graph.size(), kNoId);
  to.put(static_cast<uint32_t>(nodes.size()));
  for (uint32_t number = 0; number < nodes.size(); ++number) {
    const Node& node = graph[nodes[number]];
    number_of[nodes[number]] = number;
    to.put(node.op).put(node.dtype).put(node.src_count);
    for (const Id source : graph.sources(node)) to.put(number_of[source]);
    if (op_info(node.op).arg != ArgKind::List) {
      to.put(node.arg);
      continue;
    }
    const auto list = graph.list(static_cast<ListId>(node.arg));
    to.put(static_cast<uint32_t>(list.size()));
    for (const int64_t value : list) to.put(value);
  }
}

Id get_graph(ByteReader& from, Graph& graph) {
  const auto count = from.get<uint32_t>();
  require_valid(count > 0);
  while (graph.size() < count) get_node(from, graph);
  graph.trim();
  return count - 1;
}

}  // namespace plugrad::engine

#include "engine/recording/recorded_nodes.h"

#include <algorithm>

#include "ir/facts.h"

namespace plugrad::engine {
namespace {

// Whether an equal node may stand for it in every other call.
bool is_copied(const Node& node) {
  switch (node.op) {
    case Op::Buffer:
    case Op::Function:
    case Op::UserKernel:
    case Op::Bounded:
    case Op::Copy:
    case Op::Shard:
    case Op::Collective:
    case Op::Scalar:
      return false;
    case Op::Contiguous:
    case Op::Detach:
      return node.arg == 0;
    default:
      return true;
  }
}

}  // namespace

std::optional<RecordedNodes> RecordedNodes::between(const Graph& graph,
                                                    std::span<const Id> operands,
                                                    std::span<const Id> results) {
  const auto is_operand = [&](Id id) { return std::ranges::find(operands, id) != operands.end(); };
  Reachable reachable;
  RecordedNodes made;
  std::vector<std::pair<Id, uint32_t>> number_of;  // ascending ids
  const auto find = [&](Id id) {
    const auto operand = std::ranges::find(operands, id);
    if (operand != operands.end()) return static_cast<uint32_t>(operand - operands.begin());
    return std::ranges::lower_bound(number_of, id, {}, &std::pair<Id, uint32_t>::first)->second;
  };
  for (const Id id : reachable.from(graph, results, is_operand)) {
    if (is_operand(id)) continue;
    const Node& node = graph[id];
    if (!is_copied(node)) return {};
    Row row{node.op, node.dtype, node.src_count, static_cast<uint32_t>(made.sources_.size()),
            node.arg};
    for (const Id source : graph.sources(node)) made.sources_.push_back(find(source));
    if (op_info(node.op).arg == ArgKind::List) {
      const auto list = graph.arg_list(id);
      row.arg = made.lists_.size();
      made.lists_.emplace_back(list.begin(), list.end());
    }
    number_of.emplace_back(id, static_cast<uint32_t>(operands.size() + made.rows_.size()));
    made.rows_.push_back(row);
  }
  for (const Id result : results) made.results_.push_back(find(result));
  return made;
}

std::span<const Id> RecordedNodes::add_to(Graph& graph, uint64_t graph_number,
                                          std::span<const Id> operands) {
  if (known_graph_ != graph_number || list_ids_.size() != lists_.size()) {
    list_ids_.clear();
    for (const auto& list : lists_) list_ids_.push_back(graph.list(list));
    known_graph_ = graph_number;
  }
  added_.assign(operands.begin(), operands.end());
  std::vector<Id> sources;
  for (const Row& row : rows_) {
    sources.clear();
    for (uint32_t i = 0; i < row.source_count; ++i)
      sources.push_back(added_[sources_[row.first_source + i]]);
    const bool has_list = op_info(row.op).arg == ArgKind::List;
    added_.push_back(
        graph.add(row.op, row.dtype, sources, has_list ? list_ids_[row.arg] : row.arg));
  }
  return added_;
}

uint64_t RecordedNodes::size_bytes() const {
  uint64_t bytes = sizeof *this + rows_.size() * (sizeof(Row) + sizeof(Id)) +
                   (sources_.size() + results_.size()) * sizeof(uint32_t);
  for (const auto& list : lists_) bytes += sizeof list + list.size() * sizeof(int64_t);
  return bytes;
}

}  // namespace plugrad::engine

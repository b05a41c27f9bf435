#include "ir/facts.h"

#include <algorithm>

#include "ir/round.h"
#include "ir/user.h"

namespace plugrad {
namespace {

ListId padded_shape(Graph& g, std::span<const int64_t> shape, std::span<const int64_t> pads) {
  std::vector<int64_t> out(shape.begin(), shape.end());
  for (size_t i = 0; i < out.size(); ++i) out[i] += pads[2 * i] + pads[2 * i + 1];
  return g.list(out);
}

ListId shrunk_shape(Graph& g, std::span<const int64_t> bounds) {
  std::vector<int64_t> out(bounds.size() / 2);
  for (size_t i = 0; i < out.size(); ++i) out[i] = bounds[2 * i + 1] - bounds[2 * i];
  return g.list(out);
}

ListId permuted_shape(Graph& g, std::span<const int64_t> shape, std::span<const int64_t> order) {
  std::vector<int64_t> out(order.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = shape[static_cast<size_t>(order[i])];
  return g.list(out);
}

ListId reduced_shape(Graph& g, std::span<const int64_t> shape,
                     std::span<const int64_t> op_and_axes) {
  std::vector<int64_t> out(shape.begin(), shape.end());
  for (int64_t axis : op_and_axes.subspan(1)) out[static_cast<size_t>(axis)] = 1;
  return g.list(out);
}

}  // namespace

ListId Shapes::id(Id node) {
  while (by_id_.size() <= node) by_id_.push_back(compute(static_cast<Id>(by_id_.size())));
  return by_id_[node];
}

ListId Shapes::compute(Id node) {
  const Node& n = graph_[node];
  const auto first = [&] { return graph_.list(by_id_[graph_.sources(n)[0]]); };
  switch (n.op) {
    case Op::Buffer: {
      const auto list = graph_.arg_list(node).subspan(2);
      return graph_.list(std::vector<int64_t>(list.begin(), list.end()));
    }
    case Op::Function:
      return by_id_[graph_.sources(n)[0]];
    case Op::UserKernel: {
      const UserKernelArg arg(graph_.arg_list(node));
      const auto shape = arg.form(arg.output()).shape;
      return graph_.list(std::vector<int64_t>(shape.begin(), shape.end()));
    }
    case Op::Iota:
      return graph_.list({static_cast<int64_t>(n.arg)});
    case Op::Reshape:
    case Op::Expand:
      return static_cast<ListId>(n.arg);
    case Op::Permute:
      return permuted_shape(graph_, first(), graph_.arg_list(node));
    case Op::Pad:
      return padded_shape(graph_, first(), graph_.arg_list(node));
    case Op::Shrink:
      return shrunk_shape(graph_, graph_.arg_list(node));
    case Op::Window: {
      const auto from = graph_.list(by_id_[graph_.sources(n)[0]]), list = graph_.arg_list(node);
      std::vector<int64_t> shape(from.begin(), from.end());
      shape[static_cast<size_t>(list[0])] = list[1];
      return graph_.list(shape);
    }
    case Op::Collective: {
      const auto list = graph_.arg_list(node);
      const std::vector<int64_t> shape(list.begin() + 1, list.begin() + 1 + list[0]);
      return graph_.list(shape);
    }
    case Op::Reduce:
      return reduced_shape(graph_, first(), graph_.arg_list(node));
    default:
      break;
  }
  for (Id s : graph_.sources(n))
    if (!graph_.list(by_id_[s]).empty()) return by_id_[s];
  return n.src_count > 0 ? by_id_[graph_.sources(n)[0]] : graph_.list({});
}

bool is_possible_shape(std::span<const int64_t> shape) {
  int64_t count = 1;
  bool is_empty = false, overflows = false;
  for (int64_t size : shape) {
    if (size < 0) return false;
    is_empty |= size == 0;
    overflows |= __builtin_mul_overflow(count, std::max<int64_t>(size, 1), &count);
  }
  return is_empty || (!overflows && count <= kMostElements);
}

bool holds(DType dtype, int64_t value) {
  if (dtype == DType::U64) return value >= 0;
  return round_int(value, dtype) == value;
}

DType strong_dtype(const Graph& g, Id id) {
  const Node& n = g[id];
  const bool is_literal = n.op == Op::Const && n.dtype == DType::Index;
  return is_literal && !holds(DType::I32, const_int(g, id)) ? DType::I64 : strong(n.dtype);
}

uint32_t Devices::operator[](Id node) {
  while (by_id_.size() <= node) {
    const Id id = static_cast<Id>(by_id_.size());
    const Node& n = graph_[id];
    uint32_t device = 0;
    if (n.op == Op::Buffer)
      device = buffer_device(graph_, id);
    else if (n.op == Op::Copy)
      device = static_cast<uint32_t>(n.arg);
    else if (n.op == Op::Shard)
      device = static_cast<uint32_t>(graph_.arg_list(id)[0]);
    else if (n.op == Op::Collective)  // after the shape
      device = static_cast<uint32_t>(
          graph_.arg_list(id)[static_cast<size_t>(graph_.arg_list(id)[0]) + 1]);
    else
      for (Id s : graph_.sources(n))
        if ((device = by_id_[s]) != 0) break;
    by_id_.push_back(device);
  }
  return by_id_[node];
}

namespace {

// Whether the value follows from that of its sources to the bit, whatever surrounds the node.
bool is_exact(Op op) {
  return is_movement(op) || op == Op::Where || op == Op::Max || op == Op::Neg || op == Op::Cast ||
         op == Op::Bitcast || op == Op::Detach || op == Op::Bounded || op == Op::Function;
}

bool is_same_everywhere(Op op) {
  return op == Op::Buffer || op == Op::Const || op == Op::Contiguous || op == Op::Copy ||
         op == Op::UserKernel || op == Op::Collective || op == Op::Iota;
}

bool may_differ(const Graph& graph, Id id) {
  std::vector<Id> open = {id};
  constexpr int kMostNodes = 64;
  for (int seen = 0; !open.empty(); ++seen) {
    const Node& node = graph[open.back()];
    open.pop_back();
    if (!is_float(node.dtype) || is_same_everywhere(node.op)) continue;
    if (!is_exact(node.op) || seen == kMostNodes) return true;
    const auto sources = graph.sources(node);
    const size_t count = node.op == Op::Function || node.op == Op::Bounded ? 1 : sources.size();
    open.insert(open.end(), sources.begin(), sources.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return false;
}

}  // namespace

Id base_that_may_differ(const Graph& graph, Id id) {
  if (!may_differ(graph, id)) return kNoId;
  while (true) {
    const auto sources = graph.sources(id);
    const bool is_fill = graph[id].op == Op::Where && graph[sources[2]].op == Op::Const;
    if (is_fill)
      id = sources[1];
    else if (is_movement(graph[id].op))
      id = sources[0];
    else
      return id;
  }
}

Id replace_node(Graph& graph, Id root, Id from, Id to) {
  if (root == from) return to;
  if (root < from) return root;  // sources have lower ids
  std::vector<Id> sources(graph.sources(root).begin(), graph.sources(root).end());
  for (Id& source : sources) source = replace_node(graph, source, from, to);
  return std::ranges::equal(sources, graph.sources(root)) ? root
                                                          : graph.with_sources(root, sources);
}

void Reachable::begin(uint32_t size) {
  if (epoch_of_.size() < size) epoch_of_.resize(size, 0);
  ++epoch_;
  found_.clear();
  stack_.clear();  // left by a call that ran out of memory
}

bool Reachable::mark(Id id) {
  if (epoch_of_[id] == epoch_) return false;
  epoch_of_[id] = epoch_;
  return true;
}

void Reachable::finish() {
  std::ranges::sort(found_);
}

const std::vector<Id>& Reachable::from(const Graph& graph, std::span<const Id> roots) {
  return from(graph, roots, [](Id) { return false; });
}

}  // namespace plugrad

#include "engine/tape.h"

#include <algorithm>

namespace plugrad::engine {

void Tape::mark_leaf(Id id) {
  if (flags_.size() <= id) flags_.resize(id + 1);
  flags_[id] |= kLeaf;
  filled_ = std::min(filled_, id);
}

void Tape::unmark_leaf(Id id) {
  if (flags_.size() <= id) return;
  flags_[id] &= static_cast<uint8_t>(~kLeaf);
  filled_ = std::min(filled_, id);
}

void Tape::clear() {
  flags_.clear();
  filled_ = 0;
}

void Tape::fill(const Graph& graph, Id last) {
  if (flags_.size() <= last) flags_.resize(graph.size());
  for (Id id = filled_; id <= last; ++id) {
    const Node& node = graph[id];
    bool tracked = flags_[id] & kLeaf;
    if (is_float(node.dtype) && node.op != Op::Detach)
      for (Id source : graph.sources(node)) tracked |= flags_[source] & kTracked;
    flags_[id] = static_cast<uint8_t>((flags_[id] & kLeaf) | (tracked ? kTracked : 0));
  }
  filled_ = std::max(filled_, last + 1);
}

bool Tape::is_tracked(const Graph& graph, Id id) {
  if (id >= filled_) fill(graph, id);
  return flags_[id] & kTracked;
}

bool Tape::has_tracked_source(const Graph& graph, Id id) {
  const Node& node = graph[id];
  if (!is_float(node.dtype) || node.op == Op::Detach) return false;
  return std::ranges::any_of(graph.sources(node), [&](Id s) { return is_tracked(graph, s); });
}

}  // namespace plugrad::engine

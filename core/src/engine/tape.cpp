#include "engine/tape.h"

#include <algorithm>

namespace plugrad::engine {

void Tape::mark(Id id, uint8_t mark) {
  if (flags_.size() <= id) flags_.resize(id + 1);
  flags_[id] = static_cast<uint8_t>((flags_[id] & kEnded) | mark);
  has_leaves_ |= mark != 0;
  filled_ = std::min(filled_, id);
}

void Tape::mark_leaf(Id id) {
  mark(id, kLeaf);
}

void Tape::mark_earlier(Id id) {
  mark(id, kEarlier);
}

void Tape::unmark_leaf(Id id) {
  mark(id, 0);
}

void Tape::clear_leaves() {
  if (!has_leaves_) return;
  has_leaves_ = false;
  for (uint8_t& flags : flags_) flags &= kEnded;
  filled_ = 0;
}

Tape Tape::renumbered(std::span<const Id> new_id) const {
  Tape kept;
  std::vector<uint8_t>& moved = kept.flags_;
  for (Id id = 0; id < std::min(flags_.size(), new_id.size()); ++id) {
    if (new_id[id] == kNoId || !(flags_[id] & kEnded)) continue;
    if (moved.size() <= new_id[id]) moved.resize(new_id[id] + 1);
    moved[new_id[id]] = kEnded;
  }
  return kept;
}

// The kinds of leaves to which the sources of the node lead.
uint8_t Tape::below(const Graph& graph, Id id) const {
  const Node& node = graph[id];
  if (!is_float(node.dtype) || node.op == Op::Detach) return 0;
  uint8_t leads = 0;
  for (Id source : graph.sources(node)) leads |= flags_[source];
  return leads & (flags_[id] & kEnded ? kLeads : kLeads | kLeadsEarlier);
}

void Tape::fill(const Graph& graph, Id last) {
  if (flags_.size() <= last) flags_.resize(graph.size());
  for (Id id = filled_; id <= last; ++id) {
    const uint8_t marks = flags_[id] & (kLeaf | kEarlier | kEnded);
    const uint8_t own = (marks & kLeaf ? kLeads : 0) | (marks & kEarlier ? kLeadsEarlier : 0);
    flags_[id] = static_cast<uint8_t>(marks | own | below(graph, id));
  }
  filled_ = std::max(filled_, last + 1);
}

bool Tape::is_tracked(const Graph& graph, Id id) {
  if (!has_leaves_) return false;
  if (id >= filled_) fill(graph, id);
  return flags_[id] & (kLeads | kLeadsEarlier);
}

bool Tape::has_tracked_source(const Graph& graph, Id id) {
  if (!has_leaves_) return false;
  if (id >= filled_) fill(graph, id);
  return below(graph, id) != 0;
}

// Sets or clears kEnded of `id` and of the nodes below that have the other value; of none if memory
// runs out.
void Tape::set_ended(const Graph& graph, Id id, bool ended, const std::vector<bool>& except) {
  std::vector<Id> open = {id}, changed;
  const auto change = [&](Id at) { flags_[at] ^= kEnded; };
  try {
    while (!open.empty()) {
      const Id at = open.back();
      open.pop_back();
      const bool is_ended = flags_[at] & kEnded;
      if (is_ended == ended || flags_[at] & (kLeaf | kEarlier)) continue;
      if (ended && (!is_tracked(graph, at) || except[at])) continue;
      open.insert(open.end(), graph.sources(at).begin(), graph.sources(at).end());
      changed.push_back(at);
      change(at);
    }
  } catch (...) {
    std::ranges::for_each(changed, change);
    throw;
  }
  for (Id at : changed) filled_ = std::min(filled_, at);
}

void Tape::end(const Graph& graph, Id loss, const std::vector<bool>& others) {
  if (is_tracked(graph, loss)) set_ended(graph, loss, true, others);
}

void Tape::resume(const Graph& graph, Id id) {
  if (id < flags_.size() && flags_[id] & kEnded) set_ended(graph, id, false, {});
}

}  // namespace plugrad::engine

// An analysis, no rewrite.
// Facts that the choices need: who reads each node, how many elements it has, on which device it
// is.
#include "base/check.h"
#include "schedule/indexed_sums.h"

namespace plugrad::schedule {
namespace {

void check_devices(const Draft& draft, Id id) {
  if (draft.graph[id].op == Op::Copy) return;
  for (Id s : draft.graph.sources(id)) {
    const uint32_t have = draft.devices[s], want = draft.devices[id];
    require(have == 0 || have == want,
            "[{}] sources are on devices number {} and {}; move one with to(device)",
            op_info(draft.graph[id].op).name, want, have);
  }
}

/// Values without a device are computed where the first that reads them is; roots on the default
/// device.
void place_constants(Draft& draft) {
  for (Id root : draft.roots)
    if (draft.devices[root] == 0) draft.devices[root] = draft.default_device;
  for (size_t i = draft.live.size(); i-- > 0;) {
    const Id id = draft.live[i];
    if (draft.devices[id] == 0) draft.devices[id] = draft.default_device;
    if (draft.graph[id].op == Op::Copy) continue;
    for (Id s : draft.graph.sources(id))
      if (draft.devices[s] == 0) draft.devices[s] = draft.devices[id];
  }
}

/// Numbers alone are neither constant nor do they vary.
void find_constant(Draft& draft) {
  draft.constant.assign(draft.graph.size(), 0);
  if (draft.options.constants.empty()) return;
  std::vector<uint8_t> varies(draft.graph.size());
  for (const Id input : draft.inputs)
    if (input != kNoId) varies[input] = 1;
  for (const uint32_t number : draft.options.constants) {
    const Id input = draft.inputs[number];
    if (input == kNoId) continue;
    varies[input] = 0;
    draft.constant[input] = 1;
  }
  for (const Id id : draft.live) {
    const auto sources = draft.graph.sources(id);
    if (draft.graph[id].op == Op::UserKernel || draft.limits.contains(id)) varies[id] = 1;
    for (const Id s : sources) varies[id] |= varies[s];
    for (const Id s : sources) draft.constant[id] |= draft.constant[s];
    if (varies[id] != 0) draft.constant[id] = 0;
  }
}

}  // namespace

bool is_plain_view(Op op) {
  return op == Op::Reshape || op == Op::Permute || op == Op::Flip || op == Op::Shrink;
}

void link_consumers(Draft& draft) {
  const Graph& g = draft.graph;
  Reachable reachable;
  std::vector<Id> needed = draft.roots;
  for (const auto& [node, limits] : draft.limits)
    for (const Limit& limit : limits)
      for (Id leaf : leaves_of_count(g, limit.count)) needed.push_back(leaf);
  draft.live = reachable.from(g, needed);
  draft.counts.assign(g.size(), 0);
  draft.devices.assign(g.size(), 0);
  draft.requested.resize(g.size(), 0);
  auto& begin = draft.consumers.begin;
  begin.assign(g.size() + 1, 0);
  Devices devices(g);
  for (Id id : draft.live) {
    draft.counts[id] = element_count(draft.shapes[id]);
    draft.devices[id] = devices[id];
    check_devices(draft, id);
    for (Id s : g.sources(id)) ++begin[s + 1];
  }
  for (size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  draft.consumers.ids.assign(begin.back(), kNoId);
  std::vector<uint32_t> at(begin.begin(), begin.end() - 1);
  for (Id id : draft.live)
    for (Id s : g.sources(id)) draft.consumers.ids[at[s]++] = id;
  place_constants(draft);
  find_constant(draft);
  find_indexed(draft);
}

}  // namespace plugrad::schedule

// Computes the facts that later stages need: consumers, element count, device and constancy of each
// node.
#include "base/check.h"
#include "schedule/scheduler_state.h"

namespace plugrad::schedule {
namespace {

void check_devices(const SchedulerState& state, Id id) {
  if (state.graph[id].op == Op::Copy) return;
  for (Id s : state.graph.sources(id)) {
    const uint32_t have = state.devices[s], want = state.devices[id];
    require(have == 0 || have == want,
            "[{}] sources are on devices number {} and {}; move one with to(device)",
            op_info(state.graph[id].op).name, want, have);
  }
}

/// Values without a device take the device of a consumer; roots take the default device.
void assign_devices(SchedulerState& state) {
  for (const auto& [root, device] : state.constant_roots) state.devices[root] = device;
  for (Id root : state.roots)
    if (state.devices[root] == 0) state.devices[root] = state.default_device;
  for (size_t i = state.live.size(); i-- > 0;) {
    const Id id = state.live[i];
    if (state.devices[id] == 0) state.devices[id] = state.default_device;
    if (state.graph[id].op == Op::Copy) continue;
    for (Id s : state.graph.sources(id))
      if (state.devices[s] == 0) state.devices[s] = state.devices[id];
  }
}

/// Values that depend on no input are neither constant nor varying.
void find_constant(SchedulerState& state) {
  state.constant.assign(state.graph.size(), 0);
  if (state.options.constants.empty()) return;
  std::vector<uint8_t> varies(state.graph.size());
  for (const Id input : state.inputs)
    if (input != kNoId) varies[input] = 1;
  for (const uint32_t number : state.options.constants) {
    const Id input = state.inputs[number];
    if (input == kNoId) continue;
    varies[input] = 0;
    state.constant[input] = 1;
  }
  for (const Id id : state.live) {
    const auto sources = state.graph.sources(id);
    if (state.graph[id].op == Op::UserKernel || state.limits.contains(id)) varies[id] = 1;
    for (const Id s : sources) varies[id] |= varies[s];
    for (const Id s : sources) state.constant[id] |= state.constant[s];
    if (varies[id] != 0) state.constant[id] = 0;
  }
}

}  // namespace

bool is_plain_view(Op op) {
  return op == Op::Reshape || op == Op::Permute || op == Op::Flip || op == Op::Shrink ||
         op == Op::Window;
}

void make_use_lists(SchedulerState& state) {
  const Graph& g = state.graph;
  Reachable reachable;
  std::vector<Id> needed = state.roots;
  needed.insert(needed.end(), state.collectives.begin(), state.collectives.end());
  for (const auto& [node, limits] : state.limits)
    for (const Limit& limit : limits)
      for (Id leaf : leaves_of_count(g, limit.count)) needed.push_back(leaf);
  state.live = reachable.from(g, needed);
  state.counts.assign(g.size(), 0);
  state.devices.assign(g.size(), 0);
  state.requested.resize(g.size(), 0);
  auto& begin = state.consumers.begin;
  begin.assign(g.size() + 1, 0);
  Devices devices(g);
  for (Id id : state.live) {
    state.counts[id] = element_count(state.shapes[id]);
    state.devices[id] = devices[id];
    check_devices(state, id);
    for (Id s : g.sources(id)) ++begin[s + 1];
  }
  for (size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  state.consumers.ids.assign(begin.back(), kNoId);
  std::vector<uint32_t> at(begin.begin(), begin.end() - 1);
  for (Id id : state.live)
    for (Id s : g.sources(id)) state.consumers.ids[at[s]++] = id;
  assign_devices(state);
  find_constant(state);
  find_indexed(state);
}

}  // namespace plugrad::schedule

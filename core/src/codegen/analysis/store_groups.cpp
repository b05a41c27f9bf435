#include "codegen/analysis/store_groups.h"

#include <algorithm>

#include "codegen/analysis/work_items.h"
#include "codegen/kernel.h"

namespace plugrad::codegen {
namespace {

bool reads_result_of(const Graph& g, Id store, const StoreGroup& group) {
  const std::vector<Id> loads = nodes_of(g, store, Op::Load);
  return std::ranges::any_of(group.stores, [&](Id other) {
    return std::ranges::any_of(loads,
                               [&](Id load) { return g.sources(load)[0] == g.sources(other)[0]; });
  });
}

}  // namespace

std::vector<StoreGroup> store_groups(const Graph& g, OpenRanges& open, Id sink) {
  std::vector<StoreGroup> groups;
  for (Id store : g.sources(sink)) {
    const Id gate = gate_encloses(g, open, store) ? g.sources(store)[3] : kNoId;
    const auto written = std::find_if(groups.rbegin(), groups.rend(), [&](const StoreGroup& group) {
      return group.gate != gate && reads_result_of(g, store, group);
    });
    auto it = std::ranges::find(written.base(), groups.end(), gate, &StoreGroup::gate);
    if (it == groups.end()) it = groups.insert(it, {gate, {}});
    it->stores.push_back(store);
  }
  return groups;
}

}  // namespace plugrad::codegen

// Scratch arrays of a kernel graph, and the values stored in them.
//
//   Array(list: number, space, element count[, iterations that a pipelined copy runs ahead])
//   Filled(Store…, Range…)   the array after all iterations of its stores; read by Load(Filled, i)
//
// A Filled closes its ranges, like a Reduce, and is refilled in every iteration of its stores' open
// ranges. A Param may take the Array's place: a part of the output that holds other values until
// its final store. Stores may read another Filled of the same array, whose contents they replace.
#pragma once

#include "ir/graph.h"
#include "plugrad/plugin_api/kernel_ir.h"

namespace plugrad {

struct ArrayInfo {
  uint32_t number;
  uint32_t space;  // PGR_SPACE_PRIVATE or PGR_SPACE_LOCAL
  int64_t elem_count;
  int64_t ahead = 0;  // prefetch distance (codegen/transforms/transforms.h)
};
inline Id make_array(Graph& g, DType dtype, const ArrayInfo& info) {
  std::vector<int64_t> list = {info.number, info.space, info.elem_count};
  if (info.ahead > 0) list.push_back(info.ahead);
  return g.add(Op::Array, dtype, {}, g.list(list));
}
inline ArrayInfo array_info(const Graph& g, Id array) {
  const auto list = g.arg_list(array);
  return {static_cast<uint32_t>(list[0]), static_cast<uint32_t>(list[1]), list[2],
          list.size() > 3 ? list[3] : 0};
}

struct FilledParts {
  Id array;
  std::span<const Id> stores, ranges;
};
inline FilledParts filled_parts(const Graph& g, Id filled) {
  const auto sources = g.sources(filled);
  size_t stores = 0;
  while (stores < sources.size() && g[sources[stores]].op == Op::Store) ++stores;
  return {g.sources(sources[0])[0], sources.subspan(0, stores), sources.subspan(stores)};
}
/// Whether several work-items fill it together.
inline bool is_local(const Graph& g, Id filled) {
  return g[filled].op == Op::Filled &&
         array_info(g, filled_parts(g, filled).array).space == PGR_SPACE_LOCAL;
}
inline Id make_filled(Graph& g, std::span<const Id> stores, std::span<const Id> ranges) {
  std::vector<Id> sources(stores.begin(), stores.end());
  sources.insert(sources.end(), ranges.begin(), ranges.end());
  return g.add(Op::Filled, g[g.sources(stores[0])[0]].dtype, sources);
}

}  // namespace plugrad

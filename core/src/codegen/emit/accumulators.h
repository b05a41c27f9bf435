// The accumulators of reductions in kernel IR: private arrays of one value each, which compilers
// keep in registers.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "codegen/analysis/lanes.h"
#include "codegen/analysis/long_sums.h"
#include "codegen/emit/ir_writer.h"
#include "codegen/kernel.h"

namespace plugrad::codegen {

/// Numbers are those of instructions.
class Accumulators {
 public:
  Accumulators(Graph& graph, IrWriter& writer, Lanes& lanes, const pgr_device_caps& caps)
      : graph_(graph), writer_(writer), lanes_(lanes), caps_(caps) {}

  /// Begins with what a reduction over nothing gives.
  void start(Id reduce) { numbers_[reduce] = make(reduce); }
  uint32_t load(Id reduce);
  void store(Id reduce, uint32_t value);

  /// Between the two, sums of floats add up a part of their own, which begins at +0.
  void begin_parts(std::span<const Id> reduces);
  void end_parts(std::span<const Id> reduces);

 private:
  uint32_t make(Id reduce);
  uint32_t identity(Id reduce);
  void store_at(uint32_t array, Id reduce, uint32_t value);

  Graph& graph_;
  IrWriter& writer_;
  Lanes& lanes_;
  const pgr_device_caps& caps_;
  std::map<Id, uint32_t> numbers_, totals_;  // by Reduce; totals: while a part is added up
};

/// The order in which sums of products are updated where each value of some is multiplied by each
/// of others: one of the more numerous after the other, so that only the fewer stay in registers.
std::vector<Id> update_order(const Graph& g, std::span<const Id> reduces);

}  // namespace plugrad::codegen

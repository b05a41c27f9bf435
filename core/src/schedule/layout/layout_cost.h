// Estimates the cost of a kernel's loops with vectors along one of them, in vector instructions.
#pragma once

#include "cost/machine.h"
#include "schedule/layout/access_patterns.h"

namespace plugrad::schedule {

/// By stored value: its axis with stride 1.
using Innermost = std::vector<uint32_t>;
inline constexpr uint32_t kNoAxis = UINT32_MAX;  // for values of one element

/// Adds to the nest, for each vectorised loop, the register tile with the fewest loads.
void add_tiles(LoopNest& nest, const cost::Machine& machine, int64_t lanes);

class LayoutCost {
 public:
  /// The nest has tiles. `machine` outlives the object. `cache_bytes`: the largest cache of one
  /// thread; 0 if unknown.
  LayoutCost(const LoopNest& nest, const Innermost& innermost, const cost::Machine& machine,
             int64_t lanes, bool packs, uint64_t cache_bytes)
      : nest_(nest),
        innermost_(innermost),
        machine_(machine),
        lanes_(lanes),
        packs_(packs),
        cache_bytes_(cache_bytes) {}

  /// Cost with vectors along best_loop().
  double least() const;
  /// The loop with least cost for vectors; the number of loops where scalar code is best.
  size_t best_loop() const;
  /// The loop of the innermost sum in `around` to run innermost with vectors along loop `lane`: the
  /// loop with stride 1 in the largest value read. Values to be packed will have the stride of the
  /// loops. The number of loops where nothing is summed.
  size_t inner_loop(LoopSet around, size_t lane) const;
  /// Whether a copy of the value read with stride 1 along loop `lane` pays.
  bool pays_packed(const Access& access, size_t lane) const;
  /// Whether a copy of the value read, of a half type, in the compute dtype pays: processors cast
  /// with the port that multiplies, and a scalar for all lanes takes three instructions.
  bool pays_cast_copy(const Access& access, size_t lane) const;

 private:
  double total(size_t lane) const;
  LoopSet as_run(LoopSet around) const;
  double body(LoopSet around, size_t lane) const;
  double starts(LoopSet around, size_t lane) const;
  double store(size_t lane) const;
  double access_cost(const Access& access, size_t lane) const;
  double loads(const Access& access, size_t lane, bool gathers) const;
  bool gathers(const Access& access, size_t lane) const;
  /// Whether codegen packs the operand along the lanes, as for a matrix product.
  bool is_panel(const Access& access, size_t lane) const;
  /// The loop of the vectors that are read. For a sum that does not depend on `lane`: a loop of its
  /// own.
  size_t lane_of(const Access& access, size_t lane) const;
  double packed(const Access& access, size_t lane) const;
  double elements_of(const Access& access) const;
  bool is_read_often(const Access& access, double reads, bool is_matrix) const;
  double vectors(int64_t size) const;

  const LoopNest& nest_;
  const Innermost& innermost_;
  const cost::Machine& machine_;
  int64_t lanes_;
  bool packs_;  // operands may be copied
  uint64_t cache_bytes_;
};

}  // namespace plugrad::schedule

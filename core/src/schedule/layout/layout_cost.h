// What it costs to run a kernel's loops with vectors along one of them, in vector instructions.
#pragma once

#include "cost/machine.h"
#include "schedule/layout/access_patterns.h"

namespace plugrad::schedule {

/// The axis of each stored value whose neighbours are neighbours in memory.
using Innermost = std::vector<uint32_t>;
inline constexpr uint32_t kNoAxis = UINT32_MAX;  // a value of one element

/// Adds the nest's tiles: those with which as little as possible is loaded beside the arithmetic.
void add_tiles(LoopNest& nest, const cost::Machine& machine, int64_t lanes);

class LayoutCost {
 public:
  /// The nest has tiles. `machine` lives as long. `cache_bytes`: of the largest cache that a thread
  /// has for itself; 0: unknown.
  LayoutCost(const LoopNest& nest, const Innermost& innermost, const cost::Machine& machine,
             int64_t lanes, bool packs, uint64_t cache_bytes)
      : nest_(nest),
        innermost_(innermost),
        machine_(machine),
        lanes_(lanes),
        packs_(packs),
        cache_bytes_(cache_bytes) {}

  /// With vectors along the loop for which it is least.
  double least() const;
  /// That loop; the number of loops where none helps.
  size_t best_loop() const;
  /// The loop of the sum inside all of `around` that runs innermost with vectors along loop `lane`:
  /// along which the largest value read has its neighbours. What will be packed has them as the
  /// loops run. The number of loops where nothing is summed there.
  size_t inner_loop(LoopSet around, size_t lane) const;
  /// Whether the value read is worth a copy in which its elements along loop `lane` are neighbours.
  bool pays_packed(const Access& access, size_t lane) const;
  /// Whether the value read is of a half type and worth a copy of floats, cast once: processors
  /// cast with the port that multiplies, and a number for all lanes in three steps.
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
  /// Whether codegen packs what it reads along the lanes, as it does for the product of matrices.
  bool is_panel(const Access& access, size_t lane) const;
  /// The loop of the vectors that are read: of a sum that does not depend on `lane` its own.
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

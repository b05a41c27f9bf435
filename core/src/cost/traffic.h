// Estimates the cycles to move the operands of a loop nest through the caches. The nest is tiled in
// registers: each iteration reads one tile.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "cost/machine.h"

namespace plugrad::cost {

/// A step of unknown length, counted like that between neighbours.
inline constexpr int64_t kNear = std::numeric_limits<int64_t>::max();

/// The part of an array that the nest reads.
struct Operand {
  std::vector<int64_t> steps;  ///< byte stride of each loop; 0: loop-invariant
  int64_t element_bytes = 4;
  bool is_packed = false;  ///< copied in the order in which it is read
};

/// At most 64 loops.
struct Nest {
  std::vector<int64_t> sizes;  ///< iterations of each loop before tiling
  std::vector<int64_t> tile;   ///< iterations of each loop in a tile
  std::vector<size_t> order;   ///< loops, outermost first
};

/// Cycles of one core. A cache keeps the data of one iteration of a loop if it fits, counting
/// conflicts between lines a fixed stride apart; then all iterations of the loop fetch each line
/// once. Costs of levels add up: a line from memory passes through every cache.
double traffic_cycles(const Nest& nest, std::span<const Operand> operands, const Machine& machine);

/// The part of traffic_cycles() beyond fetching each line once.
double reading_again(const Nest& nest, std::span<const Operand> operands, const Machine& machine);

/// The same for a written operand: a line evicted before it is full is written back and fetched
/// again.
double writing_again(const Nest& nest, const Operand& operand, const Machine& machine);

/// Runs of `lines` lines; runs start `step` bytes apart.
struct Rows {
  double count = 1, lines = 1;
  double step = 64;
};

/// Index of the nearest cache that keeps all rows; the index of memory if none does.
size_t cache_that_keeps(const Rows& rows, const Machine& machine);

/// Cycles to read all rows again after each of them was read once.
double reading_cycles(const Rows& rows, const Machine& machine);

}  // namespace plugrad::cost

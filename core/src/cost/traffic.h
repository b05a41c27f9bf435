// How long it takes to bring the operands of a loop nest through the caches. The nest is tiled in
// registers: each turn of its loops reads a tile.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "cost/machine.h"

namespace plugrad::cost {

/// A step whose length is not known: about as near as neighbours are.
inline constexpr int64_t kNear = std::numeric_limits<int64_t>::max();

/// The part of one array that the nest reads.
struct Operand {
  std::vector<int64_t> steps;  ///< bytes from one turn of a loop to the next; 0: it stays
  int64_t element_bytes = 4;
  bool is_packed = false;  ///< copied in the order in which it is read
};

/// At most 64 loops.
struct Nest {
  std::vector<int64_t> sizes;  ///< turns of each loop, without the tile
  std::vector<int64_t> tile;   ///< how many of them the tile holds
  std::vector<size_t> order;   ///< the loops from the outermost on
};

/// Cycles, of one core. A cache keeps what one turn of a loop reads if that fits it, also where
/// lines that lie apart by the same step share its sets; then all turns of the loop read each line
/// once. Bandwidths add up: a line from memory passes every cache.
double traffic_cycles(const Nest& nest, std::span<const Operand> operands, const Machine& machine);

/// Of these the cycles beyond those in which each line comes once.
double reading_again(const Nest& nest, std::span<const Operand> operands, const Machine& machine);

/// The same of what the nest writes: a line that no cache keeps until it is full goes and comes.
double writing_again(const Nest& nest, const Operand& operand, const Machine& machine);

/// Runs of lines whose beginnings lie `step` bytes apart.
struct Rows {
  double count = 1, lines = 1;
  double step = 64;
};

/// The nearest cache that keeps them all; the place of memory among the levels for none.
size_t cache_that_keeps(const Rows& rows, const Machine& machine);

/// Cycles to read them once more, all others having been read since.
double reading_cycles(const Rows& rows, const Machine& machine);

}  // namespace plugrad::cost

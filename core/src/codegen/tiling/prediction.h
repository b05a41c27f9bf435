// Predicts the time of a kernel with its schedule from the tile model's cycles of each store, the
// bytes that move at least once, and the share of the threads that have work.
#pragma once

#include <limits>

#include "codegen/kernel.h"
#include "codegen/tiling/cost_model.h"

namespace plugrad::codegen {

struct Prediction {
  TileCycles cycles;     // of all stores, on one core
  double registers = 0;  // vectors live at once in the store that has most
  double busy = 1;       // threads that have work
  double idle = 1;       // threads, or work-items that could run at once, over those that do
  double bytes = 0;      // that are read or written at least once
  // Whether the tile fits the registers, by the model's count, and a compiler can be given the
  // code.
  bool is_possible = true;
  // Whether the tile is within the bounds of code and of streams that search keeps.
  bool is_trusted = true;

  /// Ranks schedules of one kernel; infinity for one that is not possible.
  double cost() const {
    return is_possible ? cycles.all * idle : std::numeric_limits<double>::infinity();
  }
  /// Cycles in which `threads` of the machine's threads move the bytes.
  double moving(const cost::Machine& machine, double threads) const;
  /// Seconds of one launch on so many of the machine's threads.
  double seconds(const cost::Machine& machine, double threads) const;
};

/// `bytes` are those that the kernel must read and write at least (codegen/report.h).
Prediction predict(const Kernel& kernel, int64_t bytes);

}  // namespace plugrad::codegen

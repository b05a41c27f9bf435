// Writes the instructions of software-pipelined copies (place_pipelined_tiles in transforms.h).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "codegen/analysis/access.h"
#include "codegen/emit/ir_writer.h"
#include "codegen/transforms/transforms.h"

namespace plugrad::codegen {

class CopyWriter {
 public:
  CopyWriter(const Graph& graph, const pgr_device_caps& caps, OpenRanges& open, Lanes& lanes,
             IrWriter& writer)
      : graph_(graph), caps_(caps), open_(open), lanes_(lanes), writer_(writer) {}

  /// The loop that the array's tiles are copied ahead of; kNoId for other arrays.
  Id loop(Id filled) { return pipelined_loop(graph_, open_, filled); }

  /// Writes the stores of the array's tile for an iteration.
  using Fill = std::function<void(Id filled, uint32_t iteration)>;
  /// Before the loop: the tiles of its first ahead.
  void start(std::span<const Id> arrays, uint32_t begin, uint32_t end, const Fill& fill);
  /// At the start of an iteration: waits for its tile. A barrier makes it visible to all
  /// work-items.
  void wait(std::span<const Id> arrays);
  /// After the barrier: starts the tiles of later ahead.
  void go_on(std::span<const Id> arrays, uint32_t iteration, uint32_t end, const Fill& fill);

  /// The nodes that need a value before the store is written.
  std::vector<Id> needs(Id store);
  /// Writes the store if it is an asynchronous copy; returns false otherwise.
  bool write(Id store, std::span<const uint32_t> values);

 private:
  Id load(Id store);
  bool is_asynchronous(Id filled);
  int64_t ahead(Id filled) const;
  void copy(std::span<const Id> arrays, uint32_t iteration, uint32_t end, const Fill& fill);
  uint32_t later(uint32_t iteration, int64_t ahead);
  void commit(std::span<const Id> arrays);

  const Graph& graph_;
  const pgr_device_caps& caps_;
  OpenRanges& open_;
  Lanes& lanes_;
  IrWriter& writer_;
  bool is_copying_ = false;
};

}  // namespace plugrad::codegen

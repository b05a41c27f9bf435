// Writes the instructions of copies that are made ahead (software_pipelining.h).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "codegen/analysis/lanes.h"
#include "codegen/emit/ir_writer.h"
#include "codegen/transforms/software_pipelining.h"

namespace plugrad::codegen {

class CopyWriter {
 public:
  CopyWriter(const Graph& graph, const pgr_device_caps& caps, OpenRanges& open, Lanes& lanes,
             IrWriter& writer)
      : graph_(graph), caps_(caps), open_(open), lanes_(lanes), writer_(writer) {}

  /// The loop in whose turns the array's tiles are copied ahead; kNoId for other arrays.
  Id loop(Id filled) { return pipelined_loop(graph_, open_, filled); }

  /// Writes the stores of the array's tile for the turn of this number.
  using Fill = std::function<void(Id filled, uint32_t turn)>;
  /// Before the loop: the tiles of its first turns.
  void start(std::span<const Id> arrays, uint32_t begin, uint32_t end, const Fill& fill);
  /// In each turn: its tile is there; behind a barrier, for all items.
  void wait(std::span<const Id> arrays);
  /// Then: the tiles of later turns.
  void go_on(std::span<const Id> arrays, uint32_t turn, uint32_t end, const Fill& fill);

  /// What must have a value before the store is written.
  std::vector<Id> needs(Id store);
  /// Writes the store where it is an asynchronous copy; false where it is none.
  bool write(Id store, std::span<const uint32_t> values);

 private:
  Id load(Id store);
  bool is_asynchronous(Id filled);
  int64_t turns(Id filled) const;
  void copy(std::span<const Id> arrays, uint32_t turn, uint32_t end, const Fill& fill);
  uint32_t later(uint32_t turn, int64_t turns);
  void commit(std::span<const Id> arrays);

  const Graph& graph_;
  const pgr_device_caps& caps_;
  OpenRanges& open_;
  Lanes& lanes_;
  IrWriter& writer_;
  bool is_copying_ = false;
};

}  // namespace plugrad::codegen

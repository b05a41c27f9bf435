// How a loop is opened: its bounds are numbers, data or the ends of a part.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "codegen/emit/ir_writer.h"
#include "ir/graph.h"

namespace plugrad::codegen {

class LoopWriter {
 public:
  /// `values`: the instruction of each node, those of a loop's bounds among them.
  LoopWriter(const Graph& graph, IrWriter& writer, const std::vector<uint32_t>& values)
      : graph_(graph), writer_(writer), values_(values) {}

  /// The instructions of its first iteration and of the one behind its last.
  std::pair<uint32_t, uint32_t> bounds(Id loop) const;
  uint32_t open(Id loop) const;

  /// A loop over parts of a loop, of `step` iterations each.
  uint32_t open_parts(Id loop, int64_t step) const;
  /// The loop over the part of this number.
  uint32_t open_part(Id loop, uint32_t part, int64_t step) const;

 private:
  uint32_t constant(DType dtype, int64_t n) const;

  const Graph& graph_;
  IrWriter& writer_;
  const std::vector<uint32_t>& values_;
};

}  // namespace plugrad::codegen

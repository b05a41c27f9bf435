// Writes a kernel IR block (plugin_api/kernel_ir.h): instructions, tables, constants and loops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "plugrad/dtype.h"
#include "plugrad/plugin_api/kernel_ir.h"

namespace plugrad::codegen {

struct LaunchSize {
  uint64_t group_count[3] = {1, 1, 1};
  uint32_t local_size[3] = {1, 1, 1};
};

class IrWriter {
 public:
  /// Appends an instruction and returns its number.
  uint32_t inst(uint16_t op, DType dtype, uint32_t lanes, std::span<const uint32_t> sources,
                uint64_t arg = 0);
  uint32_t inst(uint16_t op, DType dtype, uint32_t lanes, std::initializer_list<uint32_t> sources,
                uint64_t arg = 0) {
    return inst(op, dtype, lanes, std::span<const uint32_t>(sources.begin(), sources.size()), arg);
  }
  /// A scalar constant of these bits.
  uint32_t constant(DType dtype, uint64_t bits) { return inst(PGR_OP_CONST, dtype, 1, {}, bits); }
  /// Opens a block that runs if the condition holds; end_if() closes it.
  uint32_t begin_if(uint32_t condition) { return inst(PGR_OP_IF, DType::Void, 1, {condition}); }
  void end_if(uint32_t block) { inst(PGR_OP_END_IF, DType::Void, 1, {block}); }
  void barrier() { inst(PGR_OP_BARRIER, DType::Void, 1, {}); }
  /// Appends a row to the table and returns its number.
  uint32_t param(const pgr_ir_param& row);
  uint32_t array(const pgr_ir_array& row);
  uint32_t inst_count() const { return static_cast<uint32_t>(insts_.size()); }

  // The instructions so far.
  std::span<const pgr_ir_inst> insts() const { return insts_; }
  std::span<const pgr_ir_param> params() const { return params_; }
  std::span<const pgr_ir_array> arrays() const { return arrays_; }
  std::span<const uint32_t> sources(uint32_t number) const;

  std::vector<std::byte> finish(std::string_view name, const LaunchSize& size,
                                uint32_t flags) const;

 private:
  std::vector<pgr_ir_inst> insts_;
  std::vector<pgr_ir_param> params_;
  std::vector<pgr_ir_array> arrays_;
  std::vector<uint32_t> operands_;
};

/// The bits of a Const in its dtype.
uint64_t ir_bits(const Graph& g, Id id);

class LoopWriter {
 public:
  /// `values`: the instruction of each node, including the loops' bounds.
  LoopWriter(const Graph& graph, IrWriter& writer, const std::vector<uint32_t>& values)
      : graph_(graph), writer_(writer), values_(values) {}

  /// The instructions of the first index and of the end.
  std::pair<uint32_t, uint32_t> bounds(Id loop) const;
  uint32_t open(Id loop) const;

  /// Opens a loop over blocks of `step` iterations of the loop.
  uint32_t open_parts(Id loop, int64_t step) const;
  /// Opens the loop over one block.
  uint32_t open_part(Id loop, uint32_t part, int64_t step) const;

 private:
  uint32_t constant(DType dtype, int64_t n) const;

  const Graph& graph_;
  IrWriter& writer_;
  const std::vector<uint32_t>& values_;
};

}  // namespace plugrad::codegen

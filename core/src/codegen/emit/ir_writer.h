// Writes a kernel IR block (plugin_api/kernel_ir.h), instruction by instruction.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

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
  /// Appends a row to the table and returns its number.
  uint32_t param(const pgr_ir_param& row);
  uint32_t array(const pgr_ir_array& row);
  uint32_t inst_count() const { return static_cast<uint32_t>(insts_.size()); }

  // What has been written so far.
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

}  // namespace plugrad::codegen

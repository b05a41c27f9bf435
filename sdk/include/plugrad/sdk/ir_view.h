// SPDX-License-Identifier: Apache-2.0
// A validated view of one kernel IR block: the result of decode_ir satisfies every rule of
// kernel_ir.h, so that its readers need no checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plugrad/plugin_api/kernel_ir.h"
#include "plugrad/sdk/op_info.h"

namespace plugrad::sdk {

class IrView {
 public:
  const std::string& name() const { return name_; }
  bool contract() const { return (header_.flags & PGR_IR_FLAG_CONTRACT) != 0; }
  const pgr_ir_header& header() const { return header_; }

  std::span<const pgr_ir_param> params() const { return params_; }
  std::span<const pgr_ir_array> arrays() const { return arrays_; }
  std::span<const pgr_ir_inst> insts() const { return insts_; }
  const pgr_ir_inst& inst(uint32_t number) const { return insts_[number]; }

  // Instructions that `number` reads, from the record or the operand table.
  std::span<const uint32_t> sources(uint32_t number) const;
  uint32_t source(uint32_t number, uint32_t which) const { return sources(number)[which]; }

  // True if the instruction's value is a pointer: an ARRAY, or the PARAM of a buffer.
  bool is_pointer(uint32_t number) const;

  // The matching instruction: the opener for END_LOOP and END_IF, the closer for LOOP and IF; the
  // instruction itself otherwise.
  uint32_t partner(uint32_t number) const { return partners_[number]; }

 private:
  friend IrView decode_ir(std::span<const std::byte> block);
  friend class IrVerifier;
  pgr_ir_header header_{};
  std::string name_;
  std::vector<pgr_ir_param> params_;
  std::vector<pgr_ir_array> arrays_;
  std::vector<pgr_ir_inst> insts_;
  std::vector<uint32_t> operands_;
  std::vector<uint32_t> partners_;
};

// Copies the block, accepting records with additional trailing fields. Throws StatusError
// (INVALID_ARGUMENT) with the table or instruction, the value found and the values allowed.
IrView decode_ir(std::span<const std::byte> block);
IrView decode_ir(const void* block, uint64_t size_bytes);

// One line per instruction: "%7 = ADD f32x4 %3, %6".
std::string print_ir(const IrView& ir);

}  // namespace plugrad::sdk

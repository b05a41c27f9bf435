// SPDX-License-Identifier: Apache-2.0
// Builds kernel IR blocks instruction by instruction, for tests and hand-written kernels. The
// builder checks nothing; decode_ir does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "plugrad/plugin_api/kernel_ir.h"

namespace plugrad::sdk {

class IrBuilder {
 public:
  using Value = uint32_t;  // index of an instruction

  explicit IrBuilder(std::string name) : name_(std::move(name)) {}

  void set_contract(bool allowed) { contract_ = allowed; }
  void set_groups(uint64_t x, uint64_t y = 1, uint64_t z = 1) { group_count_ = {x, y, z}; }
  void set_local(uint32_t x, uint32_t y = 1, uint32_t z = 1) { local_size_ = {x, y, z}; }

  // Adds a parameter and the instruction that refers to it.
  Value buffer(uint32_t dtype, uint64_t elem_count,
               uint32_t flags = PGR_PARAM_READ | PGR_PARAM_WRITE, uint32_t align_bytes = 0);
  Value scalar(uint32_t dtype, int64_t min, int64_t max);
  Value array(uint32_t space, uint32_t dtype, uint64_t elem_count, uint32_t lanes = 1,
              uint32_t align_bytes = 0);
  // Adds only the table entry, unchecked.
  void add_param(const pgr_ir_param& param) { params_.push_back(param); }
  void add_array(const pgr_ir_array& array) { arrays_.push_back(array); }

  // One function per kind of dtype; `bits` accepts any.
  Value constant_int(uint32_t dtype, int64_t value);  // integers and bool
  Value constant_float(uint32_t dtype, double value);
  Value constant_bits(uint32_t dtype, uint64_t bits);

  Value group_id(uint32_t axis, uint32_t dtype = PGR_DTYPE_I32);
  Value local_id(uint32_t axis, uint32_t dtype = PGR_DTYPE_I32);
  Value loop(Value begin, Value end);
  void end_loop(Value loop);
  Value begin_if(Value condition);
  void end_if(Value opener);

  Value load(Value pointer, Value index, uint32_t lanes = 1);
  Value load_gated(Value pointer, Value index, Value gate, Value otherwise, uint32_t lanes = 1);
  void store(Value pointer, Value index, Value value);
  void store_gated(Value pointer, Value index, Value value, Value gate);
  void atomic_add(Value pointer, Value index, Value value);
  void barrier();
  void async_copy(Value array, Value to, Value buffer, Value from, uint32_t lanes);
  void async_copy_gated(Value array, Value to, Value buffer, Value from, Value gate,
                        uint32_t lanes);
  void async_commit();
  void async_wait(uint64_t groups);  // how many may still be in flight

  Value vector(std::initializer_list<Value> parts);
  Value splat(Value value, uint32_t lanes);
  Value lane(Value vector, uint64_t first, uint32_t lanes = 1);
  Value cast(Value value, uint32_t dtype);
  Value bitcast(Value value, uint32_t dtype);

  // An ALU op other than a cast: dtype and lanes of the result follow from the sources.
  Value alu(uint32_t op, std::initializer_list<Value> sources);

  // Appends any instruction, valid or not.
  Value emit(uint32_t op, uint32_t dtype, uint32_t lanes, std::span<const Value> sources,
             uint64_t arg = 0);
  Value emit(uint32_t op, uint32_t dtype, uint32_t lanes, std::initializer_list<Value> sources,
             uint64_t arg = 0);

  // The finished block; its size is a multiple of 8 bytes.
  std::vector<std::byte> finish() const;

 private:
  uint32_t widest(std::span<const Value> values) const;

  std::string name_;
  bool contract_ = false;
  std::array<uint64_t, 3> group_count_{1, 1, 1};
  std::array<uint32_t, 3> local_size_{1, 1, 1};
  std::vector<pgr_ir_param> params_;
  std::vector<pgr_ir_array> arrays_;
  std::vector<pgr_ir_inst> insts_;
  std::vector<uint32_t> operands_;
};

}  // namespace plugrad::sdk

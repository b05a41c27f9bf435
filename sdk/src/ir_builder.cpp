#include "plugrad/sdk/ir_builder.h"

#include <algorithm>
#include <cstring>

#include "plugrad/sdk/float_bits.h"
#include "plugrad/sdk/op_info.h"

namespace plugrad::sdk {

using Value = IrBuilder::Value;

Value IrBuilder::buffer(uint32_t dtype, uint64_t elem_count, uint32_t flags, uint32_t align_bytes) {
  params_.push_back({PGR_PARAM_BUFFER, dtype, flags, align_bytes, elem_count, 0, 0});
  return emit(PGR_OP_PARAM, dtype, 1, {}, params_.size() - 1);
}

Value IrBuilder::scalar(uint32_t dtype, int64_t min, int64_t max) {
  params_.push_back({PGR_PARAM_SCALAR, dtype, PGR_PARAM_READ, 0, 0, min, max});
  return emit(PGR_OP_PARAM, dtype, 1, {}, params_.size() - 1);
}

Value IrBuilder::array(uint32_t space, uint32_t dtype, uint64_t elem_count, uint32_t lanes,
                       uint32_t align_bytes) {
  arrays_.push_back({space, dtype, align_bytes, lanes, elem_count});
  return emit(PGR_OP_ARRAY, dtype, 1, {}, arrays_.size() - 1);
}

Value IrBuilder::constant_int(uint32_t dtype, int64_t value) {
  uint64_t bits = static_cast<uint64_t>(value);
  const DtypeInfo* info = dtype_info(dtype);
  if (info && !info->is_signed && info->size_bytes < 8)
    bits &= (uint64_t{1} << (info->size_bytes * 8)) - 1;
  return constant_bits(dtype, bits);
}

Value IrBuilder::constant_float(uint32_t dtype, double value) {
  return constant_bits(dtype, encode_float(dtype, value));
}

Value IrBuilder::constant_bits(uint32_t dtype, uint64_t bits) {
  return emit(PGR_OP_CONST, dtype, 1, {}, bits);
}

Value IrBuilder::group_id(uint32_t axis, uint32_t dtype) {
  return emit(PGR_OP_GROUP_ID, dtype, 1, {}, axis);
}
Value IrBuilder::local_id(uint32_t axis, uint32_t dtype) {
  return emit(PGR_OP_LOCAL_ID, dtype, 1, {}, axis);
}

Value IrBuilder::loop(Value begin, Value end) {
  return emit(PGR_OP_LOOP, insts_[begin].dtype, 1, {begin, end});
}
void IrBuilder::end_loop(Value loop) {
  emit(PGR_OP_END_LOOP, PGR_DTYPE_VOID, 1, {loop});
}
Value IrBuilder::begin_if(Value condition) {
  return emit(PGR_OP_IF, PGR_DTYPE_VOID, 1, {condition});
}
void IrBuilder::end_if(Value opener) {
  emit(PGR_OP_END_IF, PGR_DTYPE_VOID, 1, {opener});
}

Value IrBuilder::load(Value pointer, Value index, uint32_t lanes) {
  return emit(PGR_OP_LOAD, insts_[pointer].dtype, lanes, {pointer, index});
}
Value IrBuilder::load_gated(Value pointer, Value index, Value gate, Value otherwise,
                            uint32_t lanes) {
  return emit(PGR_OP_LOAD, insts_[pointer].dtype, lanes, {pointer, index, gate, otherwise});
}
void IrBuilder::store(Value pointer, Value index, Value value) {
  emit(PGR_OP_STORE, PGR_DTYPE_VOID, insts_[value].lanes, {pointer, index, value});
}
void IrBuilder::store_gated(Value pointer, Value index, Value value, Value gate) {
  emit(PGR_OP_STORE, PGR_DTYPE_VOID, insts_[value].lanes, {pointer, index, value, gate});
}
void IrBuilder::atomic_add(Value pointer, Value index, Value value) {
  emit(PGR_OP_ATOMIC_ADD, PGR_DTYPE_VOID, insts_[value].lanes, {pointer, index, value});
}
void IrBuilder::barrier() {
  emit(PGR_OP_BARRIER, PGR_DTYPE_VOID, 1, {});
}
void IrBuilder::async_copy(Value array, Value to, Value buffer, Value from, uint32_t lanes) {
  emit(PGR_OP_ASYNC_COPY, PGR_DTYPE_VOID, lanes, {array, to, buffer, from});
}
void IrBuilder::async_copy_gated(Value array, Value to, Value buffer, Value from, Value gate,
                                 uint32_t lanes) {
  emit(PGR_OP_ASYNC_COPY, PGR_DTYPE_VOID, lanes, {array, to, buffer, from, gate});
}
void IrBuilder::async_commit() {
  emit(PGR_OP_ASYNC_COMMIT, PGR_DTYPE_VOID, 1, {});
}
void IrBuilder::async_wait(uint64_t groups) {
  emit(PGR_OP_ASYNC_WAIT, PGR_DTYPE_VOID, 1, {}, groups);
}

Value IrBuilder::vector(std::initializer_list<Value> parts) {
  uint32_t lanes = 0;
  for (Value part : parts) lanes += insts_[part].lanes;
  return emit(PGR_OP_VECTOR, insts_[*parts.begin()].dtype, lanes, parts);
}
Value IrBuilder::splat(Value value, uint32_t lanes) {
  return emit(PGR_OP_VECTOR, insts_[value].dtype, lanes, {value});
}
Value IrBuilder::lane(Value vector, uint64_t first, uint32_t lanes) {
  return emit(PGR_OP_LANE, insts_[vector].dtype, lanes, {vector}, first);
}
Value IrBuilder::cast(Value value, uint32_t dtype) {
  return emit(PGR_OP_CAST, dtype, insts_[value].lanes, {value});
}
Value IrBuilder::bitcast(Value value, uint32_t dtype) {
  return emit(PGR_OP_BITCAST, dtype, insts_[value].lanes, {value});
}

Value IrBuilder::alu(uint32_t op, std::initializer_list<Value> sources) {
  const bool is_compare = op == PGR_OP_CMPLT || op == PGR_OP_CMPEQ || op == PGR_OP_CMPNE;
  const Value typed = *(sources.begin() + (op == PGR_OP_WHERE ? 1 : 0));
  const uint32_t dtype = is_compare ? uint32_t{PGR_DTYPE_BOOL} : insts_[typed].dtype;
  return emit(op, dtype, widest(sources), sources);
}

uint32_t IrBuilder::widest(std::span<const Value> values) const {
  uint32_t lanes = 1;
  for (Value value : values) lanes = std::max<uint32_t>(lanes, insts_[value].lanes);
  return lanes;
}

Value IrBuilder::emit(uint32_t op, uint32_t dtype, uint32_t lanes,
                      std::initializer_list<Value> sources, uint64_t arg) {
  return emit(op, dtype, lanes, std::span(sources.begin(), sources.size()), arg);
}

Value IrBuilder::emit(uint32_t op, uint32_t dtype, uint32_t lanes, std::span<const Value> sources,
                      uint64_t arg) {
  pgr_ir_inst inst{};
  inst.op = static_cast<uint16_t>(op);
  inst.dtype = static_cast<uint16_t>(dtype);
  inst.lanes = static_cast<uint16_t>(lanes);
  inst.src_count = static_cast<uint16_t>(sources.size());
  inst.arg = arg;
  if (sources.size() <= 4) {
    std::copy(sources.begin(), sources.end(), inst.src);
  } else {
    inst.src[0] = static_cast<uint32_t>(operands_.size());
    operands_.insert(operands_.end(), sources.begin(), sources.end());
  }
  insts_.push_back(inst);
  return static_cast<Value>(insts_.size() - 1);
}

namespace {

// Appends the records at the next multiple of 8 bytes and returns their offset.
template <typename Records>
uint32_t append(std::vector<std::byte>& block, const Records& records) {
  block.resize((block.size() + 7) / 8 * 8);
  const size_t start = block.size();
  const size_t size = records.size() * sizeof(records[0]);
  block.resize(start + size);
  if (size > 0) std::memcpy(block.data() + start, records.data(), size);
  return static_cast<uint32_t>(start);
}

}  // namespace

std::vector<std::byte> IrBuilder::finish() const {
  pgr_ir_header h{};
  h.magic = PGR_IR_MAGIC;
  h.version = PGR_IR_VERSION;
  h.header_bytes = sizeof h;
  h.flags = contract_ ? PGR_IR_FLAG_CONTRACT : 0;
  std::copy(local_size_.begin(), local_size_.end(), h.local_size);
  std::copy(group_count_.begin(), group_count_.end(), h.group_count);
  std::vector<std::byte> block(sizeof h);
  h.param_offset = append(block, params_);
  h.param_stride = sizeof(pgr_ir_param);
  h.param_count = static_cast<uint32_t>(params_.size());
  h.array_offset = append(block, arrays_);
  h.array_stride = sizeof(pgr_ir_array);
  h.array_count = static_cast<uint32_t>(arrays_.size());
  h.inst_offset = append(block, insts_);
  h.inst_stride = sizeof(pgr_ir_inst);
  h.inst_count = static_cast<uint32_t>(insts_.size());
  h.operand_offset = append(block, operands_);
  h.operand_count = static_cast<uint32_t>(operands_.size());
  h.name_offset = append(block, name_);
  h.name_bytes = static_cast<uint32_t>(name_.size());
  block.resize((block.size() + 7) / 8 * 8);
  h.total_bytes = block.size();
  std::memcpy(block.data(), &h, sizeof h);
  return block;
}

}  // namespace plugrad::sdk

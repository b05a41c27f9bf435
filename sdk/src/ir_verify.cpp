// Verifies blocks and instructions, except ALU ops (ir_verify_alu.cpp).
#include "ir_verify.h"

#include "plugrad/sdk/guard.h"

namespace plugrad::sdk {
namespace {

constexpr uint32_t kOutermost = UINT32_MAX;

bool is_lane_count(uint32_t lanes) {
  return lanes >= 1 && lanes <= 64 && (lanes & (lanes - 1)) == 0;
}

bool is_index(const pgr_ir_inst& inst) {
  return inst.dtype == PGR_DTYPE_I32 || inst.dtype == PGR_DTYPE_I64;
}

bool is_storable(uint32_t dtype) {
  return dtype_size(dtype) > 0;
}

[[noreturn]] void fail_block(const std::string& what) {
  throw StatusError(PGR_STATUS_INVALID_ARGUMENT, "kernel IR: " + what);
}

}  // namespace

void IrVerifier::fail(uint32_t number, const std::string& what) const {
  const OpInfo* op = op_info(inst(number).op);
  fail_block("instruction " + std::to_string(number) + " (" +
             (op ? std::string(op->name) : "op " + std::to_string(inst(number).op)) + "): " + what);
}

void IrVerifier::run() {
  check_header();
  check_params();
  check_arrays();
  const uint32_t count = static_cast<uint32_t>(ir_.insts_.size());
  ir_.partners_.resize(count);
  block_.assign(count, kOutermost);
  is_closed_.assign(count, 0);
  for (uint32_t i = 0; i < count; ++i) {
    ir_.partners_[i] = i;
    if (!open_.empty()) block_[i] = open_.back();
    const OpInfo* op = op_info(inst(i).op);
    expect(i, op != nullptr, "is not an op of this version");
    check_sources(i);
    check_types(i);
    if (op->op_class == PGR_OP_CLASS_STRUCTURE) check_structure(i);
    if (op->op_class == PGR_OP_CLASS_MEMORY) check_memory(i);
    if (op->op_class == PGR_OP_CLASS_LANES) check_vector(i);
    if (op->op_class == PGR_OP_CLASS_ALU) check_alu(i);
  }
  if (!open_.empty()) fail(open_.back(), "its block is never closed");
}

void IrVerifier::check_header() const {
  uint64_t total = 1;
  for (uint32_t size : ir_.header_.local_size) {
    if (size == 0) fail_block("local_size has a 0");
    total *= size;
    if (total > UINT32_MAX) fail_block("local_size has more than 2^32 work-items");
  }
}

void IrVerifier::check_params() const {
  for (size_t i = 0; i < ir_.params_.size(); ++i) {
    const pgr_ir_param& param = ir_.params_[i];
    const std::string where = "parameter " + std::to_string(i) + ": ";
    if (param.kind > PGR_PARAM_SCALAR)
      fail_block(where + "kind " + std::to_string(param.kind) + " is unknown");
    if (!is_storable(param.dtype))
      fail_block(where + "dtype " + std::to_string(param.dtype) + " has no size");
    if (param.align_bytes & (param.align_bytes - 1))
      fail_block(where + "alignment " + std::to_string(param.align_bytes) +
                 " is not a power of two");
    if (param.elem_count > INT64_MAX / 8) fail_block(where + "more elements than 64 bits address");
    if (param.kind == PGR_PARAM_SCALAR && param.min > param.max)
      fail_block(where + "min " + std::to_string(param.min) + " is above max " +
                 std::to_string(param.max));
  }
}

void IrVerifier::check_arrays() const {
  for (size_t i = 0; i < ir_.arrays_.size(); ++i) {
    const pgr_ir_array& array = ir_.arrays_[i];
    const std::string where = "array " + std::to_string(i) + ": ";
    if (array.space > PGR_SPACE_LOCAL)
      fail_block(where + "space " + std::to_string(array.space) + " is unknown");
    if (!is_storable(array.dtype))
      fail_block(where + "dtype " + std::to_string(array.dtype) + " has no size");
    if (array.align_bytes & (array.align_bytes - 1))
      fail_block(where + "alignment " + std::to_string(array.align_bytes) +
                 " is not a power of two");
    if (!is_lane_count(array.lanes) || array.elem_count % array.lanes != 0)
      fail_block(where + std::to_string(array.elem_count) + " elements in groups of " +
                 std::to_string(array.lanes));
    if (array.elem_count > INT64_MAX / 8) fail_block(where + "more elements than 64 bits address");
  }
}

void IrVerifier::check_sources(uint32_t number) {
  const pgr_ir_inst& self = inst(number);
  const OpInfo& op = *op_info(self.op);
  const bool any_count = op.max_sources == 255;
  expect(number,
         self.src_count >= op.min_sources && (any_count || self.src_count <= op.max_sources),
         "has " + std::to_string(self.src_count) + " sources, needs " +
             std::to_string(op.min_sources) +
             (any_count                          ? " or more"
              : op.max_sources != op.min_sources ? " to " + std::to_string(op.max_sources)
                                                 : ""));
  if (self.src_count > 4)
    expect(number, uint64_t{self.src[0]} + self.src_count <= ir_.operands_.size(),
           "operands " + std::to_string(self.src[0]) + " to " +
               std::to_string(uint64_t{self.src[0]} + self.src_count - 1) + " of a table of " +
               std::to_string(ir_.operands_.size()));
  const bool is_end = self.op == PGR_OP_END_LOOP || self.op == PGR_OP_END_IF;
  const bool is_copy = self.op == PGR_OP_ASYNC_COPY;
  const bool takes_pointer =
      self.op == PGR_OP_LOAD || self.op == PGR_OP_STORE || self.op == PGR_OP_ATOMIC_ADD || is_copy;
  for (uint32_t which = 0; which < self.src_count; ++which) {
    const uint32_t source = ir_.source(number, which);
    const std::string name = "source " + std::to_string(which) + " is %" + std::to_string(source);
    expect(number, source < number, name + ", which is not earlier");
    expect(number, block_[source] == kOutermost || !is_closed_[block_[source]],
           name + ", whose block has ended");
    if (is_end) continue;
    expect(number, inst(source).dtype != PGR_DTYPE_VOID, name + ", which has no value");
    const bool wants_pointer = takes_pointer && (which == 0 || (is_copy && which == 2));
    expect(number, ir_.is_pointer(source) == wants_pointer,
           name + (wants_pointer ? ", which is not a pointer" : ", which is a pointer"));
  }
}

void IrVerifier::check_types(uint32_t number) {
  const pgr_ir_inst& self = inst(number);
  const uint16_t op = self.op;
  const bool no_value = op == PGR_OP_NOP || op == PGR_OP_END_LOOP || op == PGR_OP_IF ||
                        op == PGR_OP_END_IF || op == PGR_OP_STORE || op == PGR_OP_ATOMIC_ADD ||
                        op == PGR_OP_BARRIER || op == PGR_OP_ASYNC_COPY ||
                        op == PGR_OP_ASYNC_COMMIT || op == PGR_OP_ASYNC_WAIT;
  if (no_value)
    expect(number, self.dtype == PGR_DTYPE_VOID, "has no value, so its dtype must be void");
  else
    expect(number, is_storable(self.dtype), "dtype " + std::to_string(self.dtype) + " has no size");
  const bool is_vector_op =
      op >= PGR_OP_VECTOR || op == PGR_OP_LOAD || op == PGR_OP_STORE || op == PGR_OP_ATOMIC_ADD;
  if (is_vector_op && op != PGR_OP_ASYNC_COMMIT && op != PGR_OP_ASYNC_WAIT)
    expect(number, is_lane_count(self.lanes),
           std::to_string(self.lanes) + " lanes; allowed are 1, 2, 4, 8, 16, 32 and 64");
  else if (!no_value)
    expect(number, self.lanes == 1, std::to_string(self.lanes) + " lanes; allowed is 1");
}

void IrVerifier::check_structure(uint32_t number) {
  const pgr_ir_inst& self = inst(number);
  switch (self.op) {
    case PGR_OP_PARAM:
      expect(number, self.arg < ir_.params_.size(),
             "parameter " + std::to_string(self.arg) + " of " + std::to_string(ir_.params_.size()));
      expect(number, self.dtype == ir_.params_[self.arg].dtype, "its dtype is not the parameter's");
      break;
    case PGR_OP_ARRAY:
      expect(number, self.arg < ir_.arrays_.size(),
             "array " + std::to_string(self.arg) + " of " + std::to_string(ir_.arrays_.size()));
      expect(number, self.dtype == ir_.arrays_[self.arg].dtype, "its dtype is not the array's");
      break;
    case PGR_OP_CONST:
      check_const(number);
      break;
    case PGR_OP_GROUP_ID:
    case PGR_OP_LOCAL_ID:
      expect(number, self.arg < 3, "axis " + std::to_string(self.arg) + "; allowed are 0 to 2");
      expect(number, is_index(self), "its dtype must be i32 or i64");
      break;
    case PGR_OP_LOOP:
      expect(number,
             is_index(self) && src(number, 0).dtype == self.dtype &&
                 src(number, 1).dtype == self.dtype,
             "the counter and both bounds must all be i32 or all i64");
      expect(number, src(number, 0).lanes == 1 && src(number, 1).lanes == 1,
             "a bound has several lanes");
      open_block(number);
      break;
    case PGR_OP_IF:
      expect(number, src(number, 0).dtype == PGR_DTYPE_BOOL && src(number, 0).lanes == 1,
             "the condition must be one bool");
      open_block(number);
      break;
    case PGR_OP_END_LOOP:
      close_block(number, PGR_OP_LOOP);
      break;
    case PGR_OP_END_IF:
      close_block(number, PGR_OP_IF);
      break;
    default:
      break;
  }
}

void IrVerifier::check_const(uint32_t number) const {
  const pgr_ir_inst& self = inst(number);
  const DtypeInfo& dtype = *dtype_info(self.dtype);
  const uint32_t bits = dtype.size_bytes * 8;
  uint64_t canonical = bits == 64 ? self.arg : self.arg & ((uint64_t{1} << bits) - 1);
  if (dtype.is_int && dtype.is_signed && bits < 64 && (canonical >> (bits - 1)))
    canonical |= ~uint64_t{0} << bits;
  if (self.dtype == PGR_DTYPE_BOOL) canonical = self.arg & 1;
  expect(number, self.arg == canonical,
         "arg " + std::to_string(self.arg) + " is not a value of " + std::string(dtype.name) +
             " (zero-extended, signed integers sign-extended)");
}

void IrVerifier::open_block(uint32_t number) {
  open_.push_back(number);
  block_[number] = number;
}

void IrVerifier::close_block(uint32_t number, uint16_t opener) {
  const uint32_t source = ir_.source(number, 0);
  expect(number, !open_.empty(), "no block is open");
  expect(number, source == open_.back(),
         "closes %" + std::to_string(source) + ", but the innermost open block is %" +
             std::to_string(open_.back()));
  expect(number, inst(source).op == opener,
         "closes a block that " + std::string(op_info(inst(source).op)->name) + " opened");
  is_closed_[source] = 1;
  open_.pop_back();
  ir_.partners_[number] = source;
  ir_.partners_[source] = number;
  block_[number] = open_.empty() ? kOutermost : open_.back();
}

void IrVerifier::check_memory(uint32_t number) {
  const pgr_ir_inst& self = inst(number);
  if (self.op == PGR_OP_ASYNC_WAIT)
    expect(number, self.arg < uint64_t{1} << 31,
           std::to_string(self.arg) + " groups of copies; allowed are less than 2^31");
  if (self.src_count == 0) return;
  if (self.op == PGR_OP_ASYNC_COPY) return check_async_copy(number);
  check_pointer_access(number);
  const uint16_t elem = src(number, 0).dtype;
  expect(number, is_index(src(number, 1)) && src(number, 1).lanes == 1,
         "the index must be one i32 or i64");
  if (self.op == PGR_OP_LOAD) {
    expect(number, self.dtype == elem, "its dtype is not the pointer's");
    expect(number, self.src_count != 3, "a gate needs the value of closed lanes as source 3");
    if (self.src_count == 2) return;
    check_gate(number, 2);
    expect(number, src(number, 3).dtype == elem, "source 3 is not of the pointer's dtype");
    expect(number, src(number, 3).lanes == 1 || src(number, 3).lanes == self.lanes,
           "source 3 has neither 1 nor all lanes");
    return;
  }
  expect(number, src(number, 2).dtype == elem, "the value is not of the pointer's dtype");
  expect(number, src(number, 2).lanes == self.lanes,
         "the value has " + std::to_string(src(number, 2).lanes) + " lanes, the instruction " +
             std::to_string(self.lanes));
  if (self.op == PGR_OP_ATOMIC_ADD)
    expect(number, elem != PGR_DTYPE_BOOL && elem < PGR_DTYPE_F8E4M3,
           std::string(dtype_name(elem)) + " cannot be added");
  if (self.src_count == 4) check_gate(number, 3);
}

void IrVerifier::check_pointer_access(uint32_t number) {
  const pgr_ir_inst& self = inst(number);
  const pgr_ir_inst& pointer = src(number, 0);
  if (pointer.op == PGR_OP_ARRAY) {
    const uint32_t group = ir_.arrays_[pointer.arg].lanes;
    expect(number, self.lanes % group == 0,
           std::to_string(self.lanes) + " lanes of an array that is accessed in groups of " +
               std::to_string(group));
    return;
  }
  const uint32_t needed = self.op == PGR_OP_LOAD ? PGR_PARAM_READ : PGR_PARAM_WRITE;
  expect(number, (ir_.params_[pointer.arg].flags & needed) != 0,
         "parameter " + std::to_string(pointer.arg) + " lacks the flag for this access");
}

void IrVerifier::check_async_copy(uint32_t number) {
  const pgr_ir_inst& self = inst(number);
  const pgr_ir_inst &to = src(number, 0), &from = src(number, 2);
  expect(number, to.op == PGR_OP_ARRAY && ir_.arrays_[to.arg].space == PGR_SPACE_LOCAL,
         "source 0 is no local array");
  expect(number, from.op == PGR_OP_PARAM, "source 2 is no buffer");
  expect(number, from.dtype == to.dtype, "the array and the buffer differ in dtype");
  check_pointer_access(number);
  const pgr_ir_param& buffer = ir_.params_[from.arg];
  expect(number, (buffer.flags & PGR_PARAM_READ) != 0,
         "parameter " + std::to_string(from.arg) + " lacks the flag for this access");
  for (uint32_t which : {1, 3})
    expect(number, is_index(src(number, which)) && src(number, which).lanes == 1,
           "an index must be one i32 or i64");
  const uint32_t bytes = dtype_size(to.dtype) * self.lanes;
  expect(number, bytes == 4 || bytes == 8 || bytes == 16,
         "copies " + std::to_string(bytes) + " bytes; allowed are 4, 8 and 16");
  for (uint32_t align : {ir_.arrays_[to.arg].align_bytes, buffer.align_bytes})
    expect(
        number, align >= bytes,
        "copies " + std::to_string(bytes) + " bytes where alignment is " + std::to_string(align));
  if (self.src_count == 5)
    expect(number, src(number, 4).dtype == PGR_DTYPE_BOOL && src(number, 4).lanes == 1,
           "the gate must be one bool");
}

void IrVerifier::check_gate(uint32_t number, uint32_t which) const {
  const pgr_ir_inst& gate = inst(ir_.source(number, which));
  expect(number,
         gate.dtype == PGR_DTYPE_BOOL && (gate.lanes == 1 || gate.lanes == inst(number).lanes),
         "the gate must be bool of 1 or all lanes");
}

void IrVerifier::check_vector(uint32_t number) {
  const pgr_ir_inst& self = inst(number);
  if (self.op == PGR_OP_WMMA) {
    expect(number, src(number, 2).dtype == self.dtype && src(number, 2).lanes == self.lanes,
           "source 2 is not of the result's type");
    expect(number, src(number, 0).dtype == src(number, 1).dtype, "sources 0 and 1 differ in dtype");
    expect(number, src(number, 0).dtype != PGR_DTYPE_BOOL && self.dtype != PGR_DTYPE_BOOL,
           "bool is not multiplied");
    return;
  }
  uint32_t total = 0;
  for (uint32_t source : ir_.sources(number)) {
    expect(number, inst(source).dtype == self.dtype, "a source is of another dtype");
    total += inst(source).lanes;
  }
  if (self.op == PGR_OP_LANE) {
    expect(number, self.arg < total && self.lanes <= total - self.arg,
           std::to_string(self.lanes) + " lanes from lane " + std::to_string(self.arg) + " of " +
               std::to_string(total));
    return;
  }
  expect(number, total == self.lanes || (self.src_count == 1 && total == 1),
         "its sources have " + std::to_string(total) + " lanes, the result " +
             std::to_string(self.lanes));
}

}  // namespace plugrad::sdk

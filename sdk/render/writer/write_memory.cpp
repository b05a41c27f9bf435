// Renders LOAD, STORE, ATOMIC_ADD, asynchronous copies, barriers and arrays.
#include <algorithm>

#include "plugrad/sdk/guard.h"
#include "plugrad/sdk/op_info.h"
#include "plugrad/sdk/private_arrays.h"
#include "render/text.h"
#include "render/writer/kernel_writer.h"

namespace plugrad::render {
namespace {

constexpr uint32_t kArrayAlign = 64;

bool fills_register(Type type) {
  const uint32_t bits = bits_of(type.dtype) * type.lanes;
  return bits == 128 || bits == 256 || bits == 512;
}

}  // namespace

// An array that is always accessed as a whole becomes a variable, so that it can live in registers.
bool KernelWriter::is_variable(const pgr_ir_array& array) const {
  return array.space == PGR_SPACE_PRIVATE && array.elem_count == array.lanes;
}

bool KernelWriter::may_overlap(uint32_t one, uint32_t other) const {
  if (one == other) return true;
  const auto params = ir_.params();
  if (one >= params.size() || other >= params.size()) return false;
  return !(params[one].flags & PGR_PARAM_NO_ALIAS) && !(params[other].flags & PGR_PARAM_NO_ALIAS);
}

void KernelWriter::declare_array(uint32_t index) {
  const pgr_ir_array& array = ir_.arrays()[index];
  const std::string name = (is_variable(array) ? "acc" : "buf") + std::to_string(index);
  if (is_variable(array)) {
    const bool is_mask = array.dtype == PGR_DTYPE_BOOL && array.lanes > 1;
    return line(prelude_.type({is_mask ? uint32_t{PGR_DTYPE_I8} : array.dtype, array.lanes}) + " " +
                name + ";");
  }
  const uint64_t elem_bytes = bits_of(array.dtype) / 8;
  const bool is_local = array.space == PGR_SPACE_LOCAL && dialect_.groups;
  sdk::require(is_local || array.elem_count <= sdk::kMostPrivateBytes / elem_bytes,
               PGR_STATUS_UNSUPPORTED,
               "array " + std::to_string(index) + " has " + std::to_string(array.elem_count) +
                   " elements; private arrays of up to " + std::to_string(sdk::kMostPrivateBytes) +
                   " bytes fit the stack");
  const std::string count = std::to_string(array.elem_count ? array.elem_count : 1);
  line(expand(is_local ? dialect_.groups->local_array : dialect_.array,
              {{'E', prelude_.type({memory_dtype(array.dtype), 1})},
               {'0', name},
               {'N', count},
               {'A', std::to_string(std::max(array.align_bytes, kArrayAlign))}}));
}

void KernelWriter::write_array(uint32_t number) {
  const uint64_t index = inst(number).arg;
  const bool is_named = is_variable(ir_.arrays()[index]);
  values_[number].text = (is_named ? "acc" : "buf") + std::to_string(index);
}

KernelWriter::Access KernelWriter::access(uint32_t number, uint32_t which) {
  const uint32_t pointer = ir_.source(number, which);
  const pgr_ir_inst& self = inst(pointer);
  const uint32_t index = static_cast<uint32_t>(self.arg);
  const bool is_array = self.op == PGR_OP_ARRAY;
  Access at;
  at.memory = is_array ? static_cast<uint32_t>(ir_.params().size()) + index : index;
  at.is_variable = is_array && is_variable(ir_.arrays()[index]);
  if (is_array)
    at.space = ir_.arrays()[index].space == PGR_SPACE_LOCAL ? Space::Local : Space::Private;
  at.pointer = values_[pointer].text;
  const bool is_vector = inst(number).lanes > 1 || inst(number).op == PGR_OP_ASYNC_COPY;
  at.index = wide_sum(ir_.source(number, which + 1), is_vector ? Prec::Product : Prec::Loose);
  if (is_array && dialect_.is_strict && source(number, which + 1).dtype == PGR_DTYPE_I64)
    at.index = prelude_.type({PGR_DTYPE_I32, 1}) + "(" + at.index + ")";
  if (dialect_.is_strict) at.element = is_array ? at.pointer + "[" + at.index + "]" : element(at);
  return at;
}

// A named index plus a constant, in 64 bits: neighbouring elements then share an address and differ
// in the displacement. A 32-bit sum might wrap, and would be widened at each use.
std::string KernelWriter::wide_sum(uint32_t number, Prec loosest) {
  const bool is_sum = !dialect_.groups && inst(number).op == PGR_OP_ADD &&
                      inst(number).dtype == PGR_DTYPE_I32 && values_[number].is_pending;
  if (!is_sum || source(number, 1).op != PGR_OP_CONST) return use_index(number, loosest);
  const Value& left = values_[ir_.source(number, 0)];
  if (left.prec != Prec::Atom || left.is_pending) return use_index(number, loosest);
  const std::string base = "(" + prelude_.type({PGR_DTYPE_I64, 1}) + ")" + left.text;
  use(number, loosest);
  const std::string sum =
      base + " + " + std::to_string(static_cast<int32_t>(source(number, 1).arg));
  return loosest < Prec::Sum ? "(" + sum + ")" : sum;
}

// For a buffer accessed by address.
std::string KernelWriter::element(const Access& at) {
  const uint32_t dtype = memory_dtype(ir_.params()[at.memory].dtype);
  return expand(dialect_.element, {{'D', prelude_.pointer(dtype)},
                                   {'P', at.pointer},
                                   {'I', at.index},
                                   {'A', std::to_string(bits_of(dtype) / 8)}});
}

std::string KernelWriter::load_text(uint32_t number, const Access& at, Prec& prec) {
  const Type type = type_of(number);
  const Type stored{memory_dtype(type.dtype), type.lanes};
  prec = Prec::Atom;
  if (type.dtype == PGR_DTYPE_BOOL) values_[number].mask_bits = 8;
  if (at.is_variable) return at.pointer;
  const bool is_vector = type.lanes > 1;
  if (is_vector && dialect_.load_aligned && is_aligned(number, stored))
    return expand(dialect_.load_aligned,
                  {{'T', prelude_.type(stored)},
                   {'P', at.pointer},
                   {'I', at.index},
                   {'A', std::to_string(bits_of(stored.dtype) / 8 * stored.lanes)}});
  std::string text = expand(is_vector ? dialect_.load_vector : dialect_.load_scalar,
                            {{'P', at.pointer},
                             {'I', at.index},
                             {'M', at.element},
                             {'N', std::to_string(type.lanes)},
                             {'T', prelude_.type(stored)},
                             {'U', is_vector ? prelude_.unaligned(stored) : std::string()}});
  if (is_vector) prec = Prec::Unary;
  if (type.dtype != PGR_DTYPE_BOOL) return text;
  prec = Prec::Loose;
  return text + " != " + (is_vector ? splat(stored, "0") : "0");
}

// A power of two that divides the value, as far as its arithmetic proves.
uint64_t KernelWriter::known_divisor(uint32_t number, uint32_t depth) const {
  constexpr uint64_t kMost = 64;
  if (depth == 0) return 1;
  const auto of = [&](uint32_t which) {
    return known_divisor(ir_.source(number, which), depth - 1);
  };
  switch (inst(number).op) {
    case PGR_OP_CONST:
      return std::min(kMost, inst(number).arg ? inst(number).arg & (~inst(number).arg + 1) : kMost);
    case PGR_OP_ADD:
    case PGR_OP_SUB:
      return std::min(of(0), of(1));
    case PGR_OP_MUL:
      return std::min(kMost, of(0) * of(1));
    case PGR_OP_SHL:
      return source(number, 1).op == PGR_OP_CONST && source(number, 1).arg < 6
                 ? std::min(kMost, of(0) << source(number, 1).arg)
                 : of(0);
    default:
      return 1;
  }
}

// True if the index of a load or store is a multiple of its size, which is at most a register's.
bool KernelWriter::is_aligned(uint32_t number, Type moved) const {
  constexpr uint32_t kMostBytes = 16, kDepth = 12;
  const pgr_ir_inst& pointer = source(number, 0);
  const uint32_t bytes = bits_of(moved.dtype) / 8 * moved.lanes;
  const uint32_t base = pointer.op == PGR_OP_ARRAY
                            ? std::max(ir_.arrays()[pointer.arg].align_bytes, kArrayAlign)
                            : ir_.params()[pointer.arg].align_bytes;
  return bytes <= kMostBytes && base >= bytes && base % bytes == 0 &&
         known_divisor(ir_.source(number, 1), kDepth) % moved.lanes == 0;
}

void KernelWriter::write_load(uint32_t number) {
  const Access at = access(number);
  Prec prec = Prec::Atom;
  std::string text =
      inst(number).src_count == 2 ? load_text(number, at, prec) : gated_load_text(number, at, prec);
  reads_.push_back(at.memory);
  define(number, std::move(text), prec);
}

void KernelWriter::require_masks() const {
  sdk::require(dialect_.masked_load != nullptr, PGR_STATUS_UNSUPPORTED,
               std::string("dialect ") + dialect_.name + " has no gate of several lanes");
}

std::string KernelWriter::gated_load_text(uint32_t number, const Access& at, Prec& prec) {
  const Type type = type_of(number);
  const uint32_t gate = ir_.source(number, 2), other = ir_.source(number, 3);
  if (!is_mask(gate) || at.is_variable) {
    const std::string loaded = load_text(number, at, prec);
    const uint32_t bits = is_mask(number) ? 8 : bits_of(type.dtype);
    const std::string whether =
        is_mask(gate) ? mask_operand(gate, type.lanes, bits, Prec::Unary) : use(gate, Prec::Unary);
    const std::string yes = prec > Prec::Unary ? "(" + loaded + ")" : loaded;
    const std::string no = operand(other, type.lanes, 8, Prec::Unary);
    const uint32_t kept = is_mask(number) ? mask_dtype(8) : type.dtype;
    if (is_mask(gate)) return select({kept, type.lanes}, whether, yes, no, prec);
    prec = Prec::Loose;
    return whether + " ? " + yes + " : " + no;
  }
  require_masks();
  const Type stored{memory_dtype(type.dtype), type.lanes};
  std::string closed = operand(other, type.lanes, 8, Prec::Unary);
  const bool is_bool = type.dtype == PGR_DTYPE_BOOL;
  if (is_bool) closed = expand(dialect_.bits_vector, {{'T', prelude_.type(stored)}, {'0', closed}});
  const std::string name = prelude_.helper(
      *(fills_register(stored) ? dialect_.masked_load_register : dialect_.masked_load), stored,
      stored, at.space);
  std::string text = name + "(" + at.pointer + " + " + at.index + ", " +
                     mask_operand(gate, type.lanes, bits_of(stored.dtype), Prec::Loose) + ", " +
                     closed + ")";
  prec = is_bool ? Prec::Loose : Prec::Atom;
  if (!is_bool) return text;
  values_[number].mask_bits = 8;
  return text + " != " + splat(stored, "0");
}

// `value` in its in-memory representation.
void KernelWriter::store_to(uint32_t number, const Access& at, Type type,
                            const std::string& value) {
  settle_readers(at.memory);
  if (at.is_variable) return line(at.pointer + " = " + value + ";");
  const bool is_vector = type.lanes > 1;
  if (is_vector && dialect_.store_aligned && is_aligned(number, type))
    return line(
        expand(dialect_.store_aligned, {{'T', prelude_.type(type)},
                                        {'P', at.pointer},
                                        {'I', at.index},
                                        {'A', std::to_string(bits_of(type.dtype) / 8 * type.lanes)},
                                        {'0', value}}));
  line(expand(is_vector ? dialect_.store_vector : dialect_.store_scalar,
              {{'P', at.pointer},
               {'I', at.index},
               {'M', at.element},
               {'0', value},
               {'N', std::to_string(type.lanes)},
               {'U', is_vector ? prelude_.unaligned(type) : std::string()}}));
}

void KernelWriter::write_store(uint32_t number) {
  const Access at = access(number);
  const uint32_t from = ir_.source(number, 2);
  const Type type{memory_dtype(inst(from).dtype), inst(from).lanes};
  std::string value;
  if (is_mask(from)) {
    value = mask_operand(from, type.lanes, 8, Prec::Unary);
    const std::string stored = prelude_.type(type);
    if (!at.is_variable)
      value =
          expand(dialect_.bits_vector, {{'T', stored}, {'0', value}}) + " & " + splat(type, "1");
  } else {
    value = use(from, Prec::Loose);
    if (dialect_.is_strict && inst(from).dtype == PGR_DTYPE_BOOL && !at.is_variable)
      value = expand(dialect_.convert_scalar, {{'T', prelude_.type(type)}, {'0', value}});
  }
  if (inst(number).src_count == 3) {
    reads_.clear();
    return store_to(number, at, type, value);
  }
  masked_store(number, at, type, value);
}

void KernelWriter::masked_store(uint32_t number, const Access& at, Type type,
                                const std::string& value) {
  const uint32_t gate = ir_.source(number, 3);
  const std::string whether = is_mask(gate)
                                  ? mask_operand(gate, type.lanes, bits_of(type.dtype), Prec::Unary)
                                  : use(gate, Prec::Loose);
  reads_.clear();
  settle_readers(at.memory);
  if (!is_mask(gate)) {
    line("if (" + whether + ") {");
    ++depth_;
    store_to(number, at, type, value);
    --depth_;
    return line("}");
  }
  if (at.is_variable) {
    const Type kept{is_mask(ir_.source(number, 2)) ? mask_dtype(8) : type.dtype, type.lanes};
    Prec prec = Prec::Loose;
    return line(at.pointer + " = " + select(kept, whether, value, at.pointer, prec) + ";");
  }
  require_masks();
  line(prelude_.helper(
           *(fills_register(type) ? dialect_.masked_store_register : dialect_.masked_store), type,
           type, at.space) +
       "(" + at.pointer + " + " + at.index + ", " + whether + ", " + value + ");");
}

const AtomicRow& KernelWriter::atomic_row(uint32_t dtype) const {
  for (const AtomicRow& row : dialect_.atomics)
    if (row.dtypes & (1u << dtype)) return row;
  throw sdk::StatusError(PGR_STATUS_UNSUPPORTED, std::string("dialect ") + dialect_.name +
                                                     " has no ATOMIC_ADD of " +
                                                     std::string(sdk::dtype_name(dtype)));
}

void KernelWriter::write_atomic_add(uint32_t number) {
  const Access at = access(number);
  const uint32_t from = ir_.source(number, 2);
  const uint32_t lanes = inst(number).lanes;
  sdk::require(!at.is_variable, PGR_STATUS_UNSUPPORTED, "ATOMIC_ADD to an array in registers");
  const AtomicRow& row = atomic_row(inst(from).dtype);
  const Type type{inst(from).dtype, 1};
  const std::string helper =
      row.helper ? prelude_.helper(*row.helper, type, type, at.space) : std::string();
  const std::string value = use_name(from);
  const bool is_gated = inst(number).src_count == 4;
  const uint32_t gate = is_gated ? ir_.source(number, 3) : 0;
  const std::string whether = is_gated ? use_name(gate) : std::string();
  reads_.clear();
  settle_readers(at.memory);
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    const auto of_lane = [&](const std::string& vector) {
      return lanes == 1 ? vector : lane_text(vector, lane);
    };
    const std::string index = lane == 0 ? at.index : at.index + " + " + std::to_string(lane);
    const std::string condition =
        !is_gated ? "" : "if (" + (is_mask(gate) ? of_lane(whether) : whether) + ") ";
    line(condition + expand(row.pattern, {{'P', at.pointer},
                                          {'I', index},
                                          {'M', at.element},
                                          {'0', of_lane(value)},
                                          {'H', helper}}));
  }
}

void KernelWriter::write_barrier(uint32_t) {
  settle_all();
  if (dialect_.barrier) line(dialect_.barrier);
}

void KernelWriter::require_async_copies() const {
  sdk::require(dialect_.async_copy != nullptr, PGR_STATUS_UNSUPPORTED,
               std::string("dialect ") + dialect_.name + " has no asynchronous copies");
}

void KernelWriter::write_async_copy(uint32_t number) {
  require_async_copies();
  const Access to = access(number), from = access(number, 2);
  const bool is_gated = inst(number).src_count == 5;
  const std::string gate = is_gated ? use(ir_.source(number, 4), Prec::Loose) : std::string();
  reads_.clear();
  settle_readers(to.memory);
  const uint32_t bytes = bits_of(source(number, 0).dtype) / 8 * inst(number).lanes;
  line(expand(is_gated ? dialect_.async_copy_gated : dialect_.async_copy,
              {{'P', to.pointer},
               {'I', to.index},
               {'Q', from.pointer},
               {'J', from.index},
               {'A', std::to_string(bytes)},
               {'0', gate}}));
}

void KernelWriter::write_async_commit(uint32_t) {
  require_async_copies();
  line(dialect_.async_commit);
}

// After the wait, the copied memory has changed.
void KernelWriter::write_async_wait(uint32_t number) {
  require_async_copies();
  settle_all();
  line(expand(dialect_.async_wait, {{'0', std::to_string(inst(number).arg)}}));
}

}  // namespace plugrad::render

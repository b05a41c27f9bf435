// Renders arithmetic by the dialect's rows.
#include "plugrad/sdk/guard.h"
#include "plugrad/sdk/op_info.h"
#include "render/text.h"
#include "render/writer/kernel_writer.h"

namespace plugrad::render {
namespace {

uint8_t class_of(uint32_t dtype) {
  const sdk::DtypeInfo& info = *sdk::dtype_info(dtype);
  if (dtype == PGR_DTYPE_BOOL) return kBools;
  if (dtype == PGR_DTYPE_F16) return kHalves;
  return info.is_float ? kFloats & ~kHalves : info.is_signed ? kSigned : kUnsigned;
}

bool names_twice(const char* pattern, char operand) {
  int count = 0;
  for (const char* at = pattern; *at; ++at) count += at[0] == '$' && at[1] == operand;
  return count > 1;
}

// C promotes narrower operands to int.
bool is_narrow(Type type) {
  return type.lanes == 1 && sdk::dtype_info(type.dtype)->is_int && bits_of(type.dtype) < 32;
}

}  // namespace

bool KernelWriter::has_zero(uint32_t number) const {
  for (uint32_t i = 0; i < inst(number).src_count; ++i) {
    const pgr_ir_inst& one = source(number, i);
    const uint64_t magnitude = ~uint64_t{0} >> (65 - bits_of(one.dtype));
    if (one.op == PGR_OP_CONST && (one.arg & magnitude) == 0) return true;
  }
  return false;
}

bool KernelWriter::fits(const AluRow& row, uint32_t number) const {
  const pgr_ir_inst& self = inst(number);
  if (row.op != self.op || !(row.classes & class_of(source(number, 0).dtype))) return false;
  if (row.when == When::Always) return true;
  if (row.when == When::Single) return source(number, 0).dtype == PGR_DTYPE_F32;
  if (row.when == When::Narrow) return is_narrow(type_of(number));
  if (row.when == When::Lanes) return self.lanes > 1;
  if (row.when == When::WithZero) return has_zero(number);
  if (row.when == When::Exact) return never_overflows_[number];
  const pgr_ir_inst& right = source(number, 1);
  if (right.op != PGR_OP_CONST) return false;
  if (row.when == When::SafeDivisor) {
    const bool is_signed = sdk::dtype_info(right.dtype)->is_signed;
    return right.arg != 0 && !(is_signed && right.arg == ~uint64_t{0});
  }
  return right.arg < bits_of(self.dtype);
}

// C splats a scalar operand beside a vector, except in calls and left of a shift.
bool KernelWriter::is_repeated_by_language(const AluRow& row, uint32_t number,
                                           uint32_t which) const {
  const pgr_ir_inst& self = inst(number);
  const pgr_ir_inst& scalar = source(number, which);
  const bool is_shift = self.op == PGR_OP_SHL || self.op == PGR_OP_SHR;
  if (scalar.lanes == self.lanes || scalar.dtype == PGR_DTYPE_BOOL) return false;
  if (bits_of(scalar.dtype) < dialect_.repeat_bits) return false;
  return row.prec != Prec::Atom && self.src_count == 2 && !(is_shift && which == 0) &&
         source(number, 1 - which).lanes == self.lanes;
}

bool KernelWriter::is_plain_literal(uint32_t number, uint32_t which) const {
  const pgr_ir_inst& self = inst(number);
  const pgr_ir_inst& literal = source(number, which);
  const bool is_left_of_shift = which == 0 && (self.op == PGR_OP_SHL || self.op == PGR_OP_SHR);
  if (literal.op != PGR_OP_CONST || !sdk::dtype_info(literal.dtype)->is_int || is_left_of_shift)
    return false;
  const bool is_signed = sdk::dtype_info(literal.dtype)->is_signed;
  const bool fits_int = is_signed
                            ? static_cast<int64_t>(literal.arg) == static_cast<int32_t>(literal.arg)
                            : literal.arg <= INT32_MAX;
  if (self.lanes > 1 || !fits_int) return false;
  for (uint32_t i = 0; i < self.src_count; ++i)
    if (source(number, i).op != PGR_OP_CONST) return true;
  return false;
}

const AluRow& KernelWriter::row_for(uint32_t number) const {
  for (const AluRow& row : dialect_.alu)
    if (row.pattern && fits(row, number)) return row;
  throw sdk::StatusError(PGR_STATUS_UNSUPPORTED,
                         std::string("dialect ") + dialect_.name + " has no " +
                             std::string(sdk::op_info(inst(number).op)->name) + " of " +
                             std::string(sdk::dtype_name(source(number, 0).dtype)));
}

// Finds sums whose product has no other use: the pair may round once.
void KernelWriter::find_mul_adds() {
  for (uint32_t i = 0; i < ir_.insts().size(); ++i) {
    if (inst(i).op != PGR_OP_ADD || !(class_of(inst(i).dtype) & kFloats)) continue;
    for (uint32_t from : ir_.sources(i)) {
      if (inst(from).op != PGR_OP_MUL || use_counts_[from] != 1) continue;
      products_[i] = from;
      written_by_sums_.insert(from);
      break;
    }
  }
}

void KernelWriter::write_mul_add(uint32_t number, uint32_t product) {
  const uint32_t lanes = inst(number).lanes;
  const bool is_first = ir_.source(number, 0) == product;
  const std::string a = operand(ir_.source(product, 0), lanes, 0, Prec::Loose);
  const std::string b = operand(ir_.source(product, 1), lanes, 0, Prec::Loose);
  const std::string c = operand(ir_.source(number, is_first ? 1 : 0), lanes, 0, Prec::Loose);
  define(number, expand(dialect_.mul_add, {{'0', a}, {'1', b}, {'2', c}}), Prec::Atom);
}

void KernelWriter::write_alu(uint32_t number) {
  if (written_by_sums_.contains(number)) return;
  if (const auto found = products_.find(number); found != products_.end())
    return write_mul_add(number, found->second);
  const AluRow& row = row_for(number);
  const uint32_t lanes = inst(number).lanes;
  const bool is_mask_result = is_mask(number);
  if (is_mask_result) values_[number].mask_bits = static_cast<uint16_t>(mask_bits_for(number));
  const uint32_t mask_bits = values_[number].mask_bits;
  std::string operands[3];
  for (uint32_t i = 0; i < inst(number).src_count; ++i) {
    const uint32_t from = ir_.source(number, i);
    if (names_twice(row.pattern, static_cast<char>('0' + i)) && values_[from].is_pending)
      settle(from);
    const Prec loosest = i == 0 ? row.first : row.rest;
    operands[i] = is_repeated_by_language(row, number, i)
                      ? use(from, loosest)
                      : operand(from, lanes, mask_bits, loosest);
    if (is_plain_literal(number, i)) operands[i] = without_suffix(operands[i]);
  }
  const Type from{source(number, 0).dtype, lanes};
  if (row.helper) prelude_.helper(*row.helper, from, from);
  const auto type_if = [&](const char* letter, Type wanted) {
    const bool is_used = std::string_view(row.pattern).find(letter) != std::string_view::npos;
    return is_used ? prelude_.type(wanted) : std::string();
  };
  std::string text = expand(row.pattern, {{'0', operands[0]},
                                          {'1', operands[1]},
                                          {'2', operands[2]},
                                          {'T', type_if("$T", from)},
                                          {'V', type_if("$V", {unsigned_dtype(from.dtype), lanes})},
                                          {'N', lanes > 1 ? std::to_string(lanes) : ""}});
  Prec prec = row.prec;
  if (is_narrow(type_of(number)) && prec != Prec::Atom && !dialect_.is_strict) {
    text = "(" + prelude_.type(type_of(number)) + ")(" + text + ")";
    prec = Prec::Unary;
  }
  define(number, std::move(text), prec);
}

void KernelWriter::write_where(uint32_t number) {
  const AluRow& row = row_for(number);
  const uint32_t lanes = inst(number).lanes;
  const uint32_t condition = ir_.source(number, 0);
  uint32_t mask_bits = bits_of(inst(number).dtype);
  if (is_mask(number)) {
    mask_bits = mask_bits_for(number);
    values_[number].mask_bits = static_cast<uint16_t>(mask_bits);
  }
  const std::string gate = is_mask(condition)
                               ? mask_operand(condition, lanes, mask_bits, Prec::Unary)
                               : use(condition, Prec::Unary);
  const std::string yes = operand(ir_.source(number, 1), lanes, mask_bits, Prec::Unary);
  const std::string no = operand(ir_.source(number, 2), lanes, mask_bits, Prec::Unary);
  if (!dialect_.select || !is_mask(condition))
    return define(number, expand(row.pattern, {{'0', gate}, {'1', yes}, {'2', no}}), row.prec);
  const Type kept{is_mask(number) ? mask_dtype(mask_bits) : inst(number).dtype, lanes};
  Prec prec = Prec::Loose;
  std::string text = select(kept, gate, yes, no, prec);
  define(number, std::move(text), prec);
}

}  // namespace plugrad::render

// The loop over the instructions, and the transfer of values from definition to uses.
#include "render/writer/kernel_writer.h"

#include <algorithm>
#include <array>

#include "plugrad/sdk/guard.h"
#include "plugrad/sdk/op_info.h"
#include "render/text.h"

namespace plugrad::render {
namespace {

// Longer expressions are named even if they have one use.
constexpr size_t kLongestInline = 64;

using Writer = void (KernelWriter::*)(uint32_t);
struct WriterRow {
  uint16_t op;
  Writer writer;
};
// clang-format off
constexpr WriterRow kWriters[] = {
    {PGR_OP_NOP, &KernelWriter::write_nothing},
    {PGR_OP_PARAM, &KernelWriter::write_param},
    {PGR_OP_ARRAY, &KernelWriter::write_array},
    {PGR_OP_CONST, &KernelWriter::write_const},
    {PGR_OP_GROUP_ID, &KernelWriter::write_group_id},
    {PGR_OP_LOCAL_ID, &KernelWriter::write_local_id},
    {PGR_OP_LOOP, &KernelWriter::write_loop},
    {PGR_OP_END_LOOP, &KernelWriter::write_end},
    {PGR_OP_IF, &KernelWriter::write_if},
    {PGR_OP_END_IF, &KernelWriter::write_end},
    {PGR_OP_LOAD, &KernelWriter::write_load},
    {PGR_OP_STORE, &KernelWriter::write_store},
    {PGR_OP_ATOMIC_ADD, &KernelWriter::write_atomic_add},
    {PGR_OP_BARRIER, &KernelWriter::write_barrier},
    {PGR_OP_ASYNC_COPY, &KernelWriter::write_async_copy},
    {PGR_OP_ASYNC_COMMIT, &KernelWriter::write_async_commit},
    {PGR_OP_ASYNC_WAIT, &KernelWriter::write_async_wait},
    {PGR_OP_VECTOR, &KernelWriter::write_vector},
    {PGR_OP_LANE, &KernelWriter::write_lane},
    {PGR_OP_WMMA, &KernelWriter::write_wmma},
    {PGR_OP_ADD, &KernelWriter::write_alu},
    {PGR_OP_SUB, &KernelWriter::write_alu},
    {PGR_OP_MUL, &KernelWriter::write_alu},
    {PGR_OP_NEG, &KernelWriter::write_alu},
    {PGR_OP_IDIV, &KernelWriter::write_alu},
    {PGR_OP_MOD, &KernelWriter::write_alu},
    {PGR_OP_MAX, &KernelWriter::write_alu},
    {PGR_OP_RECIP, &KernelWriter::write_alu},
    {PGR_OP_FDIV, &KernelWriter::write_alu},
    {PGR_OP_SQRT, &KernelWriter::write_alu},
    {PGR_OP_FMA, &KernelWriter::write_alu},
    {PGR_OP_TRUNC, &KernelWriter::write_alu},
    {PGR_OP_AND, &KernelWriter::write_alu},
    {PGR_OP_OR, &KernelWriter::write_alu},
    {PGR_OP_XOR, &KernelWriter::write_alu},
    {PGR_OP_SHL, &KernelWriter::write_alu},
    {PGR_OP_SHR, &KernelWriter::write_alu},
    {PGR_OP_CMPLT, &KernelWriter::write_alu},
    {PGR_OP_CMPEQ, &KernelWriter::write_alu},
    {PGR_OP_CMPNE, &KernelWriter::write_alu},
    {PGR_OP_WHERE, &KernelWriter::write_where},
    {PGR_OP_CAST, &KernelWriter::write_cast},
    {PGR_OP_BITCAST, &KernelWriter::write_bitcast},
    {PGR_OP_EXP2, &KernelWriter::write_alu},
    {PGR_OP_LOG2, &KernelWriter::write_alu},
    {PGR_OP_SIN, &KernelWriter::write_alu},
};
// clang-format on

constexpr size_t kOpNumbers = 64;

std::array<Writer, kOpNumbers> writers_by_op() {
  std::array<Writer, kOpNumbers> by_op{};
  for (const WriterRow& row : kWriters) by_op[row.op] = row.writer;
  return by_op;
}
const std::array<Writer, kOpNumbers> kWriterByOp = writers_by_op();

constexpr bool has_writer(uint16_t op) {
  for (const WriterRow& row : kWriters)
    if (row.op == op) return true;
  return false;
}

#define PLUGRAD_CHECK_WRITER(NAME, Pascal, number, lo, hi, op_class, meaning) \
  static_assert(has_writer(number), "op " #NAME " has no row in kWriters");
PGR_KERNEL_OPS(PLUGRAD_CHECK_WRITER)
#undef PLUGRAD_CHECK_WRITER

}  // namespace

KernelWriter::KernelWriter(const sdk::IrView& ir, const Dialect& dialect)
    : ir_(ir),
      dialect_(dialect),
      prelude_(dialect),
      values_(ir.insts().size()),
      use_counts_(ir.insts().size()),
      never_overflows_(operations_without_overflow(ir)) {
  for (uint32_t i = 0; i < ir.insts().size(); ++i)
    for (uint32_t source : ir.sources(i)) ++use_counts_[source];
  if (ir.contract() && dialect.mul_add) find_mul_adds();
}

std::string KernelWriter::write() {
  const bool has_local_size =
      std::any_of(std::begin(ir_.header().local_size), std::end(ir_.header().local_size),
                  [](uint32_t size) { return size != 1; });
  sdk::require(!has_local_size || dialect_.groups, PGR_STATUS_UNSUPPORTED,
               std::string("dialect ") + dialect_.name + " has groups of one work-item only");
  depth_ = dialect_.groups ? 1 : 2;
  loops_ = plan_loops(ir_, dialect_.groups ? dialect_.groups->most_turns : 0);
  for (current_ = 0; current_ < ir_.insts().size(); ++current_) {
    require_lanes();
    (this->*kWriterByOp[inst(current_).op])(current_);
  }
  const std::string kernel =
      dialect_.groups ? work_item_function() : group_function() + entry_function();
  const std::string text = prelude_.text() + "\n" + kernel;
  return dialect_.header +
         std::string(ir_.contract() ? dialect_.contract_on : dialect_.contract_off) +
         shims_for(*dialect_.shims, text) + text;
}

void KernelWriter::require_lanes() const {
  const bool is_alu = sdk::op_info(inst(current_).op)->op_class == PGR_OP_CLASS_ALU;
  sdk::require(!is_alu || !dialect_.only_moves_lanes || inst(current_).lanes == 1,
               PGR_STATUS_UNSUPPORTED,
               std::string("dialect ") + dialect_.name + " has no " +
                   std::string(sdk::op_info(inst(current_).op)->name) + " of several lanes");
}

void KernelWriter::line(const std::string& text) {
  body_.append(size_t{2} * depth_, ' ');
  body_ += text;
  body_ += '\n';
}

std::string KernelWriter::use(uint32_t number, Prec loosest) {
  Value& value = values_[number];
  if (value.is_pending) {
    value.is_pending = false;
    pending_.erase(std::find(pending_.begin(), pending_.end(), number));
    reads_.insert(reads_.end(), value.reads.begin(), value.reads.end());
  }
  return value.prec > loosest ? "(" + value.text + ")" : value.text;
}

// For an expression that contains its operand twice.
std::string KernelWriter::use_name(uint32_t number) {
  if (values_[number].is_pending) settle(number);
  return use(number, Prec::Unary);
}

// For an index or bound, which C converts to 64 bits.
std::string KernelWriter::use_index(uint32_t number, Prec loosest) {
  const bool is_literal = inst(number).op == PGR_OP_CONST;
  return is_literal ? without_suffix(use(number, loosest)) : use(number, loosest);
}

void KernelWriter::define(uint32_t number, std::string text, Prec prec) {
  Value& value = values_[number];
  if (dialect_.byte_mask && prec == Prec::Loose && is_mask(number) && value.mask_bits == 8) {
    text = expand(dialect_.byte_mask, {{'T', value_type(number)}, {'0', text}});
    prec = Prec::Unary;
  }
  value.text = std::move(text);
  value.prec = prec;
  value.reads.swap(reads_);
  reads_.clear();
  if (use_counts_[number] == 0) return;
  value.is_pending = true;
  pending_.push_back(number);
  if (use_counts_[number] > 1 || value.text.size() > kLongestInline) settle(number);
}

std::string KernelWriter::value_type(uint32_t number) {
  const Type type = type_of(number);
  if (!is_mask(number)) return prelude_.type(type);
  return prelude_.type({mask_dtype(values_[number].mask_bits), type.lanes});
}

// Emits a pending value as a named variable.
void KernelWriter::settle(uint32_t number) {
  Value& value = values_[number];
  const bool is_load = inst(number).op == PGR_OP_LOAD;
  std::string name =
      is_load ? "val" + std::to_string(next_val_++) : "alu" + std::to_string(next_alu_++);
  line("const " + value_type(number) + " " + name + " = " + value.text + ";");
  value.text = std::move(name);
  value.prec = Prec::Atom;
  value.is_pending = false;
  value.reads.clear();
  pending_.erase(std::find(pending_.begin(), pending_.end(), number));
}

void KernelWriter::settle_all() {
  while (!pending_.empty()) settle(pending_.front());
}

// Before a write to `memory`: emits the pending values that read it.
void KernelWriter::settle_readers(uint32_t memory) {
  for (size_t i = 0; i < pending_.size();) {
    const std::vector<uint32_t>& reads = values_[pending_[i]].reads;
    const bool is_reader = std::any_of(reads.begin(), reads.end(),
                                       [&](uint32_t read) { return may_overlap(read, memory); });
    if (is_reader)
      settle(pending_[i]);
    else
      ++i;
  }
}

uint32_t KernelWriter::mask_bits_for(uint32_t number) const {
  for (uint32_t source : ir_.sources(number))
    if (inst(source).lanes > 1)
      return is_mask(source) ? values_[source].mask_bits : bits_of(inst(source).dtype);
  return 32;
}

std::string KernelWriter::convert(std::string text, Type from, Type to) {
  if (from.dtype == to.dtype) return text;
  return expand(to.lanes > 1 ? dialect_.convert_vector : dialect_.convert_scalar,
                {{'T', prelude_.type(to)}, {'0', text}});
}

std::string KernelWriter::splat(Type type, const std::string& text) {
  if (dialect_.splat_helper) prelude_.helper(*dialect_.splat_helper, type, type);
  return expand(dialect_.splat, {{'T', prelude_.type(type)}, {'0', text}});
}

std::string KernelWriter::select(Type type, const std::string& gate, const std::string& yes,
                                 const std::string& no, Prec& prec) {
  prec = dialect_.select ? Prec::Atom : Prec::Loose;
  if (!dialect_.select) return gate + " ? " + yes + " : " + no;
  return prelude_.helper(*dialect_.select, type, type) + "(" + gate + ", " + yes + ", " + no + ")";
}

std::string KernelWriter::operand(uint32_t number, uint32_t lanes, uint32_t mask_bits,
                                  Prec loosest) {
  const Type type = type_of(number);
  if (type.dtype == PGR_DTYPE_BOOL && lanes > 1)
    return mask_operand(number, lanes, mask_bits, loosest);
  if (type.lanes == lanes) return use(number, loosest);
  std::string text = splat({type.dtype, lanes}, use(number, Prec::Atom));
  return Prec::Unary > loosest ? "(" + text + ")" : text;
}

std::string KernelWriter::mask_operand(uint32_t number, uint32_t lanes, uint32_t mask_bits,
                                       Prec loosest) {
  const uint32_t wanted = mask_dtype(mask_bits);
  if (inst(number).lanes == 1) {
    const std::string all = "(" + use(number, Prec::Unary) + " ? -1 : 0)";
    std::string text = splat({wanted, lanes}, all);
    return Prec::Unary > loosest ? "(" + text + ")" : text;
  }
  const uint32_t own = values_[number].mask_bits;
  if (own == mask_bits) return use(number, loosest);
  return convert(use(number, Prec::Loose), {mask_dtype(own), lanes}, {wanted, lanes});
}

}  // namespace plugrad::render

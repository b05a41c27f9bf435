// Decomposition: applies the tables of this folder to a fixpoint, until only ops that the device
// claims remain.
//   before   exp2 f32 %x            after   a polynomial, if the device has no exp2
//   before   add f16 %a, %b         after   cast f16 (add f32 (cast f32 %a), (cast f32 %b))
//   before   load i8 %p[%i]         after   bitcast i8 (load u8 %p[%i]), if it cannot store i8
// 64-bit integers stay: emulate_int64 replaces them after linearise.
#include "codegen/lowering/lowering.h"

#include "base/check.h"
#include "codegen/emit/remainder.h"
#include "codegen/kernel.h"
#include "codegen/passes/passes.h"

namespace plugrad::codegen {
namespace {

// The dtype of the same size that replaces one that cannot be cast or stored: the other signedness,
// or the bits of a float; Void for none.
DType sibling(DType dtype) {
  switch (dtype) {
    case DType::Bool:
    case DType::I8:
    case DType::F8E4M3:
    case DType::F8E5M2:
      return DType::U8;
    case DType::U8:
      return DType::I8;
    case DType::I16:
    case DType::F16:
    case DType::BF16:
      return DType::U16;
    case DType::U16:
      return DType::I16;
    case DType::U32:
      return DType::I32;
    default:
      return DType::Void;
  }
}

const Lowering& device_of(const Match& m) {
  return m.context<Lowering>();
}

[[noreturn]] void refuse(Op op, DType dtype) {
  fail(ErrorKind::Unsupported,
       "[codegen] the device has no {} for {} and nothing to make it of; {}", op_info(op).name,
       name_of(dtype),
       dtype == DType::F64 ? "cast to f32, or use a device that has it, such as CPU"
                           : "cast to another dtype");
}

void check_stored(DType dtype, const Lowering& device) {
  if (device.stored(dtype) != dtype)
    fail(ErrorKind::Unsupported,
         "[codegen] the device cannot store {}; cast to a dtype that it stores", name_of(dtype));
}

// Errors: Unsupported if the device does not claim the node's op; 64-bit integers are exempt.
void check_claimed(const Graph& g, Id id, const Lowering& device) {
  const Node& n = g[id];
  const DType dtype = n.dtype;
  if (n.op == Op::Load) return check_stored(dtype, device);
  if (n.op == Op::Store) return check_stored(g[g.sources(n)[2]].dtype, device);
  if (n.op == Op::Reduce) {
    const Op op = reduce_parts(g, id).op;
    if (!is_64_bit_integer(dtype) && !device.reduces(op, dtype)) refuse(op, dtype);
  } else if (n.op == Op::Cast) {
    const DType from = g[n.src[0]].dtype;
    if (!device.casts(from) || !device.casts(dtype))
      refuse(n.op, device.casts(from) ? dtype : from);
  } else if (is_alu(n.op) && n.op != Op::Bitcast && !is_remainder(n)) {
    const DType operand = operand_dtype(g, n);
    if (!is_64_bit_integer(operand) && !device.has(n.op, operand)) refuse(n.op, operand);
  }
}

}  // namespace

bool Lowering::reduces(Op op, DType dtype) const {
  const bool can =
      has(op, dtype) || (op == Op::Max && has(Op::CmpLt, dtype) && has(Op::Where, dtype));
  return can && claims_storage(caps_, dtype);
}

DType Lowering::stored(DType dtype) const {
  if (claims_storage(caps_, dtype) || is_64_bit_integer(dtype)) return dtype;
  const DType other = sibling(dtype);
  return other != DType::Void && claims_storage(caps_, other) ? other : DType::Void;
}

DType Lowering::castable_sibling(DType dtype) const {
  const DType other = sibling(dtype);
  return has(Op::Cast, other) && has(Op::Bitcast, other) ? other : DType::Void;
}

void Lowering::record_exact(Id small, Id wide) {
  exact_[small] = wide;
  pending_.emplace_back(small, wide);
}

Id Lowering::exact(Id small) {
  if (rewriter_ != nullptr)
    std::erase_if(pending_, [&](const std::pair<Id, Id>& noted) {
      const Id result = rewriter_->result(noted.first);
      if (result != kNoId) exact_[result] = noted.second;
      return result != kNoId;
    });
  const auto known = exact_.find(small);
  return known == exact_.end() ? kNoId : known->second;
}

bool lacks_op(const Graph& g, const Match& m) {
  const Node& n = g[m.root];
  return !device_of(m).has(n.op, operand_dtype(g, n));
}

bool lacks_op_beside_add(const Graph& g, const Match& m) {
  const DType dtype = operand_dtype(g, g[m.root]);
  return lacks_op(g, m) && (!is_float(dtype) || device_of(m).has(Op::Add, dtype));
}

bool lacks_source_cast(const Graph& g, const Match& m) {
  return !device_of(m).casts(g[g[m.root].src[0]].dtype);
}

bool lacks_result_cast(const Graph& g, const Match& m) {
  return !device_of(m).casts(g[m.root].dtype) && !lacks_source_cast(g, m);
}

bool lacks_cast(const Graph& g, const Match& m) {
  return lacks_source_cast(g, m) || !device_of(m).casts(g[m.root].dtype);
}

bool lacks_reduce(const Graph& g, const Match& m) {
  return !device_of(m).reduces(reduce_parts(g, m.root).op, g[m.root].dtype);
}

bool has_words(const Lowering& device, DType dtype) {
  if (dtype != DType::F64) return true;
  // Without one of these, pairs of u32 emulate 64-bit integers; they have no bitcasts to f64.
  for (Op op : {Op::Add, Op::Mul, Op::And, Op::Or, Op::Xor, Op::Shl, Op::Shr, Op::CmpLt, Op::Cast,
                Op::Bitcast})
    if (!device.has(op, DType::I64) || !device.has(op, DType::U64)) return false;
  return true;
}

const RuleTable& lowering_table() {
  static const RuleTable table{memory_rules(),       bool_rules(),        narrow_rules(),
                               u32_rules(),          small_float_rules(), small_integer_rules(),
                               basic_rules(),        division_rules(),    exponential_rules(),
                               trigonometric_rules()};
  return table;
}

void decompose(Kernel& kernel) {
  Lowering device(*kernel.caps);
  Rewriter rewriter(kernel.graph, lowering_table(), {.fixpoint = true, .context = &device});
  device.follow(rewriter);
  kernel.sink = rewriter(kernel.sink);
  compact(kernel);
  for (Id id = 0; id < kernel.graph.size(); ++id) check_claimed(kernel.graph, id, device);
}

}  // namespace plugrad::codegen

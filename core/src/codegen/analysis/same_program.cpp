#include "codegen/analysis/same_program.h"

#include <cstring>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "ir/fold.h"
#include "ir/op.h"
#include "plugrad/plugin_api/kernel_ir.h"

namespace plugrad::codegen {
namespace {

template <class Row>
std::vector<Row> rows(std::span<const std::byte> ir, uint32_t offset, uint32_t stride,
                      uint32_t count) {
  std::vector<Row> out(count);
  for (uint32_t i = 0; i < count; ++i)
    std::memcpy(&out[i], ir.data() + offset + size_t{i} * stride, sizeof(Row));
  return out;
}

constexpr int kIterations = 3;
constexpr int64_t kLargestElement = 1000;  // drawn for integers that are loaded

// Values as nodes of one graph, in which equal ones are one node: constants and parameters that
// have a number are Const nodes, and so are integers, in one iteration of each loop.
class Values {
 public:
  explicit Values(uint64_t seed) : seed_(seed) {}
  Graph& graph() { return graph_; }
  /// Equal for both programs where what they draw for is equal.
  int64_t draw(uint64_t what, int64_t below) const {
    const uint64_t words[] = {seed_, what};
    const uint64_t hash = hash64(std::as_bytes(std::span(words)));
    return below <= 1 ? 0 : static_cast<int64_t>(hash % static_cast<uint64_t>(below));
  }

 private:
  Graph graph_;
  uint64_t seed_;
};

// The effects of a program, in order: loops, conditions, stores.
class Program {
 public:
  Program(std::span<const std::byte> ir, std::span<const uint64_t> numbers, Values& values)
      : numbers_(numbers), drawn_(values), graph_(values.graph()) {
    std::memcpy(&header_, ir.data(), sizeof header_);
    operands_ = rows<uint32_t>(ir, header_.operand_offset, sizeof(uint32_t), header_.operand_count);
    params_ =
        rows<pgr_ir_param>(ir, header_.param_offset, header_.param_stride, header_.param_count);
    for (const pgr_ir_param& p : params_) buffers_ += p.kind == PGR_PARAM_BUFFER;
    effects_ = {header_.flags};
    effects_.insert(effects_.end(), std::begin(header_.local_size), std::end(header_.local_size));
    effects_.insert(effects_.end(), std::begin(header_.group_count), std::end(header_.group_count));
    for (const auto& inst :
         rows<pgr_ir_inst>(ir, header_.inst_offset, header_.inst_stride, header_.inst_count))
      value_.push_back(value_of(inst));
  }

  bool takes_each_number() const {
    return params_.size() == buffers_ + numbers_.size() && used_ == numbers_.size();
  }

  friend bool are_same(const Program& a, const Program& b) {
    return a.rounds_ ? a.effects_ == b.effects_ : !b.rounds_;
  }

 private:
  Id constant(int64_t value, DType dtype) { return graph_.constant(dtype, value); }

  std::vector<Id> sources_of(const pgr_ir_inst& inst) const {
    const auto numbers = inst.src_count <= 4 ? std::span(inst.src).first(inst.src_count)
                                             : std::span<const uint32_t>(operands_).subspan(
                                                   inst.src[0], inst.src_count);
    std::vector<Id> ids;
    for (const uint32_t number : numbers) ids.push_back(value_[number]);
    return ids;
  }

  Id value_of(const pgr_ir_inst& inst) {
    const auto dtype = static_cast<DType>(inst.dtype);
    const auto op = static_cast<Op>(inst.op);
    const uint64_t arg = inst.arg | uint64_t{inst.lanes} << 48;
    const std::vector<Id> sources = sources_of(inst);
    switch (inst.op) {
      case PGR_OP_CONST:
        return graph_.add(Op::Const, dtype, {}, constant_bits(inst.arg, dtype));
      case PGR_OP_PARAM:
        return param(inst, dtype);
      case PGR_OP_ARRAY:
        return graph_.add(op, dtype, {}, arg);
      case PGR_OP_GROUP_ID:
        return constant(
            drawn_.draw(arg << 8 | inst.op, static_cast<int64_t>(header_.group_count[inst.arg])),
            dtype);
      case PGR_OP_LOCAL_ID:
        return constant(drawn_.draw(arg << 8 | inst.op, header_.local_size[inst.arg]), dtype);
      case PGR_OP_LOAD:
        return load(inst, dtype, sources);
      default:
        break;
    }
    if (inst.op == PGR_OP_LOOP || dtype == DType::Void) return effect(inst, sources, dtype);
    const bool is_exact = !is_float(dtype) || moves(inst, sources);
    rounds_ |= !is_exact;
    const bool may_fold = inst.lanes == 1 && (!is_float(dtype) || inst.op == PGR_OP_CAST);
    const Id made = may_fold && is_exact ? add_folded(graph_, op, dtype, sources, arg)
                                         : graph_.add(op, dtype, sources, arg);
    return is_integer(dtype) && inst.lanes == 1 ? drawn_unless_known(made, dtype) : made;
  }

  Id param(const pgr_ir_inst& inst, DType dtype) {
    const uint64_t number = inst.arg - buffers_;
    if (inst.arg < buffers_ || number >= numbers_.size())
      return graph_.add(Op::Param, dtype, {}, inst.arg);
    used_ += params_[inst.arg].dtype == inst.dtype && is_first_use(number);
    return graph_.add(Op::Const, dtype, {}, constant_bits(numbers_[number], dtype));
  }

  // Memory that the program writes is read as it is after the effects so far.
  Id load(const pgr_ir_inst& inst, DType dtype, std::span<const Id> sources) {
    const Node& memory = graph_[sources[0]];
    const bool is_fixed =
        memory.op == Op::Param && (params_[memory.arg].flags & PGR_PARAM_WRITE) == 0;
    const uint64_t version = is_fixed ? 0 : effects_.size();
    const Id made = graph_.add(Op::Load, dtype, sources, uint64_t{inst.lanes} << 48 | version);
    return is_integer(dtype) && inst.lanes == 1 ? drawn_unless_known(made, dtype) : made;
  }

  Id drawn_unless_known(Id id, DType dtype) {
    return is_const(graph_, id) ? id : constant(drawn_.draw(id, kLargestElement), dtype);
  }

  Id effect(const pgr_ir_inst& inst, std::span<const Id> sources, DType dtype) {
    rounds_ |= inst.op == PGR_OP_ATOMIC_ADD;
    const size_t place = effects_.size();
    effects_.insert(effects_.end(), {inst.op, inst.lanes, inst.arg});
    effects_.insert(effects_.end(), sources.begin(), sources.end());
    if (inst.op != PGR_OP_LOOP) return graph_.add(Op::Nop, dtype, {}, place);
    const int64_t begin = const_int(graph_, sources[0]), end = const_int(graph_, sources[1]);
    return constant(begin + drawn_.draw(place << 8 | inst.op, end - begin), dtype);
  }

  // Whether the result is one of the operands, as it is or in a wider dtype.
  bool moves(const pgr_ir_inst& inst, std::span<const Id> sources) const {
    switch (inst.op) {
      case PGR_OP_NEG:
      case PGR_OP_MAX:
      case PGR_OP_WHERE:
      case PGR_OP_VECTOR:
      case PGR_OP_LANE:
      case PGR_OP_BITCAST:
        return true;
      case PGR_OP_CAST: {
        const DType from = graph_[sources[0]].dtype;
        return is_float(from) && size_of(from) <= size_of(static_cast<DType>(inst.dtype));
      }
      default:
        return false;
    }
  }

  bool is_first_use(uint64_t number) {
    if (seen_.size() <= number) seen_.resize(number + 1);
    return !std::exchange(seen_[number], 1);
  }

  std::span<const uint64_t> numbers_;
  Values& drawn_;
  Graph& graph_;
  pgr_ir_header header_;
  std::vector<pgr_ir_param> params_;
  std::vector<uint32_t> operands_;
  std::vector<Id> value_;      // by instruction
  std::vector<uint8_t> seen_;  // by number
  std::vector<uint64_t> effects_;
  uint64_t buffers_ = 0, used_ = 0;
  bool rounds_ = false;
};

}  // namespace

bool is_same_program(std::span<const std::byte> with_constants, std::span<const std::byte> taking,
                     std::span<const uint64_t> numbers) {
  for (uint64_t seed = 1; seed <= kIterations; ++seed) {
    Values values(seed);
    const Program taker(taking, numbers, values);
    if (!taker.takes_each_number() || !are_same(taker, Program(with_constants, {}, values)))
      return false;
  }
  return true;
}

}  // namespace plugrad::codegen

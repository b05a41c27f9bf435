#include "render/writer/integer_ranges.h"

#include <algorithm>
#include <optional>

#include "plugrad/sdk/op_info.h"

namespace plugrad::render {
namespace {

__extension__ using Wide = __int128;  // sums and products of 64-bit integers fit

struct Range {
  Wide low = 0, high = 0;
};

bool is_int(uint32_t dtype) {
  return sdk::dtype_info(dtype)->is_int;
}

Range all_of(uint32_t dtype) {
  if (dtype == PGR_DTYPE_BOOL) return {0, 1};
  const sdk::DtypeInfo& info = *sdk::dtype_info(dtype);
  const uint32_t bits = info.size_bytes * 8;
  if (info.is_signed) return {-(Wide{1} << (bits - 1)), (Wide{1} << (bits - 1)) - 1};
  return {0, (Wide{1} << bits) - 1};
}

Range joined(Range a, Range b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

Range product(Range a, Range b) {
  const auto [low, high] =
      std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
  return {low, high};
}

// One pass over the instructions; loop counters are ranges, so that no instruction is visited
// twice.
class Ranges {
 public:
  explicit Ranges(const sdk::IrView& ir) : ir_(ir), of_(ir.insts().size()), exact_(of_.size()) {
    for (uint32_t i = 0; i < of_.size(); ++i) visit(i);
  }
  std::vector<bool> take_exact() { return std::move(exact_); }

  // For a LOOP: the largest end minus the smallest begin.
  uint64_t most_turns(uint32_t loop) const {
    const Wide turns = source(loop, 1).high - source(loop, 0).low;
    return static_cast<uint64_t>(std::clamp<Wide>(turns, 0, UINT64_MAX));
  }

 private:
  const pgr_ir_inst& inst(uint32_t number) const { return ir_.inst(number); }
  Range source(uint32_t number, uint32_t which) const { return of_[ir_.source(number, which)]; }

  void visit(uint32_t number) {
    const uint32_t dtype = inst(number).dtype;
    if (!is_int(dtype) && dtype != PGR_DTYPE_BOOL) return;
    const Range all = all_of(dtype);
    const std::optional<Range> found = range_of(number);
    exact_[number] = found && found->low >= all.low && found->high <= all.high;
    of_[number] = exact_[number] ? *found : all;
  }

  std::optional<Range> range_of(uint32_t number) const {
    switch (inst(number).op) {
      case PGR_OP_CONST:
        return constant(number);
      case PGR_OP_PARAM:
        return param(number);
      case PGR_OP_GROUP_ID:
        return below(ir_.header().group_count[inst(number).arg]);
      case PGR_OP_LOCAL_ID:
        return below(ir_.header().local_size[inst(number).arg]);
      case PGR_OP_LOOP:
        return Range{source(number, 0).low,
                     std::max(source(number, 0).low, source(number, 1).high - 1)};
      case PGR_OP_LANE:
        return source(number, 0);
      case PGR_OP_VECTOR:
        return of_sources(number, 0);
      case PGR_OP_WHERE:
        return of_sources(number, 1);
      case PGR_OP_CAST:
        return is_int(inst(ir_.source(number, 0)).dtype) ? std::optional(source(number, 0))
                                                         : std::nullopt;
      default:
        return arithmetic(number);
    }
  }

  std::optional<Range> arithmetic(uint32_t number) const {
    if (inst(number).op == PGR_OP_NEG && is_int(inst(number).dtype))
      return Range{-source(number, 0).high, -source(number, 0).low};
    if (ir_.sources(number).size() < 2 || !is_int(inst(ir_.source(number, 0)).dtype)) return {};
    const Range a = source(number, 0), b = source(number, 1);
    if (b.low == b.high) {
      if (const auto found = with_constant(inst(number).op, a, b.low)) return found;
    }
    switch (inst(number).op) {
      case PGR_OP_ADD:
        return Range{a.low + b.low, a.high + b.high};
      case PGR_OP_SUB:
        return Range{a.low - b.high, a.high - b.low};
      case PGR_OP_MUL:
        return narrow(a) && narrow(b) ? std::optional(product(a, b)) : std::nullopt;
      case PGR_OP_MAX:
        return Range{std::max(a.low, b.low), std::max(a.high, b.high)};
      default:
        return {};
    }
  }

  static std::optional<Range> with_constant(uint32_t op, Range a, Wide b) {
    const bool is_count = b >= 0 && b < 63;
    const int count = is_count ? static_cast<int>(b) : 0;
    if (op == PGR_OP_IDIV && b > 0) return Range{a.low / b, a.high / b};
    if (op == PGR_OP_MOD && b > 0) return remainder(a, b);
    if (op == PGR_OP_AND && b >= 0) return Range{0, b};
    if (op == PGR_OP_SHR && is_count) return Range{a.low >> count, a.high >> count};
    if (op == PGR_OP_SHL && is_count && narrow(a))
      return product(a, {Wide{1} << count, Wide{1} << count});
    return {};
  }

  // The product of two such ranges fits 128 bits.
  static bool narrow(Range range) {
    constexpr Wide most = Wide{1} << 63;
    return range.low >= -most && range.high <= most;
  }

  static Range remainder(Range a, Wide divisor) {
    const Wide most = divisor - 1;
    return {a.low >= 0 ? 0 : std::max(-most, a.low), a.high <= 0 ? 0 : std::min(most, a.high)};
  }

  static Range below(uint64_t count) { return {0, count == 0 ? Wide{0} : Wide{count} - 1}; }

  Range constant(uint32_t number) const {
    const uint64_t bits = inst(number).arg;
    const bool is_signed = sdk::dtype_info(inst(number).dtype)->is_signed;
    const Wide value = is_signed ? Wide{static_cast<int64_t>(bits)} : Wide{bits};
    return {value, value};
  }

  std::optional<Range> param(uint32_t number) const {
    const pgr_ir_param& param = ir_.params()[inst(number).arg];
    if (param.kind == PGR_PARAM_BUFFER) return {};
    if (param.dtype != PGR_DTYPE_I32 && param.dtype != PGR_DTYPE_I64) return {};
    return Range{param.min, param.max};
  }

  Range of_sources(uint32_t number, uint32_t first) const {
    const auto sources = ir_.sources(number);
    Range all = of_[sources[first]];
    for (uint32_t from : sources.subspan(first)) all = joined(all, of_[from]);
    return all;
  }

  const sdk::IrView& ir_;
  std::vector<Range> of_;
  std::vector<bool> exact_;
};

}  // namespace

std::vector<bool> operations_without_overflow(const sdk::IrView& ir) {
  return Ranges(ir).take_exact();
}

std::vector<uint64_t> most_turns_of_loops(const sdk::IrView& ir) {
  const Ranges ranges(ir);
  std::vector<uint64_t> turns(ir.insts().size(), 0);
  for (uint32_t i = 0; i < turns.size(); ++i)
    if (ir.inst(i).op == PGR_OP_LOOP) turns[i] = ranges.most_turns(i);
  return turns;
}

}  // namespace plugrad::render

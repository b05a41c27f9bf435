// Rewrites linear kernel IR so that each 64-bit value becomes two u32. A translation, no rewrite of
// a graph.
//   before   %5 = LOAD i64 %a[%i]    after   %7 = LOAD u32 %a[2*%i]    %9 = LOAD u32 %a[2*%i + 1]
//            %6 = ADD i64 %5, %5             %10 = ADD u32 %7, %7, the carry into ADD u32 %9, %9
// Memory is little-endian: the low word comes first. Indices drop their upper words, because no
// index exceeds i32.
#include "codegen/lowering/int64_emulation.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "codegen/kernel.h"

namespace plugrad::codegen {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

DType dtype_of_inst(const pgr_ir_inst& inst) {
  return static_cast<DType>(inst.dtype);
}
bool is_64_bit(const pgr_ir_inst& inst) {
  return is_64_bit_integer(dtype_of_inst(inst));
}
bool is_signed(const pgr_ir_inst& inst) {
  return dtype_of_inst(inst) == DType::I64;
}

class Int64Emulation {
 public:
  Int64Emulation(const IrWriter& in, bool divides_words)
      : in_(in),
        math_(out_, divides_words),
        now_(in.insts().size(), kNone),
        pairs_(in.insts().size()) {}

  IrWriter run() {
    for (const pgr_ir_param& param : in_.params()) add_param(param);
    for (const pgr_ir_array& array : in_.arrays()) add_array(array);
    for (uint32_t i = 0; i < in_.insts().size(); ++i) step(i);
    return std::move(out_);
  }

 private:
  const pgr_ir_inst& inst(uint32_t number) const { return in_.insts()[number]; }

  void add_param(pgr_ir_param row) {
    const bool wide = is_64_bit_integer(static_cast<DType>(row.dtype));
    constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int32_t>::max());
    if (row.elem_count > (wide ? kMost / 2 : kMost))
      fail(ErrorKind::Unsupported,
           "[codegen] a buffer of {} elements of {}: the device has no 64-bit integers to count "
           "them with; use smaller tensors",
           row.elem_count, name_of(static_cast<DType>(row.dtype)));
    if (wide) {
      row.dtype = PGR_DTYPE_U32;
      row.elem_count *= 2;
    }
    out_.param(row);
  }

  void add_array(pgr_ir_array row) {
    const bool wide = is_64_bit_integer(static_cast<DType>(row.dtype));
    if (wide) {
      row.dtype = PGR_DTYPE_U32;
      row.align_bytes = std::max(row.align_bytes / 2, 4u);
    }
    const uint32_t low = out_.array(row);
    arrays_.push_back({low, wide ? out_.array(row) : low});
  }

  void step(uint32_t i) {
    const pgr_ir_inst& n = inst(i);
    switch (n.op) {
      case PGR_OP_ARRAY:
        return array(i);
      case PGR_OP_PARAM:
        now_[i] = out_.inst(n.op, is_64_bit(n) ? DType::U32 : dtype_of_inst(n), 1, {}, n.arg);
        return;
      case PGR_OP_GROUP_ID:
      case PGR_OP_LOCAL_ID:
        return counter(i, out_.inst(n.op, DType::I32, 1, {}, n.arg));
      case PGR_OP_LOOP:
        return counter(i, out_.inst(n.op, DType::I32, 1,
                                    {index(in_.sources(i)[0]), index(in_.sources(i)[1])}));
      case PGR_OP_LOAD:
        return load(i);
      case PGR_OP_STORE:
        return store(i);
      case PGR_OP_ASYNC_COPY:
        return async_copy(i);
      case PGR_OP_END_LOOP:
      case PGR_OP_END_IF:
        divided_ = {};
        break;
      default:
        break;
    }
    if (is_64_bit(n))
      pairs_[i] = value_64(i);
    else
      now_[i] = value_32(i);
  }

  void array(uint32_t i) {
    const auto& n = inst(i);
    const DType dtype = is_64_bit(n) ? DType::U32 : dtype_of_inst(n);
    const auto [low, high] = arrays_[n.arg];
    now_[i] = out_.inst(PGR_OP_ARRAY, dtype, 1, {}, low);
    if (is_64_bit(n)) pairs_[i] = {now_[i], out_.inst(PGR_OP_ARRAY, dtype, 1, {}, high)};
  }

  void counter(uint32_t i, uint32_t number) {
    now_[i] = number;
    if (is_64_bit(inst(i))) pairs_[i] = math_.from(number, DType::I32, true);
  }

  // An index as i32.
  uint32_t index(uint32_t i) {
    if (!is_64_bit(inst(i))) return now_[i];
    return now_[i] != kNone ? now_[i] : math_.cast(pairs_[i].low, DType::I32);
  }

  // The instruction with renumbered sources.
  uint32_t copy(uint32_t i) {
    std::vector<uint32_t> sources;
    for (uint32_t s : in_.sources(i)) sources.push_back(now_[s]);
    return out_.inst(inst(i).op, dtype_of_inst(inst(i)), inst(i).lanes, sources, inst(i).arg);
  }

  uint32_t word_index(uint32_t index, uint32_t word) {
    const uint32_t first = math_.op(PGR_OP_MUL, DType::I32, {index, constant(2)});
    return word == 0 ? first : math_.op(PGR_OP_ADD, DType::I32, {first, constant(word)});
  }
  uint32_t constant(uint64_t value) { return out_.constant(DType::I32, value); }
  uint32_t lane(uint32_t value, uint32_t number) {
    if (math_.lanes(value) == 1) return value;
    return out_.inst(PGR_OP_LANE, static_cast<DType>(out_.insts()[value].dtype), 1, {value},
                     number);
  }
  uint32_t vector(DType dtype, const std::vector<uint32_t>& lanes) {
    return lanes.size() == 1
               ? lanes[0]
               : out_.inst(PGR_OP_VECTOR, dtype, static_cast<uint32_t>(lanes.size()), lanes);
  }

  void load(uint32_t i) {
    const auto sources = in_.sources(i);
    if (!is_64_bit(inst(i))) {
      std::vector<uint32_t> now = {now_[sources[0]], index(sources[1])};
      for (uint32_t s : sources.subspan(2)) now.push_back(now_[s]);
      now_[i] = out_.inst(PGR_OP_LOAD, dtype_of_inst(inst(i)), inst(i).lanes, now);
      return;
    }
    const uint32_t at = index(sources[1]);
    if (inst(sources[0]).op == PGR_OP_ARRAY) {
      const Pair from = pairs_[sources[0]];
      pairs_[i] = {out_.inst(PGR_OP_LOAD, DType::U32, inst(i).lanes, {from.low, at}),
                   out_.inst(PGR_OP_LOAD, DType::U32, inst(i).lanes, {from.high, at})};
      return;
    }
    std::vector<uint32_t> low, high;
    for (uint32_t l = 0; l < inst(i).lanes; ++l) {
      low.push_back(load_word(i, at, 2 * l));
      high.push_back(load_word(i, at, 2 * l + 1));
    }
    pairs_[i] = {vector(DType::U32, low), vector(DType::U32, high)};
  }

  uint32_t load_word(uint32_t i, uint32_t at, uint32_t word) {
    const auto sources = in_.sources(i);
    std::vector<uint32_t> now = {now_[sources[0]], word_index(at, word)};
    if (sources.size() == 4) {
      const Pair other = pairs_[sources[3]];
      now.push_back(lane(now_[sources[2]], word / 2));
      now.push_back(lane(word % 2 == 0 ? other.low : other.high, word / 2));
    }
    return out_.inst(PGR_OP_LOAD, DType::U32, 1, now);
  }

  void store(uint32_t i) {
    const auto sources = in_.sources(i);
    const uint32_t at = index(sources[1]);
    if (!is_64_bit(inst(sources[2]))) {
      std::vector<uint32_t> now = {now_[sources[0]], at, now_[sources[2]]};
      if (sources.size() == 4) now.push_back(now_[sources[3]]);
      out_.inst(PGR_OP_STORE, DType::Void, inst(i).lanes, now);
      return;
    }
    const Pair value = pairs_[sources[2]];
    if (inst(sources[0]).op == PGR_OP_ARRAY) {
      const Pair to = pairs_[sources[0]];
      out_.inst(PGR_OP_STORE, DType::Void, inst(i).lanes,
                {to.low, at, broadcast(value.low, inst(i).lanes)});
      out_.inst(PGR_OP_STORE, DType::Void, inst(i).lanes,
                {to.high, at, broadcast(value.high, inst(i).lanes)});
      return;
    }
    for (uint32_t word = 0; word < 2u * inst(i).lanes; ++word) {
      const uint32_t part = lane(word % 2 == 0 ? value.low : value.high, word / 2);
      std::vector<uint32_t> now = {now_[sources[0]], word_index(at, word), part};
      if (sources.size() == 4) now.push_back(lane(now_[sources[3]], word / 2));
      out_.inst(PGR_OP_STORE, DType::Void, 1, now);
    }
  }

  // Copied elements are never 64 bits wide (asynchronous_load).
  void async_copy(uint32_t i) {
    const auto sources = in_.sources(i);
    std::vector<uint32_t> now = {now_[sources[0]], index(sources[1]), now_[sources[2]],
                                 index(sources[3])};
    if (sources.size() == 5) now.push_back(now_[sources[4]]);
    out_.inst(PGR_OP_ASYNC_COPY, DType::Void, inst(i).lanes, now);
  }

  uint32_t broadcast(uint32_t value, uint32_t lanes) {
    return math_.lanes(value) == lanes ? value
                                       : out_.inst(PGR_OP_VECTOR, DType::U32, lanes, {value});
  }

  Pair pair(uint32_t i, size_t which) const { return pairs_[in_.sources(i)[which]]; }

  Pair value_64(uint32_t i) {
    const pgr_ir_inst& n = inst(i);
    const bool sign = is_signed(n);
    switch (n.op) {
      case PGR_OP_CONST:
        return math_.constant(n.arg);
      case PGR_OP_VECTOR:
      case PGR_OP_LANE:
        return lanes_of(i);
      case PGR_OP_WHERE:
        return math_.where(now_[in_.sources(i)[0]], pair(i, 1), pair(i, 2));
      case PGR_OP_CAST:
      case PGR_OP_BITCAST:
        return converted(i);
      case PGR_OP_NEG:
        return math_.negate(pair(i, 0));
      case PGR_OP_ADD:
        return math_.add(pair(i, 0), pair(i, 1));
      case PGR_OP_SUB:
        return math_.sub(pair(i, 0), pair(i, 1));
      case PGR_OP_MUL:
        return math_.mul(pair(i, 0), pair(i, 1));
      case PGR_OP_MAX:
        return math_.max(pair(i, 0), pair(i, 1), sign);
      case PGR_OP_AND:
      case PGR_OP_OR:
      case PGR_OP_XOR:
        return math_.bitwise(n.op, pair(i, 0), pair(i, 1));
      case PGR_OP_SHL:
        return math_.shift_left(pair(i, 0), pair(i, 1));
      case PGR_OP_SHR:
        return math_.shift_right(pair(i, 0), pair(i, 1), sign);
      case PGR_OP_IDIV:
        return division(i).quotient;
      case PGR_OP_MOD:
        return division(i).remainder;
      default:
        break;
    }
    fail(ErrorKind::Unsupported, "[codegen] op {} on {}: the device has no 64-bit integers", n.op,
         name_of(dtype_of_inst(n)));
  }

  Pair lanes_of(uint32_t i) {
    std::vector<uint32_t> low, high;
    for (uint32_t s : in_.sources(i)) {
      low.push_back(broadcast(pairs_[s].low, inst(s).lanes));
      high.push_back(broadcast(pairs_[s].high, inst(s).lanes));
    }
    const pgr_ir_inst& n = inst(i);
    return {out_.inst(n.op, DType::U32, n.lanes, low, n.arg),
            out_.inst(n.op, DType::U32, n.lanes, high, n.arg)};
  }

  Pair converted(uint32_t i) {
    const uint32_t source = in_.sources(i)[0];
    const pgr_ir_inst& from = inst(source);
    if (is_64_bit(from)) return pairs_[source];
    if (inst(i).op != PGR_OP_CAST) no_bits(from, inst(i));
    return math_.from(now_[source], dtype_of_inst(from), is_signed(inst(i)));
  }

  [[noreturn]] static void no_bits(const pgr_ir_inst& from, const pgr_ir_inst& to) {
    fail(ErrorKind::Unsupported,
         "[codegen] {} is made of the bits of {}, and the device has no 64-bit integers; cast to "
         "f32 before",
         name_of(dtype_of_inst(to)), name_of(dtype_of_inst(from)));
  }

  // A quotient and a remainder of the same operands share one loop.
  Int64Math::Division division(uint32_t i) {
    const auto sources = in_.sources(i);
    if (divided_.a != sources[0] || divided_.b != sources[1])
      divided_ = {sources[0], sources[1], math_.divide(pair(i, 0), pair(i, 1), is_signed(inst(i)))};
    return divided_.result;
  }

  // An instruction whose result is narrower than 64 bits; its sources may not be.
  uint32_t value_32(uint32_t i) {
    const pgr_ir_inst& n = inst(i);
    if (n.src_count == 0 || !is_64_bit(inst(in_.sources(i)[0]))) return copy(i);
    const bool sign = is_signed(inst(in_.sources(i)[0]));
    switch (n.op) {
      case PGR_OP_CMPLT:
        return math_.less(pair(i, 0), pair(i, 1), sign);
      case PGR_OP_CMPEQ:
        return math_.equal(pair(i, 0), pair(i, 1));
      case PGR_OP_CMPNE:
        return math_.invert(math_.equal(pair(i, 0), pair(i, 1)));
      case PGR_OP_CAST:
        return math_.to(pair(i, 0), dtype_of_inst(n), sign);
      case PGR_OP_BITCAST:
        no_bits(inst(in_.sources(i)[0]), n);
      case PGR_OP_END_LOOP:
        return copy(i);
      default:
        break;
    }
    fail(ErrorKind::Unsupported,
         "[codegen] op {} from a 64-bit integer to {}: the device has no 64-bit integers", n.op,
         name_of(dtype_of_inst(n)));
  }

  struct Divided {
    uint32_t a = kNone, b = kNone;
    Int64Math::Division result{};
  };

  const IrWriter& in_;
  IrWriter out_;
  Int64Math math_;
  std::vector<uint32_t> now_;  // by instruction: its number in the new kernel
  std::vector<Pair> pairs_;    // by instruction: the words of a 64-bit value or array
  std::vector<std::pair<uint32_t, uint32_t>> arrays_;
  Divided divided_;
};

bool uses_unclaimed(const IrWriter& kernel, uint32_t i, const pgr_device_caps& caps) {
  const pgr_ir_inst& n = kernel.insts()[i];
  const auto lacks = [&](DType dtype) {
    return is_64_bit_integer(dtype) && !claims(caps, static_cast<Op>(n.op), dtype);
  };
  const auto source = [&](size_t which) {
    return dtype_of_inst(kernel.insts()[kernel.sources(i)[which]]);
  };
  if (n.op == PGR_OP_STORE) return lacks(source(2));
  if (is_compare(static_cast<Op>(n.op))) return lacks(source(0));
  if (n.op == PGR_OP_CAST && lacks(source(0))) return true;
  const bool plain = n.op == PGR_OP_PARAM || n.op == PGR_OP_ARRAY || n.op == PGR_OP_CONST ||
                     n.op == PGR_OP_VECTOR || n.op == PGR_OP_LANE;
  return !plain && lacks(dtype_of_inst(n));
}

}  // namespace

bool needs_int64_emulation(const IrWriter& kernel, const pgr_device_caps& caps) {
  for (uint32_t i = 0; i < kernel.insts().size(); ++i)
    if (uses_unclaimed(kernel, i, caps)) return true;
  return false;
}

IrWriter emulate_int64(const IrWriter& kernel, const pgr_device_caps& caps) {
  return Int64Emulation(kernel,
                        claims(caps, Op::IDiv, DType::U32) && claims(caps, Op::Mod, DType::U32))
      .run();
}

}  // namespace plugrad::codegen

// Ops that the device does not claim for a dtype become ops that it does.
//   before   exp2 f32 %x        after   a polynomial, where the device has no exp2
//   before   add f16 %a, %b     after   cast f16 (add f32 (cast f32 %a), (cast f32 %b)), where it
//   has no f16 arithmetic before   load i8 %p[%i]     after   bitcast i8 (load u8 %p[%i]), where it
//   cannot store i8
// What becomes of which dtype: docs/accuracy.md. 64-bit integers stay as they are: linearise splits
// them.
#include <unordered_map>

#include "base/check.h"
#include "codegen/claims.h"
#include "codegen/lowering/small_floats.h"
#include "codegen/lowering/transcendental.h"
#include "codegen/lowering/unsigned_words.h"
#include "codegen/passes/passes.h"
#include "ir/facts.h"
#include "ir/fold.h"

namespace plugrad::codegen {
namespace {

bool is_small_integer(DType dtype) {
  return is_integer(dtype) && size_of(dtype) < 4 && size_of(dtype) > 0;
}

// The dtype of the same size that stands in where one cannot be cast or stored: the other
// signedness, or the bits of a float; Void for none.
DType sibling(DType dtype) {
  switch (dtype) {
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

class Decomposer {
 public:
  Decomposer(Graph& graph, const pgr_device_caps& caps) : g_(graph), caps_(caps) {}

  // The root of a graph that means the same in claimed ops. What replaces a node is looked at
  // again.
  Id operator()(Id root) {
    std::vector<Id> stack = {root};
    while (!stack.empty()) {
      const Id id = stack.back();
      if (done(id) != kNoId) {
        stack.pop_back();
        continue;
      }
      const size_t waiting = stack.size();
      for (Id s : g_.sources(id))
        if (done(s) == kNoId) stack.push_back(s);
      if (stack.size() > waiting) continue;
      const Id rebuilt = rebuild(id), replaced = step(rebuilt);
      if (replaced == rebuilt) {
        set_done(rebuilt, rebuilt);
        set_done(id, rebuilt);
      } else if (done(replaced) != kNoId) {
        set_done(id, done(replaced));
        keep_exact(replaced, done(replaced));
      } else {
        stack.push_back(replaced);
      }
    }
    return done(root);
  }

 private:
  Id done(Id id) const { return id < done_.size() ? done_[id] : kNoId; }
  void set_done(Id id, Id result) {
    if (done_.size() <= id) done_.resize(g_.size(), kNoId);
    done_[id] = result;
  }
  Id rebuild(Id id) {
    std::vector<Id> sources;
    for (Id s : g_.sources(id)) sources.push_back(done(s));
    return g_.with_sources(id, sources);
  }
  bool has(Op op, DType dtype) const { return claims(caps_, op, dtype); }

  // One decomposition of a node whose sources are claimed already; the node itself where there is
  // none to do.
  Id step(Id id) {
    const Node& n = g_[id];
    if (n.op == Op::Load) return step_load(id);
    if (n.op == Op::Store) return step_store(id);
    if (n.op == Op::Reduce) return step_reduce(id);
    if (!is_alu(n.op)) return id;
    if (n.op == Op::Cast) return step_cast(id);
    if (n.op == Op::Bitcast) return step_bitcast(id);
    const DType dtype = is_compare(n.op) ? g_[n.src[0]].dtype : n.dtype;
    if (has(n.op, dtype)) return id;
    if (is_small_float(dtype)) return in_wider(id, DType::F32);
    if (is_small_integer(dtype)) return in_wider(id, is_unsigned(dtype) ? DType::U32 : DType::I32);
    if (dtype == DType::Bool) return in_words(id);
    const Id other = dtype == DType::U32 ? u32_in_i32(g_, id) : id;
    const Id replaced = other != id ? other : by_op(id, dtype);
    if (replaced == id && !is_wide_integer(dtype)) refuse(n.op, dtype);
    return replaced;
  }

  [[noreturn]] void refuse(Op op, DType dtype) {
    fail(ErrorKind::Unsupported,
         "[codegen] the device has no {} for {} and nothing to make it of; {}", op_info(op).name,
         name_of(dtype),
         dtype == DType::F64 ? "cast to f32, or use a device that has it, such as CPU"
                             : "cast to another dtype");
  }

  Id by_op(Id id, DType dtype) {
    const Node& n = g_[id];
    const Id a = n.src[0], b = n.src_count > 1 ? n.src[1] : kNoId;
    if (is_float(dtype) && !has(Op::Add, dtype)) return id;
    switch (n.op) {
      case Op::Exp2:
        return make_exp2(g_, a);
      case Op::Log2:
        return make_log2(g_, a);
      case Op::Sin:
        return make_sin(g_, a);
      case Op::Trunc:
        return make_trunc(g_, a);
      case Op::Recip:
        return g_.binary(Op::FDiv, g_.constant(dtype, 1.0), a);
      case Op::FDiv:
        return make_fdiv(g_, a, b);
      case Op::Sqrt:
        return make_sqrt(g_, a);
      case Op::IDiv:
        return is_wide_integer(dtype) ? id : make_idiv(g_, a, b);
      case Op::Mod:
        return is_wide_integer(dtype)
                   ? id
                   : g_.binary(Op::Sub, a, g_.binary(Op::Mul, b, g_.binary(Op::IDiv, a, b)));
      case Op::Fma:
        return make_fma(id, dtype);
      case Op::Sub:
        return has(Op::Add, dtype) ? g_.binary(Op::Add, a, g_.unary(Op::Neg, b)) : id;
      case Op::Neg:
        return has(Op::Mul, dtype) ? g_.binary(Op::Mul, a, g_.constant(dtype, int64_t{-1})) : id;
      case Op::Max:
        return has(Op::CmpLt, dtype) ? make_max(a, b, dtype) : id;
      case Op::Where:
        return make_where(id, dtype);
      case Op::CmpEq:
        return has(Op::CmpNe, dtype) ? invert(g_.binary(Op::CmpNe, a, b)) : id;
      case Op::CmpNe:
        return has(Op::CmpEq, dtype) ? invert(g_.binary(Op::CmpEq, a, b)) : id;
      default:
        return id;
    }
  }

  Id invert(Id condition) {
    return g_.binary(Op::Xor, condition, g_.constant(DType::Bool, int64_t{1}));
  }

  // NaN wins from either side: it is not less than anything, and anything that is not itself is
  // taken.
  Id make_max(Id a, Id b, DType dtype) {
    const Id larger = g_.where(g_.binary(Op::CmpLt, a, b), b, a);
    return is_float(dtype) ? g_.where(g_.binary(Op::CmpNe, b, b), b, larger) : larger;
  }

  // In f64 the product of two f32 is exact, and their sum rounded to odd rounds to f32 as the exact
  // sum does.
  Id make_fma(Id id, DType dtype) {
    const Node& n = g_[id];
    if (is_integer(dtype))
      return g_.binary(Op::Add, g_.binary(Op::Mul, n.src[0], n.src[1]), n.src[2]);
    if (dtype != DType::F32 || !has(Op::Add, DType::F64)) return id;
    const auto wide = [&](size_t i) { return g_.cast(n.src[i], DType::F64); };
    const Id product = g_.binary(Op::Mul, wide(0), wide(1)), addend = wide(2),
             sum = g_.binary(Op::Add, product, addend);
    const Id added = g_.binary(Op::Sub, sum, product);
    const Id error = g_.binary(Op::Add, g_.binary(Op::Sub, product, g_.binary(Op::Sub, sum, added)),
                               g_.binary(Op::Sub, addend, added));
    const Id zero = g_.constant(DType::F64, 0.0), bits = g_.add(Op::Bitcast, DType::I64, {sum});
    const auto i64 = [&](int64_t v) { return g_.constant(DType::I64, v); };
    const Id grows =
        g_.binary(Op::CmpEq, g_.binary(Op::CmpLt, zero, error), g_.binary(Op::CmpLt, zero, sum));
    const Id inexact =
        g_.binary(Op::Or, g_.binary(Op::CmpLt, error, zero), g_.binary(Op::CmpLt, zero, error));
    const Id even = g_.binary(Op::CmpEq, g_.binary(Op::And, bits, i64(1)), i64(0));
    const Id moved = g_.binary(Op::Add, bits, g_.where(grows, i64(1), i64(-1)));
    const Id odd = g_.where(g_.binary(Op::And, inexact, even), moved, bits);
    return g_.cast(g_.add(Op::Bitcast, DType::F64, {odd}), DType::F32);
  }

  // A choice by masks: all ones where the condition holds.
  Id make_where(Id id, DType dtype) {
    const Node& n = g_[id];
    if (is_float(dtype)) {
      const DType bits = dtype == DType::F64 ? DType::U64 : DType::U32;
      const auto as_bits = [&](Id x) { return g_.add(Op::Bitcast, bits, {x}); };
      return g_.add(Op::Bitcast, dtype,
                    {g_.add(Op::Where, bits, {n.src[0], as_bits(n.src[1]), as_bits(n.src[2])})});
    }
    if (!has(Op::And, dtype) || !has(Op::Cast, DType::Bool)) return id;
    const Id mask = g_.unary(Op::Neg, g_.cast(n.src[0], dtype));
    const Id other = g_.binary(Op::Xor, mask, g_.constant(dtype, int64_t{-1}));
    return g_.binary(Op::Or, g_.binary(Op::And, n.src[1], mask),
                     g_.binary(Op::And, n.src[2], other));
  }

  // Small integers keep their low bits whatever is above. f16 and bf16 have so few bits that add,
  // multiply, divide and square root in f32 round correctly when the result is rounded a second
  // time.
  Id in_wider(Id id, DType wide) {
    const Node& n = g_[id];
    if (n.op == Op::Fma && is_float(n.dtype)) refuse(n.op, n.dtype);
    std::vector<Id> sources;
    for (Id s : g_.sources(id))
      sources.push_back(g_[s].dtype == DType::Bool ? s : widening(s, wide));
    if (is_compare(n.op)) return g_.add(n.op, DType::Bool, sources, n.arg);
    const Op op = n.op;
    const DType dtype = n.dtype;
    return rounded(g_.add(op, wide, sources, n.arg), op, dtype);
  }

  // A maximum of small floats is one of them: its f32 is used as it is, and of bf16 it is the upper
  // half.
  Id rounded(Id wide, Op op, DType dtype) {
    if (!is_small_float(dtype) || (op != Op::Max && op != Op::Neg)) return g_.cast(wide, dtype);
    const bool by_bits = dtype == DType::BF16 && has(Op::Shr, DType::U32) && casts(DType::U16) &&
                         has(Op::Bitcast, DType::BF16);
    const Id small = by_bits ? upper_half(wide) : g_.cast(wide, dtype);
    exact_[small] = wide;
    return small;
  }
  Id upper_half(Id wide) {
    const Id bits = g_.add(Op::Bitcast, DType::U32, {wide});
    const Id upper = g_.binary(Op::Shr, bits, g_.constant(DType::U32, int64_t{16}));
    return g_.add(Op::Bitcast, DType::BF16, {g_.cast(upper, DType::U16)});
  }
  Id widening(Id x, DType wide) {
    const auto known = exact_.find(x);
    return wide == DType::F32 && known != exact_.end() ? known->second : g_.cast(x, wide);
  }
  void keep_exact(Id from, Id to) {
    const auto known = exact_.find(from);
    if (known != exact_.end()) exact_[to] = known->second;
  }

  // Bool ops on words that are 0 or 1.
  Id word_of(Id condition) {
    return g_.where(condition, g_.constant(DType::U32, int64_t{1}),
                    g_.constant(DType::U32, int64_t{0}));
  }
  Id truth_of(Id word) { return g_.binary(Op::CmpNe, word, g_.constant(DType::U32, int64_t{0})); }
  Id in_words(Id id) {
    const Node& n = g_[id];
    std::vector<Id> sources;
    for (size_t i = 0; i < n.src_count; ++i)
      sources.push_back(n.op == Op::Where && i == 0 ? n.src[0] : word_of(n.src[i]));
    if (is_compare(n.op)) return g_.add(n.op, DType::Bool, sources);
    return truth_of(g_.add(n.op, DType::U32, sources));
  }

  // Accumulators are memory: reductions take a dtype that can be stored and computed with. A
  // maximum that is no op is a choice, which linearise writes.
  bool reduces(Op op, DType dtype) const {
    const bool can =
        has(op, dtype) || (op == Op::Max && has(Op::CmpLt, dtype) && has(Op::Where, dtype));
    return can && claims_storage(caps_, dtype);
  }
  Id step_reduce(Id id) {
    const ReduceParts parts = reduce_parts(g_, id);
    const DType dtype = g_[id].dtype;
    if (reduces(parts.op, dtype) || is_wide_integer(dtype)) return id;
    const bool words = dtype == DType::U32;
    if (!is_small_float(dtype) && !is_small_integer(dtype) && dtype != DType::Bool && !words)
      refuse(parts.op, dtype);
    if (words && parts.op == Op::Max) return ordered_maximum(parts);
    const DType wide = is_small_float(dtype)          ? DType::F32
                       : is_unsigned(dtype) && !words ? DType::U32
                                                      : DType::I32;
    std::vector<Id> values;
    for (Id v : parts.values)
      values.push_back(dtype == DType::Bool ? word_of(v) : widening(v, wide));
    const Id reduced = make_reduce(g_, parts.op, values,
                                   std::vector<Id>(parts.ranges.begin(), parts.ranges.end()));
    return dtype == DType::Bool ? truth_of(reduced) : rounded(reduced, parts.op, dtype);
  }

  // The largest u32 is the largest i32 when the sign bits of all are flipped.
  Id ordered_maximum(const ReduceParts& parts) {
    const Id sign = g_.constant(DType::I32, int64_t{INT32_MIN});
    std::vector<Id> values;
    for (Id v : parts.values)
      values.push_back(g_.binary(Op::Xor, g_.add(Op::Bitcast, DType::I32, {v}), sign));
    const Id largest =
        make_reduce(g_, Op::Max, values, std::vector<Id>(parts.ranges.begin(), parts.ranges.end()));
    return g_.add(Op::Bitcast, DType::U32, {g_.binary(Op::Xor, largest, sign)});
  }

  // --- casts

  bool casts(DType dtype) const { return has(Op::Cast, dtype) || is_wide_integer(dtype); }

  Id step_cast(Id id) {
    const Node& n = g_[id];
    const Id x = n.src[0];
    const DType from = g_[x].dtype, to = n.dtype;
    if (to == DType::F32 && exact_.contains(x)) return exact_[x];
    if (casts(from) && casts(to)) return id;
    if (to == DType::Bool) return g_.binary(Op::CmpNe, x, g_.constant(from, int64_t{0}));
    if (from == DType::Bool)
      return g_.where(x, g_.constant(to, int64_t{1}), g_.constant(to, int64_t{0}));
    if (!casts(from)) {
      if (from == DType::U32) return cast_from_u32(g_, x, to);
      if (is_small_float(from)) return g_.cast(small_to_f32(g_, x), to);
      if (is_small_integer(from)) return g_.cast(widened(x), to);
      refuse(Op::Cast, from);
    }
    if (to == DType::U32) return cast_to_u32(g_, x);
    if (is_small_float(to))
      return f32_to_small(g_, fits_f32(from) ? g_.cast(x, DType::F32) : to_odd_f32(g_, x), to);
    if (is_small_integer(to))
      return narrowed(is_float(from) ? saturated(x, to) : g_.cast(x, DType::U32), to);
    refuse(Op::Cast, to);
  }

  // f32 holds every value of the dtype.
  static bool fits_f32(DType dtype) { return dtype == DType::F32 || size_of(dtype) < 4; }

  DType castable_sibling(DType dtype) {
    const DType other = sibling(dtype);
    if (!has(Op::Cast, other) || !has(Op::Bitcast, other)) refuse(Op::Cast, dtype);
    return other;
  }

  // By way of the dtype of the other signedness, whose upper bits are put right.
  Id widened(Id x) {
    const DType dtype = g_[x].dtype, other = castable_sibling(dtype);
    const Id word =
        g_.cast(g_.add(Op::Bitcast, other, {x}), is_unsigned(dtype) ? DType::U32 : DType::I32);
    const int64_t bits = size_of(dtype) * 8;
    if (is_unsigned(dtype))
      return g_.binary(Op::And, word, g_.constant(DType::U32, (int64_t{1} << bits) - 1));
    const Id shift = g_.constant(DType::I32, 32 - bits);
    return g_.binary(Op::Shr, g_.binary(Op::Shl, word, shift), shift);
  }
  // Out of range is unspecified, but most devices saturate.
  Id saturated(Id x, DType dtype) {
    const int64_t low = is_unsigned(dtype) ? 0 : -(int64_t{1} << (size_of(dtype) * 8 - 1));
    const Id word = g_.cast(x, DType::I32), least = g_.constant(DType::I32, low);
    const Id most = g_.constant(DType::I32, low + (int64_t{1} << size_of(dtype) * 8) - 1);
    return g_.where(g_.binary(Op::CmpLt, word, least), least,
                    g_.where(g_.binary(Op::CmpLt, most, word), most, word));
  }
  Id narrowed(Id word, DType dtype) {
    return g_.add(Op::Bitcast, dtype, {g_.cast(word, castable_sibling(dtype))});
  }

  // Bits of bits are bits.
  Id step_bitcast(Id id) {
    const Id x = g_[id].src[0];
    const DType dtype = g_[id].dtype;
    if (g_[x].dtype == dtype) return x;
    if (g_[x].op == Op::Const) return add_folded(g_, Op::Bitcast, dtype, {x});
    if (g_[x].op != Op::Bitcast) return id;
    const Id first = g_[x].src[0];
    return g_[first].dtype == dtype ? first : g_.add(Op::Bitcast, dtype, {first});
  }

  // --- memory

  // What is stored in place of the dtype.
  DType stored(DType dtype) {
    const DType other = dtype == DType::Bool ? DType::U8 : sibling(dtype);
    if (claims_storage(caps_, dtype) || is_wide_integer(dtype)) return dtype;
    if (other != DType::Void && claims_storage(caps_, other)) return other;
    fail(ErrorKind::Unsupported,
         "[codegen] the device cannot store {}; cast to a dtype that it stores", name_of(dtype));
  }
  Id param_of(Id param, DType dtype) { return g_.add(Op::Param, dtype, {}, g_[param].arg); }
  Id to_stored(Id value, DType dtype) {
    if (g_[value].dtype != DType::Bool) return g_.add(Op::Bitcast, dtype, {value});
    return g_.where(value, g_.constant(dtype, int64_t{1}), g_.constant(dtype, int64_t{0}));
  }

  Id step_load(Id id) {
    const DType dtype = g_[id].dtype, memory = stored(dtype);
    if (memory == dtype) return id;
    std::vector<Id> sources(g_.sources(id).begin(), g_.sources(id).end());
    sources[0] = param_of(sources[0], memory);
    if (sources.size() == 4) sources[3] = to_stored(sources[3], memory);
    const Id bits = g_.add(Op::Load, memory, sources, g_[id].arg);
    if (dtype != DType::Bool) return g_.add(Op::Bitcast, dtype, {bits});
    return g_.binary(Op::CmpNe, bits, g_.constant(memory, int64_t{0}));
  }

  Id step_store(Id id) {
    std::vector<Id> sources(g_.sources(id).begin(), g_.sources(id).end());
    const DType dtype = g_[sources[2]].dtype, memory = stored(dtype);
    if (memory == dtype) return id;
    sources[0] = param_of(sources[0], memory);
    sources[2] = to_stored(sources[2], memory);
    return g_.add(Op::Store, DType::Void, sources, g_[id].arg);
  }

  Graph& g_;
  const pgr_device_caps& caps_;
  std::vector<Id> done_;
  std::unordered_map<Id, Id> exact_;  // small floats, each with an f32 of the same value
};

}  // namespace

void decompose(Kernel& kernel) {
  kernel.sink = Decomposer(kernel.graph, *kernel.caps)(kernel.sink);
  compact(kernel);
}

}  // namespace plugrad::codegen

// Casts of integers of 8 and 16 bits, for devices that cast the dtype of the other signedness only.
#include "codegen/lowering/lowering.h"

namespace plugrad::codegen {
namespace {
using namespace rules;

// By way of the dtype of the other signedness, whose upper bits are put right.
Id from_small_integer(Graph& g, const Match& m) {
  const DType dtype = g[m[x]].dtype, other = m.context<Lowering>().castable_sibling(dtype);
  if (other == DType::Void) return kNoMatch;
  const Id word =
      g.cast(g.add(Op::Bitcast, other, {m[x]}), is_unsigned(dtype) ? DType::U32 : DType::I32);
  const int64_t bits = size_of(dtype) * 8;
  if (is_unsigned(dtype)) {
    const Id mask = g.constant(DType::U32, (int64_t{1} << bits) - 1);
    return g.cast(g.binary(Op::And, word, mask), g[m.root].dtype);
  }
  const Id shift = g.constant(DType::I32, 32 - bits);
  return g.cast(g.binary(Op::Shr, g.binary(Op::Shl, word, shift), shift), g[m.root].dtype);
}

// Out of range is unspecified, but most devices saturate.
Id saturated(Graph& g, Id value, DType dtype) {
  const int64_t low = is_unsigned(dtype) ? 0 : -(int64_t{1} << (size_of(dtype) * 8 - 1));
  const Id word = g.cast(value, DType::I32), least = g.constant(DType::I32, low);
  const Id most = g.constant(DType::I32, low + (int64_t{1} << size_of(dtype) * 8) - 1);
  return g.where(g.binary(Op::CmpLt, word, least), least,
                 g.where(g.binary(Op::CmpLt, most, word), most, word));
}

Id to_small_integer(Graph& g, const Match& m) {
  const DType dtype = g[m.root].dtype, other = m.context<Lowering>().castable_sibling(dtype);
  if (other == DType::Void) return kNoMatch;
  const Id word = is_float(g[m[x]].dtype) ? saturated(g, m[x], dtype) : g.cast(m[x], DType::U32);
  return g.add(Op::Bitcast, dtype, {g.cast(word, other)});
}

// clang-format off
constexpr Rule kSmallIntegers[] = {
    rule("from-small-int", cast(of_class(x, kSmallIntClass)), code<from_small_integer>,
         when(check<lacks_source_cast>)),
    rule("to-small-int", of_class(cast(x), kSmallIntClass), code<to_small_integer>,
         when(check<lacks_result_cast>)),
};
// clang-format on
}  // namespace

std::span<const Rule> small_integer_rules() {
  return kSmallIntegers;
}

}  // namespace plugrad::codegen

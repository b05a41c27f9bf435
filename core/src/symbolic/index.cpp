// Index arithmetic on linear sums: one form for equal sums, floor division and modulus by constants.
//   before  ((r0*28 + r1 + 28) // 28) % 28      after  (r0 + 1) % 28      (r1 < 28)

#include "symbolic/divmod.h"
#include "symbolic/tables.h"

namespace plugrad {
namespace {
using namespace rules;

// Equal sums become one node: terms by id, constant last, x % c + c * (x // c) put together.
Id canonical_sum(Graph& g, const Match& m) {
  auto sum = linear_of(g, m.root);
  if (!sum) return kNoMatch;
  recombine(g, *sum);
  return build(g, *sum, DType::Index);
}

Id simplify_quotient(Graph& g, const Match& m) {
  return split_quotient(g, m.root, m.context<Algebra>().bounds).value_or(kNoMatch);
}

// clang-format off
constexpr Rule kIndex[] = {
    rule("div-by-bounds",  x / c0,             simplify_quotient,    when(c0 > 0)),
    rule("mod-by-bounds",  x % c0,             simplify_quotient,    when(c0 > 0)),
    rule("div-negative",   x / c0,             (x * -1) / (0 - c0),  when(is_index(x) && c0 < 0)),
    rule("mod-negative",   x % c0,             ((x * -1) % (0 - c0)) * -1,  when(is_index(x) && c0 < 0)),
    rule("canonical-sum",  of_class(any_of(x, Op::Add), kIndexClass), canonical_sum),
};
// clang-format on
}  // namespace

std::span<const Rule> index_rules() { return kIndex; }

}  // namespace plugrad

// Index arithmetic: one form for equal linear sums, floor division and modulus by constants.
//   before  ((r0*28 + r1 + 28) // 28) % 28      after  (r0 + 1) % 28      (r1 < 28)

#include "symbolic/rules/divmod.h"
#include "symbolic/rules/tables.h"

namespace plugrad {
namespace {
using namespace rules;

// The node that a single term multiplies; kNoId for other nodes.
Id atom_of(const Graph& g, Id id) {
  if (g[id].op == Op::Mul && is_const(g, g[id].src[1])) id = g[id].src[0];
  const Op op = g[id].op;
  const bool sum =
      op == Op::Add || op == Op::Sub || op == Op::Neg || op == Op::Mul || op == Op::Const;
  return sum ? kNoId : id;
}

// Most sums have two unrelated terms: stop early.
bool is_plain_pair(const Graph& g, const Node& n) {
  const Id left = atom_of(g, n.src[0]);
  if (left == kNoId || is_const(g, n.src[1])) return left != kNoId;
  const Id right = atom_of(g, n.src[1]);
  if (right == kNoId || right == left) return false;
  return g[left].op != Op::FloorMod && g[right].op != Op::FloorMod;
}

// Equal sums become one node: terms by id, constant last, x % c + c * (x // c) merged.
Id canonical_sum(Graph& g, const Match& m) {
  if (is_plain_pair(g, g[m.root])) return kNoMatch;
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
    rule("div-by-bounds", x / c0, code<simplify_quotient>, when(c0 > 0)),
    rule("mod-by-bounds", x % c0, code<simplify_quotient>, when(c0 > 0)),
    rule("div-negative", x / c0, (x * -1) / (0 - c0), when(is_index(x) && c0 < 0)),
    rule("mod-negative", x % c0, ((x * -1) % (0 - c0)) * -1, when(is_index(x) && c0 < 0)),
    rule("canonical-sum", of_class(any_of(x, Op::Add), kIndexClass), code<canonical_sum>),
};
// clang-format on
}  // namespace

std::span<const Rule> index_rules() {
  return kIndex;
}

}  // namespace plugrad

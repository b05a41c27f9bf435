// Bool ops on words that are 0 or 1, for devices that have none on bool.
#include "codegen/kernel.h"
#include "codegen/lowering/lowering.h"

namespace plugrad::codegen {
namespace {
using namespace rules;

constexpr uint64_t kBoolOps = set_of({Op::Add, Op::Sub, Op::Mul, Op::Neg, Op::Max, Op::IDiv,
                                      Op::Mod, Op::And, Op::Or, Op::Xor, Op::Shl, Op::Shr});
constexpr uint64_t kCompares = set_of({Op::CmpLt, Op::CmpEq, Op::CmpNe});

Id word_of(Graph& g, Id condition, DType word = DType::U32) {
  return g.where(condition, g.constant(word, int64_t{1}), g.constant(word, int64_t{0}));
}
Id truth_of(Graph& g, Id word) {
  return g.binary(Op::CmpNe, word, g.constant(g[word].dtype, int64_t{0}));
}

Id in_words(Graph& g, const Match& m) {
  const Op op = g[m.root].op;
  std::vector<Id> sources;
  for (Id s : g.sources(m.root)) sources.push_back(word_of(g, s));
  if (is_compare(op)) return g.add(op, DType::Bool, sources);
  return truth_of(g, g.add(op, DType::U32, sources));
}

Id choose_words(Graph& g, const Match& m) {
  return truth_of(g, g.where(m[x], word_of(g, m[y]), word_of(g, m[z])));
}

Id reduce_words(Graph& g, const Match& m) {
  const ReduceParts parts = reduce_parts(g, m.root);
  const std::vector<Id> ranges(parts.ranges.begin(), parts.ranges.end());
  std::vector<Id> values;
  const Op op = parts.op;
  for (Id v : parts.values) values.push_back(word_of(g, v));
  return truth_of(g, make_reduce(g, op, values, ranges));
}

// clang-format off
constexpr Rule kBools[] = {
    rule("bool-in-words", of_class(one_of(kBoolOps), kBoolClass), code<in_words>,
         when(check<lacks_op>)),
    rule("where-in-words", of_class(where(x, y, z), kBoolClass), code<choose_words>,
         when(check<lacks_op>)),
    rule("compare-bools", one_of(kCompares, of_class(x, kBoolClass), y), code<in_words>,
         when(check<lacks_op>)),
    rule("reduce-bools", of_class(any_of(x, Op::Reduce), kBoolClass), code<reduce_words>,
         when(check<lacks_reduce>)),
    rule("test-for-bool",   of_class(cast(x), kBoolClass), x != 0,         when(check<lacks_cast>)),
    rule("choice-for-bool", cast(of_class(x, kBoolClass)), where(x, 1, 0), when(check<lacks_cast>)),
};
// clang-format on
}  // namespace

std::span<const Rule> bool_rules() {
  return kBools;
}

}  // namespace plugrad::codegen

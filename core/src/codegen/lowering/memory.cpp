// Dtypes that the device cannot store are stored as another dtype of the same size.
#include "codegen/kernel.h"
#include "codegen/lowering/lowering.h"
#include "ir/fold.h"

namespace plugrad::codegen {
namespace {
using namespace rules;

// The dtype in memory; `dtype` itself if nothing replaces it.
DType memory_of(const Match& m, DType dtype) {
  const DType other = m.context<Lowering>().stored(dtype);
  return other == DType::Void ? dtype : other;
}

Id param_of(Graph& g, Id param, DType dtype) {
  return g.add(Op::Param, dtype, {}, g[param].arg);
}

Id to_stored(Graph& g, Id value, DType dtype) {
  if (g[value].dtype != DType::Bool) return g.add(Op::Bitcast, dtype, {value});
  return g.where(value, g.constant(dtype, int64_t{1}), g.constant(dtype, int64_t{0}));
}

bool loads_another(const Graph& g, const Match& m) {
  return memory_of(m, g[m.root].dtype) != g[m.root].dtype;
}
bool stores_another(const Graph& g, const Match& m) {
  const DType dtype = g[g.sources(m.root)[2]].dtype;
  return memory_of(m, dtype) != dtype;
}

Id load_stored(Graph& g, const Match& m) {
  const DType dtype = g[m.root].dtype, memory = memory_of(m, dtype);
  std::vector<Id> sources = to_vector(g.sources(m.root));
  sources[0] = param_of(g, sources[0], memory);
  if (sources.size() == 4) sources[3] = to_stored(g, sources[3], memory);
  const Id bits = g.add(Op::Load, memory, sources, g[m.root].arg);
  if (dtype != DType::Bool) return g.add(Op::Bitcast, dtype, {bits});
  return g.binary(Op::CmpNe, bits, g.constant(memory, int64_t{0}));
}

Id store_stored(Graph& g, const Match& m) {
  std::vector<Id> sources = to_vector(g.sources(m.root));
  const DType memory = memory_of(m, g[sources[2]].dtype);
  sources[0] = param_of(g, sources[0], memory);
  sources[2] = to_stored(g, sources[2], memory);
  return g.add(Op::Store, DType::Void, sources, g[m.root].arg);
}

Id same_bits(Graph& g, const Match& m) {
  return g[m[x]].dtype == g[m.root].dtype ? m[x] : kNoMatch;
}

// clang-format off
constexpr Rule kMemory[] = {
    rule("load-as-sibling",  any_of(x, Op::Load),  code<load_stored>,  when(check<loads_another>)),
    rule("store-as-sibling", any_of(x, Op::Store), code<store_stored>, when(check<stores_another>)),
    rule("bits-to-same",     bitcast(x),           code<same_bits>),
    rule("bits-of-constant", bitcast(c0),          bitcast(c0)),
    rule("bits-of-bits",     bitcast(bitcast(x)),  bitcast(x)),
};
// clang-format on
}  // namespace

std::span<const Rule> memory_rules() {
  return kMemory;
}

}  // namespace plugrad::codegen

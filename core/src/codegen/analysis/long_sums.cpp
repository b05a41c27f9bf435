#include "codegen/analysis/long_sums.h"

#include <algorithm>

#include "codegen/kernel.h"

namespace plugrad::codegen {
namespace {

constexpr int64_t kLong = 1024, kPart = 512, kShortest = 32;  // terms of one accumulator
// With more, totals would leave the registers that the parts need; such tiles have short sums.
constexpr size_t kMostSums = 12;

// The largest divisor up to `most`, or `most` where there is none of use.
int64_t step_of(int64_t size, int64_t most) {
  for (int64_t step = most; step >= most / 4 && step > 1; --step)
    if (size % step == 0) return step;
  return most;
}

}  // namespace

bool is_float_sum(const Graph& g, Id reduce) {
  return is_float(g[reduce].dtype) && reduce_parts(g, reduce).op == Op::Add;
}

std::optional<SumParts> parts_of_sums(const Graph& g, std::span<const Id> loops,
                                      std::span<const Id> sums) {
  int64_t terms = 0;  // that an accumulator takes in an iteration of the innermost loop
  for (Id sum : sums) {
    const ReduceParts parts = reduce_parts(g, sum);
    if (!is_float_sum(g, sum)) continue;
    if (std::ranges::any_of(parts.values, [&](Id v) { return g[v].op == Op::Wmma; })) return {};
    terms = std::max(terms, static_cast<int64_t>(parts.values.size()));
  }
  if (terms == 0 || sums.size() > kMostSums) return {};
  int64_t all = terms;
  for (Id loop : loops) all *= range_size(g, loop);
  if (all <= kLong) return {};
  for (size_t i = loops.size(); i-- > 0; terms *= range_size(g, loops[i])) {
    if (terms * range_size(g, loops[i]) <= kPart) continue;
    const bool is_last = i + 1 == loops.size();
    if (!is_last && terms >= kShortest) return SumParts{i + 1, 0};
    const int64_t most = kPart / terms;
    if (most < 2 || is_bounded(g[loops[i]])) return {};
    return SumParts{i, step_of(range_size(g, loops[i]), most)};
  }
  return {};
}

}  // namespace plugrad::codegen

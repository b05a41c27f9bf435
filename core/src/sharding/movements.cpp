// Which collectives lead from one spec to another, and in which order.
#include <bit>

#include "sharding/collectives.h"

namespace plugrad::sharding {
namespace {

/// The axes of `a` before the first in which it differs from `b`.
AxisSet common_prefix(AxisSet a, AxisSet b) {
  const AxisSet differ = a ^ b;
  const AxisSet below_first = differ == 0 ? ~AxisSet{0} : (differ & (~differ + 1)) - 1;
  return a & below_first;
}

/// Whether all axes of `added` come after those of `before`.
bool is_suffix(AxisSet before, AxisSet added) {
  return before == 0 || added == 0 ||
         static_cast<int>(std::bit_width(before)) <= std::countr_zero(added);
}

/// The dimension of `to` that terms along some of `axes` are scattered into; the axes, or 0.
std::pair<size_t, AxisSet> scatter_of(const Spec& from, const Spec& to, AxisSet axes) {
  for (size_t d = 0; d < from.dims.size(); ++d) {
    const AxisSet added = to.dims[d] & ~from.dims[d];
    if (added != 0 && (added & axes) == added && (from.dims[d] & ~to.dims[d]) == 0 &&
        is_suffix(from.dims[d], added))
      return {d, added};
  }
  return {0, 0};
}

/// A dimension to which all axes that leave `d` move, as its last ones; or the rank.
size_t exchange_of(const Spec& now, const Spec& to, size_t d, AxisSet leaving) {
  for (size_t e = 0; e < now.dims.size(); ++e)
    if (e != d && to.dims[e] == (now.dims[e] | leaving) && is_suffix(now.dims[e], leaving))
      return e;
  return now.dims.size();
}

}  // namespace

std::vector<Movement> movements(const Spec& from, const Spec& to) {
  std::vector<Movement> moves;
  Spec now = from;
  // Terms of another reduction are no terms of this one.
  AxisSet terms = from.reduction == to.reduction ? from.partial & ~to.partial : from.partial;
  while (terms != 0) {
    const auto [d, added] = scatter_of(now, to, terms);
    if (added == 0) break;
    moves.push_back({CollectiveKind::ReduceScatter, added, d, d});
    now.dims[d] |= added;
    terms &= ~added;
  }
  if (terms != 0) moves.push_back({CollectiveKind::AllReduce, terms});
  for (size_t d = 0; d < now.dims.size(); ++d) {
    const AxisSet leaving = now.dims[d] & ~common_prefix(now.dims[d], to.dims[d]);
    if (leaving == 0) continue;
    const size_t e = exchange_of(now, to, d, leaving);
    now.dims[d] &= ~leaving;
    if (e == now.dims.size()) {
      moves.push_back({CollectiveKind::AllGather, leaving, d, d});
      continue;
    }
    moves.push_back({CollectiveKind::AllToAll, leaving, d, e});
    now.dims[e] |= leaving;
  }
  return moves;
}

}  // namespace plugrad::sharding

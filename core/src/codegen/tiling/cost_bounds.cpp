// The cost of bounded terms of a sum, which are 0 outside the bounds: a loop that is not expanded
// runs only between them, expanded copies carry a condition.
#include "codegen/analysis/predication.h"
#include "codegen/tiling/cost_model.h"
#include "ir/facts.h"
#include "symbolic/linear.h"

namespace plugrad::codegen {
namespace {

// Instructions that apply a mask: two for both factors of a term, one if the other factor is
// constant. A value between them, chosen, not measured.
constexpr double kMaskUses = 1.5;
// Instructions that make a mask from loop conditions and lane constants: one comparison.
constexpr double kMaskMade = 1;

// The share of the range's iterations that satisfy the clause, if it involves one other range; a
// clause is one of a pair of borders.
double share_of(const Graph& g, const LoopBound& b) {
  if (b.rest.terms.size() > 1) return 1;
  const int64_t size = range_size(g, b.range);
  const Id other = b.rest.terms.empty() ? kNoId : b.rest.terms[0].id;
  const bool is_rest =
      other != kNoId && g[other].op == Op::FloorMod && is_const(g, g[other].src[1]);
  if (other != kNoId && g[other].op != Op::Range && !is_rest) return 1;
  const int64_t count = other == kNoId ? 1
                        : is_rest      ? const_int(g, g[other].src[1])
                                       : range_size(g, other);
  if (size * count > 4096) return 1;
  int64_t holds = 0;
  for (int64_t o = 0; o < count; ++o)
    for (int64_t i = 0; i < size; ++i)
      holds +=
          b.factor * i + (other == kNoId ? 0 : b.rest.terms[0].factor * o) + b.rest.constant < 0;
  return static_cast<double>(holds) / static_cast<double>(size * count);
}

}  // namespace

void CostModel::add_bounds(Id reduce) {
  const auto place = [&](Id r) {
    return static_cast<size_t>(std::ranges::find(kernel_.axes, r) - kernel_.axes.begin());
  };
  const std::vector<LoopBound> clauses = loop_bounds(kernel_.graph, open_, reduce);
  for (const LoopBound& b : clauses) {
    Bound bound{.axis = place(b.range)};
    for (Id r : open_.members(open_[b.clause]))
      if (r != b.range) bound.deciding.push_back(place(r));
    bound.share = share_of(kernel_.graph, b);
    bound.factors.assign(kernel_.axes.size(), 0);
    bound.factors[bound.axis] = b.factor;
    bound.constant = b.rest.constant;
    bound.is_linear = true;
    for (const Term& t : b.rest.terms)
      if (const size_t at = place(t.id); at < kernel_.axes.size())
        bound.factors[at] += t.factor;
      else
        bound.is_linear = false;
    bounds_.push_back(std::move(bound));
  }
}

bool CostModel::holds(const Bound& bound, const Tile& tile) const {
  const auto expands = [&](size_t axis) {
    return tile.amounts[axis] > 1 || axis == tile.vector_axis;
  };
  return !expands(bound.axis) && std::ranges::none_of(bound.deciding, expands);
}

// The share of a term's copies for which the surrounding loops leave the clause undecided, i.e. the
// border; the other copies have no condition. A vector has it if one of its lanes has.
double CostModel::undecided(const Bound& bound, const Tile& tile) const {
  if (!bound.is_linear) return 1;
  struct Expanded {
    int64_t factor, copies, width;
  };
  std::vector<Expanded> expanded;
  struct {
    int64_t iterations = 1, step = 0;
  } loop;  // the loop that decides the clause; 0 iterations: more than one loop
  int64_t farthest = bound.constant;  // of the copies of one iteration
  int64_t low = bound.constant, high = bound.constant, copies = 1;
  const auto widen = [&](int64_t reach) { (reach < 0 ? low : high) += reach; };
  for (size_t a = 0; a < sizes_.size(); ++a) {
    const int64_t factor = bound.factors[a];
    if (factor == 0) continue;
    const int64_t amount = std::min(tile.amounts[a], sizes_[a]);
    const int64_t width = a == tile.vector_axis ? std::min(lanes_, amount) : 1;
    const int64_t iterations = sizes_[a] / amount;  // the remainder is a nest of its own
    widen(factor * amount * (iterations - 1));
    farthest += std::max<int64_t>(0, factor * (amount - 1));
    widen(factor * (width - 1));
    expanded.push_back({factor, amount / width, width});
    copies *= amount / width;
    if (iterations == 1) continue;
    loop = {loop.iterations == 1 ? iterations : 0, factor * amount};
  }
  if (copies > 4096) return 1;
  int64_t open = 0;
  for (int64_t copy = 0; copy < copies; ++copy) {
    int64_t offset = 0, rest = copy;
    for (const Expanded& e : expanded) {
      offset += e.factor * e.width * (rest % e.copies);
      rest /= e.copies;
    }
    open += low + offset < 0 && high + offset >= 0;
  }
  const double share = static_cast<double>(open) / static_cast<double>(copies);
  if (!leaves_no_sum(tile) || loop.iterations <= 1) return share;
  // partition_loops.cpp splits off borders that are less than half of such a loop.
  int64_t border = 0;
  for (int64_t i = 0; i < loop.iterations; ++i) border += farthest + loop.step * i >= 0;
  if (4 * border > loop.iterations) return share;
  return share * static_cast<double>(border) / static_cast<double>(loop.iterations);
}

// Instructions per copy for lanes with a condition on indices: both factors are masked; the mask is
// made where loops decide it.
double CostModel::masking(const Tile& tile) const {
  const auto is_open = [&](const Bound& b) {
    for (size_t a = 0; a < sizes_.size(); ++a)
      if (b.factors[a] != 0 && tile.amounts[a] != sizes_[a]) return true;
    return !b.is_linear;
  };
  const bool varies =
      std::ranges::any_of(bounds_, [&](const Bound& b) { return !holds(b, tile) && is_open(b); });
  return kMaskUses + (varies ? kMaskMade : 0);
}

bool CostModel::has_bounds(size_t axis, const Tile& tile) const {
  return std::ranges::any_of(bounds_,
                             [&](const Bound& b) { return b.axis == axis && holds(b, tile); });
}

// Finds the output axes that hints of stores bound (ir/kernel_ast.h).
void CostModel::find_variable_sizes() {
  const Graph& g = kernel_.graph;
  varies_.assign(kernel_.axes.size(), false);
  for (Id hint : nodes_of(g, kernel_.sink, Op::Bounded)) {
    const auto position = linear_of(g, g[hint].src[0]), count = linear_of(g, g[hint].src[1]);
    if (!position || !count || count->terms.empty()) continue;
    for (size_t a = 0; a < kernel_.axes.size(); ++a) {
      const int64_t step = position->factor_of(kernel_.axes[a]);
      if (step != 0 && step % count->terms[0].factor == 0) varies_[a] = true;
    }
  }
}

// How many times more elements tiles compute than the sizes have, on average over all sizes: a tile
// that is partly beyond a size runs whole.
double CostModel::beyond_sizes(const Tile& tile) const {
  double factor = 1;
  for (size_t a = 0; a < varies_.size(); ++a) {
    if (!varies_[a] || tile.is_part(a)) continue;
    int64_t size = sizes_[a], amount = tile.amounts[a];
    for (auto part = std::ranges::find(tile.outer, a); part != tile.outer.end();) {
      const auto inner = static_cast<size_t>(part - tile.outer.begin());
      size *= sizes_[inner];
      amount *= tile.amounts[inner];
      part = std::ranges::find(tile.outer, inner);
    }
    factor *= static_cast<double>(size + amount) / static_cast<double>(size + 1);
  }
  return factor;
}

}  // namespace plugrad::codegen

// Which matrix products go to tensor cores, and how many tiles a team of work-items holds.
#include <algorithm>

#include "codegen/search/apply.h"
#include "codegen/search/changes.h"
#include "codegen/search/heuristic.h"
#include "codegen/search/tensor_core.h"
#include "codegen/search/tile_search.h"

namespace plugrad::codegen {
namespace {

using Kind = Optimisation::Kind;

constexpr double kLeastWork = 32 * 32 * 32;  // of a product that is worth whole tiles
constexpr double kLeastFilled = 0.5;         // of the tiles, by the matrices
constexpr int64_t kMostTiles = 4;            // along rows and along columns, of a team
constexpr int64_t kTeams = 4;                // of a group

double filled(int64_t size, int64_t tile) {
  return static_cast<double>(size) / static_cast<double>((size + tile - 1) / tile * tile);
}

// The largest of 4, 2 and 1 that divides the tiles and leaves enough of them to fill the device.
int64_t tiles_of_team(int64_t tiles, double left, double wanted) {
  int64_t amount = kMostTiles;
  while (amount > 1 && (tiles % amount != 0 || left / static_cast<double>(amount) < wanted))
    amount /= 2;
  return amount;
}

size_t axis_of(const Kernel& kernel, uint32_t number) {
  const auto it =
      std::ranges::find(kernel.axes, number, [&](Id r) { return range_axis(kernel.graph[r]); });
  return static_cast<size_t>(it - kernel.axes.begin());
}

struct Choice {
  size_t axis;
  TensorCore core;
  uint32_t rows, columns;  // numbers of axes
};

// The longest sum of products that a tensor core computes.
std::optional<Choice> find_choice(const Kernel& kernel, Id store) {
  std::optional<Choice> best;
  int64_t longest = 0;
  const Graph& g = kernel.graph;
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis) {
    if (kind_of(kernel, axis) != AxisKind::Reduce || !may_split(kernel, axis) || size_of_axis(kernel, axis) <= longest)
      continue;
    for (uint32_t number = 0; number < kernel.caps->tensor_core_count; ++number) {
      const auto core = find_tensor_core(*kernel.caps, number);
      const auto product =
          core ? find_product(kernel, store, kernel.axes[axis], *core) : std::nullopt;
      if (!product) continue;
      const int64_t m = range_size(g, product->rows), n = range_size(g, product->columns);
      const int64_t k = size_of_axis(kernel, axis);
      if (iterations_of(kernel) < kLeastWork) continue;
      if (filled(m, core->m) * filled(n, core->n) * filled(k, core->k) < kLeastFilled) continue;
      longest = k;
      best = {axis, *core, range_axis(g[product->rows]), range_axis(g[product->columns])};
      break;
    }
  }
  return best;
}

class Applier {
 public:
  explicit Applier(Kernel& kernel) : kernel_(kernel) {}

  // An axis of one tile is gone.
  void change(Kind kind, uint32_t number, int64_t amount) {
    const size_t axis = axis_of(kernel_, number);
    if (amount < 2 || axis == kernel_.axes.size()) return;
    const Optimisation change{kind, static_cast<uint32_t>(axis), amount};
    if (kind == Kind::Local)
      apply_if_it_fits(kernel_, change);
    else
      apply(kernel_, change);
  }
  int64_t size(uint32_t number) const {
    const size_t axis = axis_of(kernel_, number);
    return axis == kernel_.axes.size() ? 1 : size_of_axis(kernel_, axis);
  }

 private:
  Kernel& kernel_;
};

}  // namespace

bool apply_tensor_core_heuristic(Kernel& kernel) {
  if (kernel.graph.sources(kernel.sink).size() != 1) return false;
  const auto choice = find_choice(kernel, kernel.graph.sources(kernel.sink)[0]);
  if (!choice) return false;
  apply(kernel, {Kind::TensorCore, static_cast<uint32_t>(choice->axis), choice->core.number});
  Applier applier(kernel);
  double teams = 1;
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis)
    if (kind_of(kernel, axis) == AxisKind::Loop)
      teams *= static_cast<double>(size_of_axis(kernel, axis));
  const double wanted = kTeams * std::max(1u, kernel.caps->threads);
  for (uint32_t number : {choice->columns, choice->rows}) {
    const int64_t amount = tiles_of_team(applier.size(number), teams, wanted);
    applier.change(Kind::Upcast, number, amount);
    teams /= static_cast<double>(amount);
  }
  for (uint32_t number : {choice->rows, choice->columns}) {
    const int64_t tiles = applier.size(number);
    applier.change(Kind::Local, number, tiles % 2 == 0 ? 2 : 1);
  }
  return true;
}

}  // namespace plugrad::codegen

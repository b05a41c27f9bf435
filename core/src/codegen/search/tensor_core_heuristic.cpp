// Chooses matrix products for tensor cores, the tiles of a team of work-items and the teams of a
// group. The group copies its tiles into local memory, a part of the sum at a time.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "codegen/analysis/access.h"
#include "codegen/search/heuristic.h"
#include "codegen/transforms/transforms.h"
#include "ir/facts.h"

namespace plugrad::codegen {
namespace {

using Kind = ScheduleStep::Kind;

// No card was available: all of these are chosen, not measured (docs/performance.md, "Other
// devices").
constexpr double kLeastWork = 32 * 32 * 32;  // multiply-adds from which whole tiles pay
constexpr double kLeastFilled = 0.5;         // share of the tiles that the matrices fill, at least
constexpr int64_t kMostWorkItems = 256;      // work-items of a group
constexpr int64_t kMostTileSums =
    64;  // accumulators of a work-item; with more, one group would fill a multiprocessor
constexpr int64_t kLongestRow = 128;  // bytes of each row that one part of the sum copies

double filled(int64_t size, int64_t tile) {
  return static_cast<double>(size) / static_cast<double>(ceil_div(size, tile) * tile);
}

struct CoreChoice {
  size_t axis;
  TensorCore core;
  double reads_a, reads_b;    // reads of local memory for a work-item's part of a tile
  uint32_t rows, columns, k;  // axis numbers
};

// Two lanes adjacent along k are one read if they are consecutive in memory.
double reads_of(const Graph& g, Id operand, Id k, const LaneBits& bits, uint32_t lanes) {
  bool is_pair = lanes > 1 && coordinate_of(bits, PGR_LANE_AXIS_K, 0, 1) == 1;
  for (Id load : nodes_of(g, operand, Op::Load))
    is_pair &= stride_of(g, g.sources(load)[1], k) == 1;
  return is_pair ? lanes / 2.0 : lanes;
}

// The longest sum of products that a tensor core can compute.
std::optional<CoreChoice> find_choice(const Kernel& kernel, Id store) {
  std::optional<CoreChoice> best;
  int64_t longest = 0;
  const Graph& g = kernel.graph;
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis) {
    if (kind_of(kernel, axis) != AxisKind::Reduce || !may_split(kernel, axis) ||
        size_of_axis(kernel, axis) <= longest)
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
      const Id along = kernel.axes[axis];
      best = {axis,
              *core,
              reads_of(g, product->a, along, core->layout.a, core->lanes_a),
              reads_of(g, product->b, along, core->layout.b, core->lanes_b),
              range_axis(g[product->rows]),
              range_axis(g[product->columns]),
              range_axis(g[along])};
      break;
    }
  }
  return best;
}

// Tiles of a team along rows and columns, and the teams of a group.
struct GroupShape {
  int64_t rows, columns, row_teams, column_teams;
};

// Estimated cycles of the multiprocessor with the most groups: products and local reads are issued;
// copies have a bandwidth. The rates (cycles of a product and of a read, bytes per cycle of a copy)
// are chosen, not measured.
double cycles(const pgr_device_caps& caps, const CoreChoice& choice, int64_t row_tiles,
              int64_t column_tiles, const GroupShape& s) {
  constexpr double kProductCycles = 2, kReadCycles = 1, kCopiedBytes = 64;
  const TensorCore& core = choice.core;
  const auto groups = static_cast<double>(ceil_div(row_tiles, s.rows * s.row_teams) *
                                          ceil_div(column_tiles, s.columns * s.column_teams));
  const auto teams = static_cast<double>(s.row_teams * s.column_teams);
  const auto products = static_cast<double>(s.rows * s.columns);
  const double reads = static_cast<double>(s.rows) * choice.reads_a +
                       static_cast<double>(s.columns) * choice.reads_b;
  const auto elements = static_cast<double>(
      (s.rows * s.row_teams * core.m + s.columns * s.column_teams * core.n) * core.k);
  const double waves = std::ceil(groups / std::max(1u, caps.threads));
  return waves * (teams * (products * kProductCycles + reads * kReadCycles) +
                  elements * size_of(core.input) / kCopiedBytes);
}

// Accumulators take at most half of the registers.
bool shape_fits(const pgr_device_caps& caps, const TensorCore& core, const GroupShape& s) {
  const int64_t registers = caps.vector_registers == 0 ? 128 : caps.vector_registers;
  const int64_t items = s.row_teams * s.column_teams * core.items;
  const int64_t sums = s.rows * s.columns * core.lanes_c;
  return sums <= std::min(kMostTileSums, registers / 2) &&
         items <= std::min<int64_t>(kMostWorkItems, caps.max_local_total);
}

GroupShape best_shape(const pgr_device_caps& caps, const CoreChoice& choice, int64_t row_tiles,
                      int64_t column_tiles) {
  GroupShape best{1, 1, 1, 1};
  double least = std::numeric_limits<double>::infinity();
  for (int64_t rows = 1; rows <= 8; ++rows)
    for (int64_t columns = 1; columns <= 8; ++columns)
      for (int64_t row_teams : {1, 2, 4})
        for (int64_t column_teams : {1, 2, 4}) {
          const GroupShape s{rows, columns, row_teams, column_teams};
          if (row_tiles % rows != 0 || column_tiles % columns != 0 ||
              !shape_fits(caps, choice.core, s))
            continue;
          const double cost = cycles(caps, choice, row_tiles, column_tiles, s);
          if (cost >= least) continue;
          best = s;
          least = cost;
        }
  return best;
}

class Applier {
 public:
  Applier(Kernel& kernel, const CoreChoice& choice) : kernel_(kernel), choice_(choice) {}

  void run() {
    const TensorCore& core = choice_.core;
    apply(kernel_, {Kind::TensorCore, static_cast<uint32_t>(choice_.axis), core.number});
    const GroupShape s =
        best_shape(*kernel_.caps, choice_, size(choice_.rows), size(choice_.columns));
    change(Kind::Upcast, choice_.columns, s.columns);
    change(Kind::Upcast, choice_.rows, s.rows);
    change(Kind::Local, choice_.rows, s.row_teams);
    change(Kind::Local, choice_.columns, s.column_teams);
    cache_read_tiles();
  }

 private:
  // An axis with a single tile no longer exists.
  void change(Kind kind, uint32_t number, int64_t amount) {
    const size_t axis = axis_with_number(kernel_, number);
    if (axis == kernel_.axes.size()) return;
    amount = std::min(amount, size_of_axis(kernel_, axis));
    if (amount < 2) return;
    const ScheduleStep change{kind, static_cast<uint32_t>(axis), amount};
    if (kind == Kind::Local)
      apply_if_it_fits(kernel_, change);
    else
      apply(kernel_, change);
  }
  int64_t size(uint32_t number) const {
    const size_t axis = axis_with_number(kernel_, number);
    return axis == kernel_.axes.size() ? 1 : size_of_axis(kernel_, axis);
  }

  // Parts divide the sum, because a tensor core adds no remainder.
  void cache_read_tiles() {
    const Graph& g = kernel_.graph;
    const size_t loop = axis_with_number(kernel_, choice_.k);
    if (loop == kernel_.axes.size()) return;
    std::set<uint32_t> slots;
    for (Id wmma : nodes_of(g, kernel_.sink, Op::Wmma))
      for (Id load : nodes_of(g, wmma, Op::Load))
        if (g[g.sources(load)[0]].op == Op::Param)
          slots.insert(param_info(g, g.sources(load)[0]).slot);
    const int64_t row = choice_.core.k * size_of(choice_.core.input);
    std::vector<int64_t> lengths;
    for (int64_t length = std::max<int64_t>(1, kLongestRow / row); length > 0; --length)
      if (size_of_axis(kernel_, loop) % length == 0) lengths.push_back(length);
    cache_read_longest_parts(kernel_, loop, lengths, slots);
  }

  Kernel& kernel_;
  const CoreChoice& choice_;
};

}  // namespace

bool apply_tensor_core_heuristic(Kernel& kernel) {
  if (kernel.graph.sources(kernel.sink).size() != 1) return false;
  const auto choice = find_choice(kernel, kernel.graph.sources(kernel.sink)[0]);
  if (!choice) return false;
  Applier(kernel, *choice).run();
  return true;
}

}  // namespace plugrad::codegen

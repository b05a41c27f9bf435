// The heuristic for CPUs. In order: the axis of lanes, the register tile, unrolling, parallel
// loops. Each step takes the cheapest of a few candidates by the cost model.
#include "codegen/search/heuristic.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>
#include <utility>

#include "codegen/tiling/cost_model.h"
#include "codegen/tiling/row_kernels.h"
#include "codegen/transforms/transforms.h"

namespace plugrad::codegen {
namespace {

using Kind = ScheduleStep::Kind;

// Gain of consecutive stores over strided ones, a factor of the cost. Chosen, not measured.
constexpr double kNeighbours = 1.1;
// Iterations of a loop over filter taps that is unrolled inside other loops. Chosen, not measured.
constexpr int64_t kMostTaps = 8;
// Times the cheapest tile's cost; copies are costed later and may reverse the order. This factor
// and the number of tiles are chosen; docs/decisions/tiles-become-whole-schedules.md has the rows
// measured with them.
constexpr double kNearlyAsGood = 1.5;
constexpr size_t kMostWhole = 3;  // tiles for which whole schedules are predicted
// Share of the predicted time that a later schedule may take. Predictions for two schedules of one
// kernel err by as much relative to each other (3x3 convolution of 512 channels, x86-64-v3:
// predicted 0.88 of the time, measured 1.4; docs/decisions/tiles-become-whole-schedules.md).
constexpr double kSurely = 0.85;

// Time of the thread with the most panels, one of them narrow, relative to an even share.
double unevenness(const Kernel& kernel, const Tile& tile) {
  const int64_t size = size_of_axis(kernel, tile.vector_axis),
                width = tile.amounts[tile.vector_axis];
  const auto threads = static_cast<int64_t>(kernel.caps->threads), whole = size / width;
  const double narrow = static_cast<double>(size % width) / static_cast<double>(width);
  const double most = whole % threads == 0 ? static_cast<double>(whole / threads) + narrow
                                           : static_cast<double>(whole / threads + 1);
  return most * static_cast<double>(threads) / (static_cast<double>(whole) + narrow);
}

// Cycles of a launch that a frugal register tile saves for each statement that it adds. Compiling
// one takes 0.1 ms (docs/decisions/schedules-are-frugal-first.md), and a kernel that is long enough
// for a tile is launched a few times until it is promoted. Chosen, not measured.
constexpr double kFrugalTileCycles = 60e3;

double price_of_code(const Kernel& kernel, const CostModel& model, const Tile& tile) {
  return kernel.options.frugal ? statements_of(kernel, model, tile) * kFrugalTileCycles : 0;
}

// Whether no register tile pays in a frugal schedule: it saves less than all cycles, and repeats
// most statements.
bool is_too_short_for_tiles(const Kernel& kernel, const CostModel& model, const LaneChoice& start) {
  return kernel.options.frugal &&
         (!model.has_reduce() || start.cost < price_of_code(kernel, model, start.tile));
}

// Register tiles for these lanes: the cheapest, and those with unrolled taps unless frugal.
std::vector<LaneChoice> tiles_of(const Kernel& kernel, const CostModel& model,
                                 const LaneChoice& start) {
  if (is_too_short_for_tiles(kernel, model, start)) return {start};
  std::vector<size_t> axes = tile_axes(kernel, model, start.tile);
  std::erase_if(axes, [&](size_t axis) { return !is_worth_expanding(kernel, model, axis); });
  const size_t lanes = start.tile.vector_axis;
  const bool panels = lanes != SIZE_MAX && splits_panels(kernel, lanes);
  // Evaluates the cheapest bound first: the code's price, cost without traffic, then code size.
  const auto cost = [&](const Tile& tile, double limit) {
    const double price = price_of_code(kernel, model, tile);
    if (price >= limit) return price;
    const double uneven = panels ? unevenness(kernel, tile) : 1;
    if (const double least = model.cost(tile, 0) * uneven + price; least >= limit) return least;
    const bool fits = !is_too_much_code(model, tile) &&
                      static_cast<double>(model.streams(tile)) <= kernel.machine().streams;
    return fits ? model.cost(tile, (limit - price) / uneven) * uneven + price
                : std::numeric_limits<double>::infinity();
  };
  std::vector<int64_t> amounts = {1};
  if (lanes != SIZE_MAX) amounts = amounts_of(kernel, model, lanes);
  std::vector<LaneChoice> found = {
      {start.tile, panels ? cost(start.tile, std::numeric_limits<double>::infinity())
                          : start.cost + price_of_code(kernel, model, start.tile)}};
  const TileSearch tiles{kernel, model, panels, cost};
  const auto search = [&](Tile tile, LaneChoice& best) {
    for (int64_t amount : amounts) {
      if (lanes != SIZE_MAX) tile.amounts[lanes] = amount;
      tiles.choose(axes, tile, best);
    }
  };
  search(start.tile, found[0]);
  if (kernel.options.frugal) {
    found[0].cost -= price_of_code(kernel, model, found[0].tile);  // lanes are chosen without it
    return found;
  }
  std::vector<size_t> taps = model.taps(start.tile);
  if (const size_t last = model.last_tap(start.tile);
      taps.empty() && last != SIZE_MAX && size_of_axis(kernel, last) <= kMostTaps)
    taps = {last};
  if (taps.empty()) return found;
  Tile unrolled = start.tile;
  for (size_t axis : taps) unrolled.amounts[axis] = size_of_axis(kernel, axis);
  found.push_back({unrolled, std::numeric_limits<double>::infinity()});
  search(unrolled, found[1]);
  return found;
}

// Lanes and register tile together, cheapest first: lanes that cost more alone may be cheapest with
// a tile. kNeighbours adds a preference for consecutive stores.
std::vector<Tile> best_tiles(const Kernel& kernel, const CostModel& model) {
  std::vector<LaneChoice> all;
  for (const LaneChoice& start : lanes_of(kernel, model))
    for (LaneChoice& found : tiles_of(kernel, model, start)) {
      const size_t lanes = found.tile.vector_axis;
      const bool stores = lanes != SIZE_MAX && model.has_reduce() && model.stores_neighbours(lanes);
      if (stores) found.cost /= kNeighbours;
      if (all.empty() || std::isfinite(found.cost)) all.push_back(std::move(found));
    }
  const auto least = std::ranges::min(all, {}, &LaneChoice::cost).cost;
  // Of nearly equal tiles the first one stays in front.
  std::ranges::stable_sort(all, {},
                           [&](const LaneChoice& l) { return std::max(l.cost, least * 1.02); });
  // Windows are not copied, so their costs are complete.
  const size_t most = model.taps(all[0].tile).empty() ? kMostWhole : 1;
  std::vector<Tile> tiles;
  for (LaneChoice& found : all)
    if (tiles.empty() || (found.cost <= kNearlyAsGood * least && tiles.size() < most))
      tiles.push_back(std::move(found.tile));
  return tiles;
}

// Lanes take whole rows that fit the registers: prefetching follows two short rows at 10 GB/s and
// both as one stream at 24 GB/s (rows of 512 bytes, Zen 4).
void take_whole_rows(const Kernel& kernel, const CostModel& model, Tile& tile) {
  if (tile.vector_axis == SIZE_MAX || !joins_prefetch_streams(kernel, tile.vector_axis)) return;
  Tile whole = tile;
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis) {
    if (axis != tile.vector_axis && kind_of(kernel, axis) == AxisKind::Loop) {
      if (tile.amounts[axis] > 1) return;  // rows of other results are elsewhere in memory
    } else if (may_split(kernel, axis)) {
      whole.amounts[axis] = size_of_axis(kernel, axis);
    }
  }
  if (!is_too_much_code(model, whole) && std::isfinite(model.cost(whole))) tile = whole;
}

// Expands short kernels fully, without a loop, if that is little code: few copies of each
// instruction, and few instructions in all (one random number has 70 or so).
bool expand_wholly(const Kernel& kernel, const CostModel& model, Tile& tile) {
  Tile whole = tile;
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis) {
    if (!may_split(kernel, axis)) return false;
    whole.amounts[axis] = size_of_axis(kernel, axis);
  }
  if (model.iterations() > 64 || model.code_size(whole) > 16) return false;
  if (model.whole_code(whole) > kMostStraight) return false;
  tile = whole;
  return true;
}

struct Decision {
  uint32_t axis_number;  // stable under splits
  ScheduleStep change;
  int64_t rows_apart = 1;  // distance of an upcast's rows
};

// The steps that the stores have chosen. Larger stores choose first; each chooses only for axes
// that no larger store runs over.
struct Decisions {
  std::vector<Decision> changes;
  std::vector<uint32_t> taken;  // axis numbers

  bool has_lanes(uint32_t axis_number) const {
    return std::ranges::any_of(changes, [&](const Decision& d) {
      return d.axis_number == axis_number && d.change.kind == Kind::Vectorize;
    });
  }
  bool is_taken(uint32_t axis_number) const {
    return std::ranges::find(taken, axis_number) != taken.end();
  }
};

void decide(Kernel& part, const CostModel& model, Tile tile, Decisions& decisions) {
  if (!part.options.frugal) {
    take_whole_rows(part, model, tile);
    if (!expand_wholly(part, model, tile) && !narrow_to_columns(part, model.lanes(), tile))
      add_unrolling(part, model, tile);
  }
  const auto number = [&](size_t axis) { return range_axis(part.graph[part.axes[axis]]); };
  bool has_lanes = false;  // whether an axis shared with a larger store has lanes
  for (size_t axis = 0; axis < part.axes.size(); ++axis)
    has_lanes |= decisions.has_lanes(number(axis));
  for (size_t axis = 0; axis < part.axes.size(); ++axis) {
    const bool vector = axis == tile.vector_axis;
    if ((tile.amounts[axis] == 1 && !vector) || (vector && has_lanes)) continue;
    if (decisions.is_taken(number(axis))) continue;
    const Kind kind = vector                                    ? Kind::Vectorize
                      : kind_of(part, axis) == AxisKind::Reduce ? Kind::Unroll
                                                                : Kind::Upcast;
    const int64_t apart =
        kind == Kind::Upcast ? prefetch_stream_rows(part, axis, tile.amounts[axis]) : 1;
    decisions.changes.push_back({number(axis), {kind, 0, tile.amounts[axis]}, apart});
  }
  for (size_t axis = 0; axis < part.axes.size(); ++axis) decisions.taken.push_back(number(axis));
}

void apply_decisions(Kernel& kernel, Decisions& decisions) {
  for (auto& [number, change, rows_apart] : decisions.changes) {
    const size_t axis = axis_with_number(kernel, number);
    if (axis == kernel.axes.size()) continue;
    change.axis = static_cast<uint32_t>(axis);
    // Two stores may vectorise different axes of one shared value; and rows may be an axis of a
    // part that reduces something else.
    if (change.kind == Kind::Vectorize &&
        (meets_lanes(kernel, kernel.axes[axis]) || fills_arrays(kernel, kernel.axes[axis])))
      continue;
    if (rows_apart > 1)
      upcast_interleaved(kernel, change.axis, change.amount, rows_apart);
    else
      apply(kernel, change);
  }
}

// A copy with strided results reads many rows at once: its innermost loop runs along them.
void walk_along_rows(Kernel& kernel) {
  const Graph& g = kernel.graph;
  const Id store = g.sources(kernel.sink)[0];
  const std::vector<Id> loads = nodes_of(g, store, Op::Load);
  if (g.sources(kernel.sink).size() != 1 || loads.size() != 1 ||
      !nodes_of(g, store, Op::Reduce).empty())
    return;
  const auto step = [&](Id index, size_t axis) {
    return std::abs(stride_of(g, index, kernel.axes[axis]).value_or(0));
  };
  size_t last = 0, nearest = SIZE_MAX;
  bool apart = false;
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis) {
    const int64_t read = step(g.sources(loads[0])[1], axis),
                  written = step(g.sources(store)[1], axis);
    if (kind_of(kernel, axis) == AxisKind::Vector) apart = read == 1 && written > 1;
    if (kind_of(kernel, axis) != AxisKind::Loop) continue;
    last = axis;
    if (read != 0 && (nearest == SIZE_MAX || read < step(g.sources(loads[0])[1], nearest)))
      nearest = axis;
  }
  if (!apart) return;
  attempt(kernel, [&](Kernel& trial) {
    for (; nearest < last; ++nearest)
      apply(trial, {Kind::Swap, static_cast<uint32_t>(nearest), static_cast<int64_t>(nearest + 1)});
    return last;
  });
}

// Only axes common to all stores may be parallelised: otherwise each group would reduce all rows.
struct Threading {
  double iterations = 0;
  std::vector<RowKernels> rows;  // of the stores that have row kernels

  bool allows(uint32_t axis_number) const {
    return std::ranges::all_of(rows,
                               [&](const RowKernels& parts) { return parts.allows(axis_number); });
  }
};

// Rows of an indexed store are split over the threads already.
double split_over_threads(const Kernel& kernel) {
  double groups = 1;
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis)
    if (kind_of(kernel, axis) == AxisKind::Global)
      groups *= static_cast<double>(size_of_axis(kernel, axis));
  return groups;
}

// The outermost output loops, at most `most`, become group ids until every thread has a group. A
// thread clears its rows of an indexed store whole: clearing columns takes three times as long,
// because strips are a row apart.
void add_threads(Kernel& kernel, const Threading& work, size_t most) {
  const double iterations = work.iterations;
  if (iterations < kernel.machine().parallel_iterations() || kernel.caps->threads < 2) return;
  const double enough = 8.0 * kernel.caps->threads;
  const auto is_stored_along = [&](size_t axis) {
    OpenRanges open(kernel.graph);
    return std::ranges::any_of(kernel.graph.sources(kernel.sink),
                               [&](Id store) { return open.depends(store, kernel.axes[axis]); });
  };
  double groups = split_over_threads(kernel);
  if (groups >= kernel.caps->threads) return;
  for (size_t axis = 0, used = 0;
       axis < kernel.axes.size() && used < std::min<size_t>(most, 3) && groups < enough; ++axis) {
    if (kind_of(kernel, axis) != AxisKind::Loop || is_bounded(kernel.graph[kernel.axes[axis]]))
      continue;
    if (!work.allows(range_axis(kernel.graph[kernel.axes[axis]])) || !is_stored_along(axis))
      continue;
    groups *= static_cast<double>(size_of_axis(kernel, axis));
    if (!apply_thread(kernel, axis)) return;
    ++used;
  }
}

// Rows shorter than a vector that are adjacent in memory, as in windows of channels-last images, or
// consecutive along a line, as in windows that do not overlap: lanes then run across rows, and
// reductions not stored along a row are ordinary sums.
bool has_short_rows(const Kernel& kernel, const RowKernels& rows) {
  if (rows.parts.empty() || rows.has_arrays) return false;
  double longest = 0;
  for (const Kernel& part : rows.parts) longest = std::max(longest, iterations_of(part));
  const Graph& g = kernel.graph;
  const Id index = g.sources(g.sources(kernel.sink)[0])[1];
  const auto is_row = [&](Id axis) { return rows.is_row_axis(range_axis(g[axis])); };
  int64_t line = 1;  // consecutive elements of a row
  for (Id axis : kernel.axes)
    if (!is_row(axis) && stride_of(g, index, axis) == 1) line = range_size(g, axis);
  const auto lies_beside = [&](Id axis) {
    return is_row(axis) && stride_of(g, index, axis) == line &&
           static_cast<double>(range_size(g, axis)) > longest;
  };
  return longest <
             static_cast<double>(kernel.caps->vector_lanes[static_cast<size_t>(DType::F32)]) &&
         std::ranges::any_of(kernel.axes, lies_beside);
}

// compute_at for costly values that repeat along a row, if a row fits.
void compute_rows_at(Kernel& kernel) {
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis) {
    const Repeated repeated = find_repeated(kernel, axis);
    if (repeated.values.empty()) continue;
    OpenRanges open(kernel.graph);
    size_t place = 0;  // the row holds everything that varies further inside
    while (place < axis && open.depends(repeated.values[0], kernel.axes[place])) ++place;
    const auto inside = std::span(kernel.axes).subspan(place);
    const bool one_row = std::ranges::count_if(inside, [&](Id r) {
                           return open.depends(repeated.values[0], r);
                         }) == 1;
    if (!one_row || 2 * bytes_of_buffer(kernel, repeated, place) > kernel.caps->private_bytes)
      continue;
    apply(kernel, {Kind::ComputeAt, static_cast<uint32_t>(axis), static_cast<int64_t>(place)});
    axis = SIZE_MAX;  // compute_at renumbers the axes
  }
}

// The kernel of each store, or of each pass of its rows; larger ones first, because they choose
// first.
Threading split_into_parts(const Kernel& kernel, std::vector<Kernel>& parts) {
  Threading work;
  for (Id store : kernel.graph.sources(kernel.sink)) {
    Kernel part = part_of(kernel, store);
    RowKernels rows = row_kernels(part);
    if (has_short_rows(part, rows)) rows = {};
    work.iterations += rows.parts.empty() ? iterations_of(part) : rows.iterations;
    if (rows.parts.empty())
      parts.push_back(std::move(part));
    else {
      std::ranges::move(rows.parts, std::back_inserter(parts));
      work.rows.push_back(std::move(rows));
    }
  }
  std::ranges::stable_sort(parts, std::greater{}, iterations_of);
  return work;
}

void carry_out(Kernel& kernel, Decisions& decisions, const Threading& work, bool in_blocks) {
  apply_decisions(kernel, decisions);
  walk_along_rows(kernel);
  if (in_blocks) pack_row_blocks(kernel);
  // cache_read renumbers the axes, so the rows' numbers no longer hold.
  const bool copies = work.rows.empty() && !kernel.options.frugal;
  size_t most = copies ? schedule_column_reduction(kernel) : SIZE_MAX;
  if (copies && most == SIZE_MAX) most = choose_cache_reads(kernel);
  add_threads(kernel, work, most);
}

// Tiles for whole schedules. A tile that is good with packed rows may be expensive without.
struct ThreadChoice {
  Tile tile;
  const CostModel* model;
  bool is_first;  // the cheapest by the tile's cost alone
};

std::vector<ThreadChoice> choices_of(const Kernel& part, const std::deque<CostModel>& models) {
  std::vector<ThreadChoice> choices;
  for (const CostModel& model : models) {
    bool is_first = true;
    for (Tile& tile : best_tiles(part, model))
      choices.push_back({std::move(tile), &model, std::exchange(is_first, false)});
  }
  return choices;
}

// The cheapest of a few whole schedules, each with one tile and its copies. A tile that the cost
// model ranks lower must be clearly cheaper.
void schedule_whole(Kernel& kernel, Kernel& part, const Threading& work, bool in_blocks) {
  std::deque<CostModel> models;
  models.emplace_back(part);
  if (!kernel.options.frugal && models[0].may_pack_rows()) models.emplace_back(part).pack_rows();
  std::vector<ThreadChoice> choices = choices_of(part, models);
  const auto schedule = [&](Kernel& k, ThreadChoice& choice) {
    Decisions decisions;
    decide(part, *choice.model, std::move(choice.tile), decisions);
    carry_out(k, decisions, work, in_blocks);
  };
  if (choices.size() == 1) return schedule(kernel, choices[0]);
  std::optional<Kernel> best;
  double least = std::numeric_limits<double>::infinity();
  for (ThreadChoice& choice : choices) {
    Kernel trial = copy_of(kernel);
    schedule(trial, choice);
    const Prediction found = predict(trial, 0);
    const bool is_better =
        choice.is_first ? found.cost() < least : found.is_trusted && found.cost() < kSurely * least;
    if (best && !is_better) continue;
    best = std::move(trial);
    least = found.cost();
  }
  kernel = std::move(*best);
}

}  // namespace

void apply_heuristic(Kernel& kernel) {
  if (works_in_groups(*kernel.caps)) return apply_group_heuristic(kernel);
  const bool in_blocks = !kernel.options.frugal && tile_attention(kernel);
  if (!in_blocks && kernel.graph.sources(kernel.sink).size() == 1) compute_rows_at(kernel);
  std::vector<Kernel> parts;
  const Threading work = split_into_parts(kernel, parts);
  if (!work.rows.empty() || parts.size() != 1) {
    Decisions decisions;
    for (Kernel& part : parts) {
      const CostModel model(part);
      decide(part, model, std::move(best_tiles(part, model)[0]), decisions);
    }
    return carry_out(kernel, decisions, work, in_blocks);
  }
  schedule_whole(kernel, parts[0], work, in_blocks);
}

}  // namespace plugrad::codegen

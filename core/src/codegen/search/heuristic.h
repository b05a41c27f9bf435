// Heuristics that choose a kernel's schedule from its accesses, the device's description and the
// cost model. They know no device by name.
#pragma once

#include <algorithm>
#include <bit>
#include <functional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "codegen/kernel.h"
#include "codegen/tiling/cost_model.h"

namespace plugrad::codegen {

/// Work-items of a group, if there is work for them. Chosen, not measured.
inline constexpr int64_t kWorkItems = 256;

/// The largest power of two up to `n`; 1 if there is none.
inline int64_t floor_power(int64_t n) {
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}
inline int64_t ceil_div(int64_t size, int64_t amount) {
  return (size + amount - 1) / amount;
}

void apply_heuristic(Kernel& kernel);

/// The heuristic for devices with lockstep work-items.
void apply_group_heuristic(Kernel& kernel);

/// Computes a matrix product on a tensor core; false if none fits.
bool apply_tensor_core_heuristic(Kernel& kernel);

/// Lanes along one axis, in the cheapest number without a register tile.
struct LaneChoice {
  Tile tile;
  double cost;
};
/// One for each axis that may have lanes; the scalar tile comes first.
std::vector<LaneChoice> lanes_of(const Kernel& kernel, const CostModel& model);

/// Statements of the tile and of the rests along its axes.
double statements_of(const Kernel& kernel, const CostModel& model, const Tile& tile);

/// Amounts of the vector axis. If no other output loop is long enough for the threads, e.g. for
/// sums of few channels, only amounts that leave it to them.
std::vector<int64_t> amounts_of(const Kernel& kernel, const CostModel& model, size_t vector_axis);

/// In indexed stores only consecutive elements share an index; lanes and copies along other axes
/// are single stores.
bool is_worth_expanding(const Kernel& kernel, const CostModel& model, size_t axis);

/// Output axes along which some load is reused, most reuse first.
std::vector<size_t> tile_axes(const Kernel& kernel, const CostModel& model, const Tile& tile);

/// The search for a register tile, for both heuristics.
struct TileSearch {
  const Kernel& kernel;
  const CostModel& model;
  bool remainders;                                        // amounts need not divide the axes
  std::function<double(const Tile&, double limit)> cost;  // as CostModel::cost

  /// Sets `best` to `tile` with the cheapest amounts for `axes` if that is clearly cheaper.
  void choose(std::span<const size_t> axes, Tile& tile, LaneChoice& best) const;
};

/// Unrolls short reduce loops around little code fully, longer ones by 4.
void add_unrolling(const Kernel& kernel, const CostModel& model, Tile& tile);

/// Reads of strided elements from which packing them pays. Chosen, not measured.
inline constexpr double kEnoughGathers = 4;

/// For a kernel with its register tile: chooses cache_read of the operand with lanes, if it is read
/// again often enough, and cache_write of sums with strided lanes, which are transposed. Returns
/// how many output loops, outermost first, may run in parallel without repeating a copy; SIZE_MAX
/// if nothing is copied.
size_t choose_cache_reads(Kernel& kernel);

/// For a kernel with its groups and register tile: copies the tiles that many work-items read into
/// local memory and unrolls the rest of the reduction. False if there are none or the device gains
/// nothing.
bool cache_read_tiles(Kernel& kernel);

/// Splits the reduce loop into parts of the first length that is legal and fits the local memory,
/// copies the parameters inside, and unrolls the part. False if none fits.
bool cache_read_longest_parts(Kernel& kernel, size_t loop, const std::vector<int64_t>& lengths,
                              const std::set<uint32_t>& slots);

/// Whether threads will split the panels of the operand with lanes along the axis, in a kernel of
/// one store without a register tile.
bool splits_panels(const Kernel& kernel, size_t axis);

/// Attention tiling: takes the rows of an operand that another product computes in blocks, and
/// keeps a block in a local buffer for the product that reads it. False if the kernel has no such
/// product or a block does not fit.
bool tile_attention(Kernel& kernel);

/// Packs operands that lanes over the rows of a block load with a stride.
void pack_row_blocks(Kernel& kernel);

/// Column reduction of a matrix larger than the caches, for one result row or a few that the tile
/// expands fully: narrows the tile to one vector of columns and several matrix rows per iteration.
/// Returns whether it did.
bool narrow_to_columns(const Kernel& kernel, int64_t lanes, Tile& tile);

/// For a kernel with its register tile. Returns how many output loops, outermost first, may run in
/// parallel; SIZE_MAX, and no change, if the kernel is no such reduction.
size_t schedule_column_reduction(Kernel& kernel);

/// Workgroup per row: steps, with their axis numbers, that give a group one row or a few, so that
/// its work-items share every pass along the row. Empty for short rows. `kernel` has one store.
std::vector<std::pair<uint32_t, ScheduleStep>> choose_workgroup_per_row(
    const Kernel& kernel, const std::vector<uint32_t>& row_axes);

/// Interleaved prefetch: matrix rows that are read once and several at a time should be far apart.
/// Adjacent rows are short streams that start and end together, which hardware prefetchers follow
/// badly; a run of rows is one long stream. Returns the rows of each of `count` streams if the
/// axis' values are adjacent rows that exceed a thread's caches, otherwise 1.
int64_t prefetch_stream_rows(const Kernel& kernel, size_t axis, int64_t count);

/// Whether a tile with the whole axis reads summed, adjacent rows that exceed a thread's cache as
/// one stream, e.g. 2 x 2 pooling reads two lines.
bool joins_prefetch_streams(const Kernel& kernel, size_t axis);

/// upcast(axis, count) of rows at a distance of `rows`.
void upcast_interleaved(Kernel& kernel, size_t axis, int64_t count, int64_t rows);

}  // namespace plugrad::codegen

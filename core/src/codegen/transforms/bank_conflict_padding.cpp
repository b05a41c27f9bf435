#include "codegen/transforms/bank_conflict_padding.h"

#include <algorithm>
#include <set>

#include "codegen/transforms/wmma_tiles.h"
#include "ir/facts.h"

namespace plugrad::codegen {
namespace {

struct Banks {
  int64_t count, word_bytes;
};

// Those of a device that does not tell are as most devices have them.
Banks banks_of(const pgr_device_caps& caps) {
  if (caps.local_banks == 0) return {32, 4};
  return {caps.local_banks, std::max(caps.local_bank_bytes, 1u)};
}

constexpr int64_t kMostSteps = 8;  // of padding

// The product of tiles that the operand is of; kNoId for none.
Id product_of(const Kernel& kernel, Id operand) {
  for (Id wmma : nodes_of(kernel.graph, kernel.sink, Op::Wmma))
    if (is_of_tiles(kernel.graph, wmma) && depends_on(kernel.graph, wmma, operand)) return wmma;
  return kNoId;
}

// Which of the items along the axis a work-item is.
int64_t place_on_axis(const std::vector<WorkItemAxis>& axes, size_t axis, uint32_t item) {
  int64_t number = item;
  for (size_t i = 0; i < axis; ++i) number /= axes[i].size;
  return number % axes[axis].size;
}

// Words that are given one after the other, over all accesses of a subgroup.
int64_t words_in_turn(const Banks& memory, std::span<const Coordinate> coordinates,
                      const AccessPattern& readers, int64_t row, int64_t element_bytes) {
  int64_t turns = 0;
  for (uint32_t access = 0; access < readers.accesses; ++access) {
    std::vector<std::set<int64_t>> banks(static_cast<size_t>(memory.count));
    for (uint32_t item = 0; item < readers.items; ++item) {
      int64_t place = 0;
      for (size_t i = 0; i < coordinates.size(); ++i)
        for (const auto& [range, scale] : coordinates[i].parts)
          place += readers.value(range, item, access) * scale * stride_in_rows(coordinates, row, i);
      const int64_t word = place * element_bytes / memory.word_bytes;
      banks[static_cast<size_t>((word % memory.count + memory.count) % memory.count)].insert(word);
    }
    size_t most = 0;
    for (const auto& words : banks) most = std::max(most, words.size());
    turns += static_cast<int64_t>(most);
  }
  return turns;
}

}  // namespace

AccessPattern access_pattern(const Kernel& kernel, const std::vector<WorkItemAxis>& axes,
                             Id operand) {
  AccessPattern readers;
  int64_t items = 1;
  for (const WorkItemAxis& axis : axes) items *= axis.size;
  readers.items = static_cast<uint32_t>(std::min<int64_t>(items, kernel.caps->subgroup_size));
  const auto of_item = [axes](Id range, uint32_t item) -> int64_t {
    for (size_t i = 0; i < axes.size(); ++i)
      if (std::ranges::find(axes[i].ranges, range) != axes[i].ranges.end())
        return place_on_axis(axes, i, item);
    return 0;
  };
  const Id wmma = product_of(kernel, operand);
  if (wmma == kNoId) {
    readers.value = [of_item](Id range, uint32_t item, uint32_t) { return of_item(range, item); };
    return readers;
  }
  const auto core = find_tensor_core(*kernel.caps, static_cast<uint32_t>(kernel.graph[wmma].arg));
  const TileProduct parts = tile_product(kernel.graph, wmma);
  const bool is_a = depends_on(kernel.graph, operand, parts.row);
  readers.accesses = is_a ? core->lanes_a : core->lanes_b;
  readers.value = [=](Id range, uint32_t item, uint32_t lane) -> int64_t {
    const auto bits = is_a ? core->layout.a : core->layout.b;
    const auto in_team = static_cast<uint32_t>(item % core->items);
    if (range == parts.row) return place_of(bits, PGR_LANE_AXIS_M, in_team, lane);
    if (range == parts.column) return place_of(bits, PGR_LANE_AXIS_N, in_team, lane);
    if (range == parts.k) return place_of(bits, PGR_LANE_AXIS_K, in_team, lane);
    return of_item(range, item);
  };
  return readers;
}

int64_t stride_in_rows(std::span<const Coordinate> coordinates, int64_t row, size_t coordinate) {
  if (coordinate + 1 == coordinates.size()) return 1;
  int64_t stride = row;
  for (size_t i = coordinate + 2; i < coordinates.size(); ++i) stride *= coordinates[i - 1].extent;
  return stride;
}

int64_t padded_row(const pgr_device_caps& caps, std::span<const Coordinate> coordinates,
                   const AccessPattern& readers, DType dtype, int64_t width) {
  const int64_t bytes = size_of(dtype), row = coordinates.back().extent;
  const Banks banks = banks_of(caps);
  const int64_t step = std::max({width, banks.word_bytes / bytes, int64_t{1}});
  int64_t best = row, least = words_in_turn(banks, coordinates, readers, row, bytes);
  for (int64_t i = 1; i <= kMostSteps && coordinates.size() > 1; ++i) {
    const int64_t padded = (row + step - 1) / step * step + (i - (row % step != 0)) * step;
    const int64_t turns = words_in_turn(banks, coordinates, readers, padded, bytes);
    if (turns >= least) continue;
    best = padded;
    least = turns;
  }
  return best;
}

}  // namespace plugrad::codegen

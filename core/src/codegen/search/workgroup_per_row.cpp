// Workgroup per row: the same number of work-items shares all passes along a row, so that each
// work-item finds the elements that it read before in its caches.
//   group(k, 256) local(column, 256)          the sum over k and the store run along one row
#include <algorithm>
#include <bit>

#include "codegen/analysis/access.h"
#include "codegen/search/heuristic.h"
#include "codegen/transforms/transforms.h"
#include "ir/facts.h"

namespace plugrad::codegen {
namespace {

using Kind = ScheduleStep::Kind;

// No card was available: all of these are chosen, not measured.
constexpr int64_t kShortestRow = 16;  // elements; a shorter row is the work of one work-item
constexpr int64_t kLeastShare = 4;    // elements of a long row for each work-item, at least
// Times shorter than the longest pass: every work-item runs all of it.
constexpr int64_t kShortPass = 8;

class RowGroups {
 public:
  RowGroups(const Kernel& kernel, const std::vector<uint32_t>& row_axes)
      : kernel_(kernel), caps_(*kernel.caps), row_axes_(row_axes) {}

  std::vector<std::pair<uint32_t, ScheduleStep>> run() {
    find_passes();
    if (reductions_.empty() || column_ == kNoId) return {};
    const int64_t items = items_of_row();
    if (items < 2) return {};
    share_rows(items);
    for (Id k : reductions_) change(Kind::Group, k, items);
    change(Kind::Local, column_, items);
    for (Id k : reductions_) change(Kind::Unroll, k, side_by_side(size(k) / items));
    change(Kind::Upcast, column_, side_by_side((size(column_) + items - 1) / items));
    return std::move(changes_);
  }

 private:
  int64_t size(Id range) const { return range_size(kernel_.graph, range); }
  bool is_row(Id range) const {
    return std::ranges::find(row_axes_, range_axis(kernel_.graph[range])) != row_axes_.end();
  }
  void change(Kind kind, Id range, int64_t amount) {
    if (amount > 1)
      changes_.emplace_back(range_axis(kernel_.graph[range]), ScheduleStep{kind, 0, amount});
  }
  bool may_share(Id range) const {
    const auto axis = std::ranges::find(kernel_.axes, range) - kernel_.axes.begin();
    return may_split(kernel_, static_cast<size_t>(axis));
  }
  // Loads in flight at once; a divisor of `rounds`.
  static int64_t side_by_side(int64_t rounds) {
    return rounds % 4 == 0 ? 4 : rounds % 2 == 0 ? 2 : 1;
  }

  // The longest loop of each row reduction and of the store, without short ones.
  void find_passes() {
    const Graph& g = kernel_.graph;
    OpenRanges open(g);
    RangeSet outputs = 0;
    for (Id axis : kernel_.axes)
      if (is_output_axis(range_kind(g[axis]))) outputs |= open.bit(axis);
    const auto shorter = [&](Id a, Id b) { return size(a) < size(b); };
    for (Id reduce : nodes_of(g, kernel_.sink, Op::Reduce)) {
      if ((open[reduce] & ~outputs) != 0) continue;
      const auto ranges = reduce_parts(g, reduce).ranges;
      const Id longest = *std::ranges::max_element(ranges, shorter);
      if (may_share(longest) && std::ranges::find(reductions_, longest) == reductions_.end())
        reductions_.push_back(longest);
    }
    for (Id axis : kernel_.axes)
      if (range_kind(g[axis]) == AxisKind::Loop && !is_row(axis) && may_share(axis) &&
          (column_ == kNoId || size(axis) >= size(column_)))
        column_ = axis;
    if (reductions_.empty() || column_ == kNoId) return;
    const int64_t longest = size(*std::ranges::max_element(reductions_, shorter));
    std::erase_if(reductions_, [&](Id k) { return size(k) * kShortPass < longest; });
  }

  int64_t items_of_row() const {
    int64_t length = size(column_);
    for (Id k : reductions_) length = std::min(length, size(k));
    if (length < kShortestRow) return 1;
    const int64_t step = std::min<int64_t>(caps_.subgroup_size, length);
    // More work-items than run at once would only queue.
    const int64_t at_once = int64_t{caps_.subgroup_size} * std::max(caps_.threads, 1u);
    const int64_t most =
        std::min<int64_t>({kWorkItems, at_once, caps_.max_local_total, caps_.max_local_size[0],
                           std::max(length / kLeastShare, step)});
    // A divisor, or a power of two.
    for (int64_t items = most; items > most / 2; --items)
      if (length % items == 0) return items;
    return floor_power(most);
  }

  // Puts several short rows into one group.
  void share_rows(int64_t items) {
    int64_t rows = 1;
    Id longest = kNoId;
    for (Id axis : kernel_.axes) {
      if (range_kind(kernel_.graph[axis]) != AxisKind::Loop || !is_row(axis) || !may_share(axis))
        continue;
      rows *= size(axis);
      if (longest == kNoId || size(axis) >= size(longest)) longest = axis;
    }
    if (longest == kNoId) return;
    const int64_t most = std::min<int64_t>(kWorkItems, caps_.max_local_total) / items;
    int64_t together = floor_power(
        std::min({most, rows / (2 * std::max<int64_t>(caps_.threads, 1)), size(longest)}));
    while (size(longest) % together != 0) together /= 2;
    change(Kind::Local, longest, together);
  }

  const Kernel& kernel_;
  const pgr_device_caps& caps_;
  const std::vector<uint32_t>& row_axes_;
  std::vector<Id> reductions_;  // one loop of each
  Id column_ = kNoId;           // the store's loop along the row
  std::vector<std::pair<uint32_t, ScheduleStep>> changes_;
};

}  // namespace

std::vector<std::pair<uint32_t, ScheduleStep>> choose_workgroup_per_row(
    const Kernel& kernel, const std::vector<uint32_t>& row_axes) {
  return RowGroups(kernel, row_axes).run();
}

}  // namespace plugrad::codegen

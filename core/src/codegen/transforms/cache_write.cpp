// cache_write: collects the values stored to a parameter in a local buffer, in the order in which
// they are computed, and then copies them; lanes that are far apart in memory are transposed on the
// way. A schedule step, no local rewrite: all stores to a parameter change together.
//   before   store %c[%v*49 + %i] of f(%i, %v)           %v = range 16 vector
//   after    store %c[%v*49 + %j] of
//                  load (filled s[%w*16 + %x] = f(%w, %x), over %w, %x)[%j*16 + %v]
//            %j = range 4 upcast, %v = range 16 vector
#include <algorithm>

#include "base/check.h"
#include "codegen/analysis/access.h"
#include "codegen/kernel.h"
#include "codegen/transforms/transforms.h"
#include "ir/facts.h"
#include "ir/kernel_ast.h"
#include "ir/scratch.h"

namespace plugrad::codegen {
namespace {

// Elements stored side by side; chosen, not measured.
constexpr int64_t kMostNeighbours = 16;

class Result {
 public:
  Result(Kernel& kernel, Id store, std::vector<Id> ranges, uint32_t& next_axis)
      : kernel_(kernel), store_(store), ranges_(std::move(ranges)), next_axis_(next_axis) {
    std::ranges::stable_sort(ranges_, {}, [&](Id r) {
      const AxisKind kind = range_kind(g_[r]);
      const int rank = kind == AxisKind::Vector ? 2 : kind == AxisKind::Upcast ? 1 : 0;
      return std::pair(rank, range_axis(g_[r]));
    });
  }

  Id store_from_buffer(uint32_t number) {
    const Id value = g_.sources(store_)[2];
    const DType dtype = g_[value].dtype;
    int64_t count = 1;
    for (Id r : ranges_) count *= range_size(g_, r);
    const Id array = make_array(g_, dtype, {number, PGR_SPACE_PRIVATE, count});
    std::vector<Id> inner, outer;
    for (Id r : ranges_) inner.push_back(new_range(range_size(g_, r), range_kind(g_[r])));
    const Id fill =
        g_.add(Op::Store, DType::Void, {array, place(inner), substitute(g_, value, map_to(inner))});
    find_neighbours();
    for (Id r : ranges_) outer.push_back(outside(r));
    const Id waiting = g_.add(Op::Load, dtype, {make_filled(g_, {&fill, 1}, inner), place(outer)});
    const Id memory = g_.sources(store_)[0];
    const Id index = substitute(g_, g_.sources(store_)[1], map_to(outer));
    return g_.add(Op::Store, DType::Void, {memory, index, waiting});
  }

 private:
  bool is_vector(Id r) const { return range_kind(g_[r]) == AxisKind::Vector; }

  // Ranges along which elements are consecutive in memory, outermost first.
  void find_neighbours() {
    for (int64_t length = 1;;) {
      const auto is_next = [&](Id r) {
        return !is_vector(r) && stride_of(g_, g_.sources(store_)[1], r) == length &&
               length * range_size(g_, r) <= kMostNeighbours && !is_neighbour(r);
      };
      const auto next = std::ranges::find_if(ranges_, is_next);
      if (next == ranges_.end()) return;
      neighbours_.push_back(*next);
      length *= range_size(g_, *next);
    }
  }
  bool is_neighbour(Id r) const { return std::ranges::find(neighbours_, r) != neighbours_.end(); }

  // Lanes stay lanes with consecutive elements upcast beside them; without lanes the consecutive
  // range becomes lanes.
  AxisKind kind_outside(Id r) const {
    if (is_vector(r)) return AxisKind::Vector;
    const bool has_lanes = std::ranges::any_of(ranges_, [&](Id other) { return is_vector(other); });
    if (has_lanes) return is_neighbour(r) ? AxisKind::Upcast : AxisKind::Loop;
    return stride_of(g_, g_.sources(store_)[1], r) == 1 ? AxisKind::Vector : AxisKind::Loop;
  }

  Id new_range(int64_t size, AxisKind kind) { return make_range(g_, size, next_axis_++, kind); }

  // If lanes are whole vectors, one vector at a time: its transposition fills the registers.
  Id outside(Id r) {
    const DType dtype = g_[g_.sources(store_)[2]].dtype;
    const int64_t size = range_size(g_, r),
                  lanes = std::max(1u, kernel_.caps->vector_lanes[static_cast<size_t>(dtype)]);
    const AxisKind kind = kind_outside(r);
    if (kind != AxisKind::Vector || size == lanes || size % lanes != 0)
      return new_range(size, kind);
    const Id block = g_.binary(Op::Mul, new_range(size / lanes, AxisKind::Loop), g_.index(lanes));
    return g_.binary(Op::Add, block, new_range(lanes, kind));
  }

  std::vector<std::pair<Id, Id>> map_to(const std::vector<Id>& others) const {
    std::vector<std::pair<Id, Id>> map;
    for (size_t i = 0; i < ranges_.size(); ++i) map.emplace_back(ranges_[i], others[i]);
    std::ranges::sort(map);
    return map;
  }

  Id place(const std::vector<Id>& at) {
    Id index = g_.index(0);
    for (size_t i = 0; i < ranges_.size(); ++i)
      index = g_.binary(Op::Add, g_.binary(Op::Mul, index, g_.index(range_size(g_, ranges_[i]))),
                        at[i]);
    return index;
  }

  Kernel& kernel_;
  Graph& g_ = kernel_.graph;
  Id store_;
  std::vector<Id> ranges_;  // in the order of their elements in the local buffer
  std::vector<Id> neighbours_;
  uint32_t& next_axis_;
};

// Whether the result reuses an input's memory (schedule/memory/donations.cpp) that another result
// reads. Both results are computed together, element by element; values from a local buffer would
// be stored before the other result reads.
bool others_may_read_its_memory(const Kernel& kernel, Id store) {
  const Graph& g = kernel.graph;
  const Id own = g.sources(store)[0];
  if ((param_info(g, own).flags & kParamShared) == 0) return false;
  return std::ranges::any_of(g.sources(kernel.sink),
                             [&](Id other) { return g.sources(other)[0] != own; });
}

void check_result(const Kernel& kernel, Id store, const std::string& text) {
  const Graph& g = kernel.graph;
  require(g.sources(store).size() == 3, "[codegen] {}: some of its elements are not stored", text);
  require(!reads(g, kernel.sink, g.sources(store)[0]), "[codegen] {}: the kernel reads it too",
          text);
  require(!others_may_read_its_memory(kernel, store),
          "[codegen] {}: it is stored where another store still reads", text);
  const DType dtype = g[g.sources(store)[2]].dtype;
  require(dtype != DType::Bool && claims_storage(*kernel.caps, dtype),
          "[codegen] {}: the device has no local buffers of its dtype", text);
}

}  // namespace

bool is_written(const Kernel& kernel, uint32_t slot) {
  const Graph& g = kernel.graph;
  return std::ranges::any_of(g.sources(kernel.sink), [&](Id store) {
    return param_info(g, g.sources(store)[0]).slot == slot;
  });
}

void cache_write(Kernel& kernel, const ScheduleStep& change) {
  Graph& g = kernel.graph;
  const std::string text = to_string({change});
  check_private_place(kernel, change);
  OpenRanges open(g);
  const auto place = static_cast<size_t>(change.amount);
  uint32_t number = next_array(kernel), axis = new_axis(kernel);
  std::vector<Id> stores;
  bool any = false;
  for (Id store : to_vector(g.sources(kernel.sink))) {
    std::vector<Id> ranges;
    const bool is_of_slot = param_info(g, g.sources(store)[0]).slot == change.axis;
    for (size_t i = 0; i < kernel.axes.size() && is_of_slot; ++i) {
      const Id r = kernel.axes[i];
      const AxisKind kind = range_kind(g[r]);
      const bool stands_beside = kind == AxisKind::Upcast || kind == AxisKind::Vector;
      if (!open.depends(store, r) || (i < place && !stands_beside)) continue;
      require(kind == AxisKind::Loop || stands_beside, "[codegen] {}: axis {} is no loop", text, i);
      require(!is_bounded(g[r]), "[codegen] {}: axis {} has bounds", text, i);
      ranges.push_back(r);
    }
    if (!ranges.empty()) {
      check_result(kernel, store, text);
      store = Result(kernel, store, std::move(ranges), axis).store_from_buffer(number++);
      any = true;
    }
    stores.push_back(store);
  }
  require(any, "[codegen] {}: no stored value of the parameter varies inside there", text);
  kernel.sink = g.add(Op::Sink, DType::Void, stores);
  replace(kernel, {});
  check_local_buffers(kernel, text);
}

}  // namespace plugrad::codegen

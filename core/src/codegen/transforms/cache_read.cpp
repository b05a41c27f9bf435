// cache_read: copies the elements loaded from a parameter into a local buffer, in the order in
// which they are read again. A schedule step, no local rewrite: all loads of a parameter change
// together.
//   before   load %b[%k*512 + %j*48 + %v]                inside %i, %j, %k;  %v = range 48 vector
//   after    load (filled s[%x*48*128 + %y*48 + %w] = %b[%y*512 + %x*48 + %w], over %x, %y, %w)
//                 [%j*48*128 + %k*48 + %v]
// The copy includes computations on the operand alone (a mask, a cast, padding). Loops that move
// the address together, such as a row and a tap, are one coordinate: h + r, of extent H + R - 1.
#include <algorithm>
#include <functional>
#include <numeric>

#include "base/check.h"
#include "codegen/analysis/access.h"
#include "codegen/analysis/work_items.h"
#include "codegen/kernel.h"
#include "codegen/transforms/tile_layout.h"
#include "codegen/transforms/transforms.h"
#include "ir/facts.h"
#include "ir/scratch.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {
namespace {

// Copies of the copying instruction, a limit on code size. Chosen, not measured.
constexpr int64_t kMostUnrolledCopies = 16;

bool is_of_slot(const Graph& g, Id load, uint32_t slot) {
  const Id memory = g.sources(load)[0];
  return g[memory].op == Op::Param && param_info(g, memory).slot == slot;
}

}  // namespace

std::vector<Id> find_operands(const Kernel& kernel, OpenRanges& open, const ScheduleStep& change,
                              RangeSet inside) {
  const Graph& g = kernel.graph;
  const uint32_t slot = change.axis;
  Reachable reachable;
  // Enters the terms of a kept value, but not the loads of an existing copy.
  const std::vector<Id> nodes = reachable.from(g, std::span(&kernel.sink, 1), [&](Id id) {
    return g[id].op == Op::Filled && nodes_of(g, id, Op::Reduce).empty();
  });
  std::vector<bool> written(g.size());
  for (Id store : g.sources(kernel.sink)) written[g.sources(store)[0]] = true;
  // Each node's loads: none, other parameters, the slot, or memory that this step must not copy.
  constexpr uint8_t kNothing = 0, kLoads = 1, kSlot = 2, kOther = 3;
  std::vector<uint8_t> below(g.size()), taken(g.size()), used(g.size());
  for (Id id : nodes) {
    const Node& n = g[id];
    if (n.op == Op::Reduce || n.op == Op::Filled || (n.op == Op::Load && written[g.sources(n)[0]]))
      below[id] = kOther;
    for (Id s : g.sources(n)) {
      const bool even = below[s] == kNothing || (open[s] & inside) == (open[id] & inside);
      below[id] = std::max(below[id], even ? below[s] : kOther);
    }
    if (n.op == Op::Load && below[id] != kOther)
      below[id] = is_of_slot(g, id, slot) ? kSlot : std::max(below[id], kLoads);
    taken[id] = below[id] == kSlot && n.dtype != DType::Index && (open[id] & inside) != 0 &&
                (n.op == Op::Load || is_alu(n.op));
  }
  std::vector<Id> operands;
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    const bool storable = g[*it].dtype != DType::Bool && claims_storage(*kernel.caps, g[*it].dtype);
    const bool copied = taken[*it] != 0 && (used[*it] == 0 || storable);
    if (copied && used[*it] != 0) operands.push_back(*it);
    if (!copied)
      for (Id s : g.sources(*it)) used[s] = 1;
  }
  require(!operands.empty(), "[codegen] {}: no load of parameter {} varies inside there",
          to_string({change}), slot);
  return operands;
}

namespace {

// The layout of one operand's copy and its stores.
class Copy {
 public:
  Copy(Kernel& kernel, Id operand, std::vector<Coordinate> coordinates, uint32_t& next_axis)
      : kernel_(kernel),
        operand_(operand),
        coordinates_(std::move(coordinates)),
        next_axis_(next_axis) {
    order();
  }

  /// The load that replaces the operand.
  Id load(uint32_t number) {
    const DType dtype = g_[operand_].dtype;
    int64_t count = 1;
    for (const Coordinate& c : coordinates_) count *= c.extent;
    array_ = make_array(g_, dtype, {number, PGR_SPACE_PRIVATE, count});
    value_ = operand_;
    for (const Coordinate& c : coordinates_)
      for (const auto& [range, scale] : c.parts)
        if (range != c.base) value_ = at(g_, value_, range, g_.index(0));
    write_all();
    return g_.add(Op::Load, dtype, {make_filled(g_, stores_, ranges_), place()});
  }

 private:
  AxisKind kind(Id range) const { return range_kind(g_[range]); }
  bool any(const Coordinate& c, AxisKind wanted) const {
    return std::ranges::any_of(c.parts,
                               [&](const auto& part) { return kind(part.first) == wanted; });
  }
  bool is_unrolled(const Coordinate& c) const {
    return std::ranges::all_of(c.parts,
                               [&](const auto& part) { return is_expanded(kind(part.first)); });
  }

  // The layout: lanes innermost, or without lanes the coordinate that is consecutive in memory;
  // then the register tile; then outer loops in their order.
  void order() {
    const bool has_lanes = std::ranges::any_of(
        coordinates_, [&](const Coordinate& c) { return any(c, AxisKind::Vector); });
    const auto rank = [&](const Coordinate& c) {
      if (any(c, AxisKind::Vector)) return 3;
      if (!has_lanes && c.is_consecutive) return 2;
      return is_unrolled(c) ? 1 : 0;
    };
    const auto place = [&](const Coordinate& c) {
      return std::ranges::find(kernel_.axes, c.parts[0].first) - kernel_.axes.begin();
    };
    std::ranges::stable_sort(coordinates_, {},
                             [&](const Coordinate& c) { return std::pair(rank(c), place(c)); });
  }

  int64_t stride(size_t coordinate) const {
    int64_t stride = 1;
    for (size_t i = coordinate + 1; i < coordinates_.size(); ++i) stride *= coordinates_[i].extent;
    return stride;
  }

  // The index of the kernel's element in the copy.
  Id place() {
    return index_in_copy(g_, coordinates_, [&](size_t i) { return stride(i); });
  }

  Id new_range(int64_t size, AxisKind kind) {
    if (size == 1) return g_.index(0);
    const Id range = make_range(g_, size, next_axis_++, kind);
    ranges_.push_back(range);
    return range;
  }

  // Vectors along the coordinate that is consecutive in memory: whole rows if that coordinate is
  // innermost in the copy too, otherwise one vector from each row in turn, so that the scattered
  // elements stay in cache.
  void write_all() {
    const auto it = std::ranges::find_if(coordinates_.rbegin(), coordinates_.rend(),
                                         [](const Coordinate& c) { return c.is_consecutive; });
    if (it == coordinates_.rend()) return write(0, g_.index(0));
    const bool is_innermost = it == coordinates_.rbegin();
    lanes_at_ = static_cast<size_t>(coordinates_.rend() - it) - 1;
    const int64_t lanes =
        std::max(1u, kernel_.caps->vector_lanes[static_cast<size_t>(g_[operand_].dtype)]);
    width_ = std::min(it->extent, is_innermost ? 4 * lanes : lanes);
    if (is_innermost) return write(0, g_.index(0));
    write_lanes(new_range(it->extent / width_, AxisKind::Loop), 0, g_.index(0));
  }

  // Stores for all values of the coordinates from `i` on; `index` covers those before.
  void write(size_t i, Id index) {
    if (i == coordinates_.size()) {
      stores_.push_back(g_.add(Op::Store, DType::Void, {array_, index, value_}));
      return;
    }
    const Coordinate& c = coordinates_[i];
    if (i == lanes_at_) {
      const bool is_last = i + 1 == coordinates_.size();
      if (is_last)
        write_lanes(new_range(c.extent / width_, AxisKind::Loop), i, index);
      else
        write(i + 1, index);
      return;
    }
    const bool copies =
        is_unrolled(c) && copies_ * c.extent <= kMostUnrolledCopies && !any(c, AxisKind::Vector);
    if (copies) copies_ *= c.extent;
    write_at(i, i + 1, index, new_range(c.extent, copies ? AxisKind::Upcast : AxisKind::Loop));
  }

  // Fixes coordinate `i` at `value` and continues with `next`.
  void write_at(size_t i, size_t next, Id index, Id value) {
    const Coordinate& c = coordinates_[i];
    const Id before = value_;
    value_ = at(g_, value_, c.base, g_.binary(Op::Add, value, g_.index(-c.offset)));
    write(next, g_.binary(Op::Add, index, g_.binary(Op::Mul, value, g_.index(stride(i)))));
    value_ = before;
  }

  // The coordinate of the lanes, then those from `i` on: a few vectors at a time, then the
  // remainder.
  void write_lanes(Id block, size_t i, Id index) {
    const int64_t extent = coordinates_[lanes_at_].extent, rest = extent % width_;
    const size_t next = i == lanes_at_ ? i + 1 : i;
    const Id outer = g_.binary(Op::Mul, block, g_.index(width_));
    const int64_t copies = copies_;
    write_at(lanes_at_, next, index,
             g_.binary(Op::Add, outer, new_range(width_, AxisKind::Vector)));
    copies_ = copies;
    if (rest > 0)
      write_at(lanes_at_, next, index,
               g_.binary(Op::Add, new_range(rest, AxisKind::Vector), g_.index(extent - rest)));
  }

  Kernel& kernel_;
  Graph& g_ = kernel_.graph;
  Id operand_, array_ = kNoId, value_ = kNoId;
  std::vector<Coordinate> coordinates_;  // outermost first
  uint32_t& next_axis_;
  std::vector<Id> stores_, ranges_;
  int64_t copies_ = 1, width_ = 0;
  size_t lanes_at_ = SIZE_MAX;  // the coordinate along which vectors run
};

uint64_t local_buffer_bytes(const Kernel& kernel) {
  uint64_t bytes = 0;
  for (Id array : nodes_of(kernel.graph, kernel.sink, Op::Array))
    bytes += static_cast<uint64_t>(array_info(kernel.graph, array).elem_count) *
             size_of(kernel.graph[array].dtype);
  return bytes;
}

// Bytes of local buffers that one work-item may have.
uint64_t max_local_buffer_bytes(const pgr_device_caps& caps) {
  return caps.private_bytes == 0 ? 64 << 10 : 4 * caps.private_bytes;
}

}  // namespace

uint32_t next_array(const Kernel& kernel) {
  uint32_t number = 0;
  for (Id array : nodes_of(kernel.graph, kernel.sink, Op::Array))
    number = std::max(number, array_info(kernel.graph, array).number + 1);
  return number;
}

void check_local_buffers(const Kernel& kernel, const std::string& change) {
  const uint64_t bytes = local_buffer_bytes(kernel), most = max_local_buffer_bytes(*kernel.caps);
  require(bytes <= most,
          "[codegen] {}: the kernel's arrays need {} bytes, the device has {} for them", change,
          bytes, most);
}

void cache_read(Kernel& kernel, const ScheduleStep& change) {
  Graph& g = kernel.graph;
  const std::string text = to_string({change});
  check_private_place(kernel, change);
  OpenRanges open(g);
  RangeSet inside = 0;
  for (size_t i = 0; i < kernel.axes.size(); ++i) {
    if (static_cast<int64_t>(i) >= change.amount)
      inside |= open.bit(kernel.axes[i]);
    else
      require(!is_expanded(range_kind(g[kernel.axes[i]])), "[codegen] {}: axis {} is no loop", text,
              i);
  }
  const std::vector<Id> operands = find_operands(kernel, open, change, inside);
  uint32_t number = next_array(kernel), axis = new_axis(kernel);
  std::vector<std::pair<Id, Id>> map;
  for (Id operand : operands) {
    std::vector<Id> ranges;
    for (Id r : open.members(open[operand] & inside)) {
      ranges.push_back(r);
      const AxisKind kind = range_kind(g[r]);  // such an axis may run past its end
      require(kind != AxisKind::Global, "[codegen] {}: an axis inside runs in parallel", text);
      require(!is_bounded(g[r]), "[codegen] {}: an axis inside has bounds", text);
    }
    map.emplace_back(
        operand, Copy(kernel, operand, tile_coordinates(kernel, operand, change.axis, ranges), axis)
                     .load(number++));
  }
  replace(kernel, map);
  check_local_buffers(kernel, text);
}

}  // namespace plugrad::codegen

// Work-items of a group share one copy of what they load of a parameter, in local memory, which
// they fill together: each copies every n-th element, so that neighbours read neighbours.
//   before   load %a[%i*512 + %b*16 + %k]              %i = range 16 local, %k = range 16
//   after    load (filled s[%e // 16 * 17 + %e % 16] =
//                             %a[%e // 16 * 512 + %b*16 + %e % 16], over %r)[%i*17 + %k]
//            %e = %r*64 + (the number of the work-item among 64)
// A row of even length gets one element more, so that items that read down a column meet different
// banks.
#include <algorithm>
#include <optional>

#include "base/check.h"
#include "codegen/access.h"
#include "codegen/gates.h"
#include "codegen/search/changes.h"
#include "codegen/search/tile_coordinates.h"
#include "codegen/work_items.h"
#include "symbolic/symbolic.h"
#include "uop/facts.h"
#include "uop/scratch.h"

namespace plugrad::codegen {
namespace {

constexpr int64_t kMostCopies = 8;  // of the copying instruction

struct Items {
  Id number;
  int64_t count = 1;
};

Items items_of(Kernel& kernel, OpenRanges& open, const std::string& text) {
  Graph& g = kernel.graph;
  Items items{g.index(0)};
  for (const ItemAxis& axis : item_axes(kernel, open)) {
    require(axis.ranges.size() == 1 && range_kind(g[axis.ranges[0]]) == AxisKind::Local,
            "[codegen] {}: the work-items do not all work on one tile", text);
    items.number =
        g.binary(Op::Add, items.number, g.binary(Op::Mul, axis.ranges[0], g.index(items.count)));
    items.count *= axis.size;
  }
  return items;
}

bool is_inside(AxisKind kind) {
  return is_item_axis(kind) || kind == AxisKind::Upcast || kind == AxisKind::Unroll ||
         kind == AxisKind::Vector;
}

// Items past the end of an axis store nothing, but they copy: what they would read outside is not
// read.
Id gated_by_stores(Kernel& kernel, OpenRanges& open, Id operand, const std::string& text) {
  Graph& g = kernel.graph;
  std::optional<Id> gate;
  for (Id store : g.sources(kernel.sink)) {
    if (!depends_on(g, store, operand)) continue;
    const Id own = g.sources(store).size() == 4 ? g.sources(store)[3] : kNoId;
    require(!gate || *gate == own, "[codegen] {}: stores with different gates need it", text);
    gate = own;
  }
  if (!gate || *gate == kNoId) return operand;
  for (Id condition : conjuncts(g, *gate))
    if (g[condition].op != Op::Bounded && (open[condition] & ~open[operand]) == 0)
      operand = gate_loads(g, open, operand, condition);
  return operand;
}

class SharedCopy {
 public:
  SharedCopy(Kernel& kernel, const Items& items, std::vector<Coordinate> coordinates)
      : kernel_(kernel), items_(items), coordinates_(std::move(coordinates)) {
    std::ranges::stable_sort(coordinates_, {}, &Coordinate::is_consecutive);
  }

  // Loads of it stand for the operand.
  Id load(Id operand, uint32_t number, uint32_t& next_axis) {
    const int64_t elements = extent_from(0), rounds = (elements + items_.count - 1) / items_.count;
    std::vector<Id> ranges;
    Id element = items_.number;
    if (rounds > 1) {
      const AxisKind kind = rounds <= kMostCopies ? AxisKind::Upcast : AxisKind::Loop;
      ranges.push_back(make_range(g_, rounds, next_axis++, kind));
      element = g_.binary(Op::Add, element, g_.binary(Op::Mul, ranges[0], g_.index(items_.count)));
    }
    const DType dtype = g_[operand].dtype;
    const Id array =
        make_array(g_, dtype, {number, PGR_SPACE_LOCAL, coordinates_[0].extent * stride(0)});
    Id store = fill(array, operand, element);
    if (elements % items_.count != 0) {
      const Id gate = g_.binary(Op::CmpLt, element, g_.index(elements));
      OpenRanges open(g_);
      store = with_gate(g_, gate_loads(g_, open, store, gate), gate);
    }
    return g_.add(Op::Load, dtype, {make_filled(g_, {&store, 1}, ranges), place()});
  }

 private:
  int64_t extent_from(size_t first) const {
    int64_t count = 1;
    for (size_t i = first; i < coordinates_.size(); ++i) count *= coordinates_[i].extent;
    return count;
  }
  int64_t stride(size_t coordinate) const {
    int64_t stride = 1;
    for (size_t i = coordinates_.size(); --i > coordinate;)
      stride *= coordinates_[i].extent +
                (i + 1 == coordinates_.size() && coordinates_[i].extent % 2 == 0);
    return stride;
  }

  // Where the kernel finds the element.
  Id place() {
    return index_in_copy(g_, coordinates_, [&](size_t i) { return stride(i); });
  }

  Id fill(Id array, Id value, Id element) {
    Id index = g_.index(0);
    std::vector<std::pair<Id, Id>> map;
    for (size_t i = 0; i < coordinates_.size(); ++i) {
      const Coordinate& c = coordinates_[i];
      Id own = g_.binary(Op::FloorDiv, element, g_.index(extent_from(i + 1)));
      if (i > 0) own = g_.binary(Op::FloorMod, own, g_.index(c.extent));
      index = g_.binary(Op::Add, index, g_.binary(Op::Mul, own, g_.index(stride(i))));
      for (const auto& [range, scale] : c.parts)
        map.emplace_back(
            range, range == c.base ? g_.binary(Op::Add, own, g_.index(-c.offset)) : g_.index(0));
    }
    return g_.add(Op::Store, DType::Void, {array, index, substitute(g_, value, map)});
  }

  Kernel& kernel_;
  Graph& g_ = kernel_.graph;
  const Items& items_;
  std::vector<Coordinate> coordinates_;  // outermost first
};

}  // namespace

void stage_local(Kernel& kernel, const Optimisation& change) {
  Graph& g = kernel.graph;
  const std::string text = to_string({change});
  require(change.amount >= 0 && change.amount <= static_cast<int64_t>(kernel.axes.size()),
          "[codegen] {}: the kernel has {} axes", text, kernel.axes.size());
  OpenRanges open(g);
  RangeSet inside = 0;
  for (size_t i = 0; i < kernel.axes.size(); ++i)
    if (static_cast<int64_t>(i) >= change.amount || is_inside(range_kind(g[kernel.axes[i]])))
      inside |= open.bit(kernel.axes[i]);
  const Items items = items_of(kernel, open, text);
  const std::vector<Id> operands = find_operands(kernel, open, change.axis, inside);
  require(!operands.empty(),
          "[codegen] {}: nothing that is loaded of parameter {} varies inside there", text,
          change.axis);
  uint32_t number = next_array(kernel), axis = new_axis(kernel);
  std::vector<std::pair<Id, Id>> map;
  for (Id operand : operands) {
    const Id gated = gated_by_stores(kernel, open, operand, text);
    std::vector<Id> ranges;
    for (Id r : open.members(open[gated] & inside)) {
      require(!is_bounded(g[r]), "[codegen] {}: an axis inside has bounds", text);
      ranges.push_back(r);
    }
    SharedCopy copy(kernel, items, tile_coordinates(kernel, gated, change.axis, ranges));
    map.emplace_back(operand, copy.load(gated, number++, axis));
  }
  replace(kernel, map);
}

void check_beside_local_copies(const Kernel& kernel, const Optimisation& change) {
  using Kind = Optimisation::Kind;
  const Graph& g = kernel.graph;
  OpenRanges open(g);
  for (Id filled : nodes_of(g, kernel.sink, Op::Filled)) {
    if (!is_local(g, filled)) continue;
    const bool is_plain =
        change.kind == Kind::Stage || change.kind == Kind::Thread || change.kind == Kind::Swap;
    const bool is_inner =
        change.kind == Kind::Unroll && !open.depends(filled, kernel.axes[change.axis]);
    require(is_plain || is_inner, "[codegen] {}: not behind a stage in local memory",
            to_string({change}));
  }
}

}  // namespace plugrad::codegen

// cache_read on devices with lockstep work-items: the group copies the elements that it loads of a
// parameter into local memory together. A schedule step, no local rewrite. Each of n work-items
// copies every n-th vector, so that adjacent work-items read adjacent vectors.
//   before   load %a[%i*512 + %b*16 + %k]                %i = range 16 local, %k = range 16
//   after    load (filled s[%e // 16 * 16 + %e % 16] =
//                           %a[%e // 16 * 512 + %b*16 + %e % 16], over %r)[%i*16 + %k]
//            %e = %r*64 + (the number of the work-item among 64)
// Rows are padded against bank conflicts (padded_row in transforms/tile_layout.h).
#include <algorithm>

#include "base/check.h"
#include "codegen/analysis/access.h"
#include "codegen/analysis/predication.h"
#include "codegen/analysis/work_items.h"
#include "codegen/kernel.h"
#include "codegen/transforms/tile_layout.h"
#include "codegen/transforms/transforms.h"
#include "ir/facts.h"
#include "ir/scratch.h"
#include "symbolic/linear.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {
namespace {

// Copies of the copying instruction, a limit on code size. Chosen, not measured.
constexpr int64_t kMostCopies = 8;

// The widest vector of at most 16 bytes that LOAD and STORE accept and whose lanes divide `count`;
// 1 for none. Tensor core operands count as such vectors.
uint32_t widest_moved(const pgr_device_caps& caps, DType dtype, int64_t count) {
  constexpr uint32_t kMostBytes = 16;
  const auto number = static_cast<uint32_t>(dtype);
  uint32_t widest = 1;
  const auto consider = [&](uint32_t lanes) {
    if (lanes > widest && lanes * size_of(dtype) <= kMostBytes && count % lanes == 0)
      widest = lanes;
  };
  for (uint32_t lanes = 2; lanes <= caps.vector_lanes[number]; lanes *= 2) consider(lanes);
  if (caps.has_local == 0 || !claims(caps, Op::Wmma, dtype)) return widest;
  for (uint32_t i = 0; i < caps.tensor_core_count; ++i) {
    const pgr_tensor_core& core = caps.tensor_cores[i];
    if (core.dtype_in != number) continue;
    consider(core.elems_a);
    consider(core.elems_b);
  }
  return widest;
}

struct Items {
  Id number;
  int64_t count = 1;
};

Items chosen_work_items(Kernel& kernel, const std::vector<WorkItemAxis>& axes,
                        const std::string& text) {
  Graph& g = kernel.graph;
  Items items{g.index(0)};
  for (const WorkItemAxis& axis : axes) {
    require(axis.ranges.size() == 1 && range_kind(g[axis.ranges[0]]) != AxisKind::Group,
            "[codegen] {}: the work-items do not all work on one tile", text);
    items.number =
        g.binary(Op::Add, items.number, g.binary(Op::Mul, axis.ranges[0], g.index(items.count)));
    items.count *= axis.size;
  }
  return items;
}

bool is_inside(AxisKind kind) {
  return is_work_item_axis(kind) || kind == AxisKind::Upcast || kind == AxisKind::Unroll ||
         kind == AxisKind::Vector;
}

// For each store that needs the operand: the conditions that are uniform among the copying
// work-items.
std::vector<std::vector<Id>> gates_of(const Kernel& kernel, OpenRanges& open, Id operand) {
  const Graph& g = kernel.graph;
  std::vector<std::vector<Id>> gates;
  for (Id store : g.sources(kernel.sink)) {
    if (!depends_on(g, store, operand)) continue;
    std::vector<Id> own;
    if (g.sources(store).size() == 4) own = conjuncts(g, g.sources(store)[3]);
    std::erase_if(own, [&](Id condition) {
      return g[condition].op == Op::Bounded || (open[condition] & ~open[operand]) != 0 ||
             is_on_elements(g, open, condition);
    });
    std::ranges::sort(own);
    if (std::ranges::find(gates, own) == gates.end()) gates.push_back(std::move(own));
  }
  return gates;
}

// Work-items past the end of an axis store nothing but copy; their copies must not read out of
// bounds. The copy is gated by the conditions common to all stores and by the union of the others.
Id gated_by_stores(Kernel& kernel, OpenRanges& open, Id operand) {
  Graph& g = kernel.graph;
  std::vector<std::vector<Id>> gates = gates_of(kernel, open, operand);
  if (gates.empty()) return operand;
  std::vector<Id> common = gates[0];
  for (const std::vector<Id>& own : gates)
    std::erase_if(common,
                  [&](Id condition) { return std::ranges::find(own, condition) == own.end(); });
  Id any = kNoId;
  for (std::vector<Id>& own : gates) {
    std::erase_if(
        own, [&](Id condition) { return std::ranges::find(common, condition) != common.end(); });
    Id all = g.constant(DType::Bool, int64_t{1});
    for (Id condition : own) all = g.binary(Op::And, all, condition);
    any = any == kNoId ? all : g.binary(Op::Or, any, all);
  }
  common.push_back(Simplifier(g, kernel.rules())(any));
  for (Id condition : common)
    if (!is_const(g, condition)) operand = gate_loads(g, open, operand, condition);
  return operand;
}

class SharedCopy {
 public:
  SharedCopy(Kernel& kernel, const Items& items, std::vector<Coordinate> coordinates, Id operand)
      : kernel_(kernel), items_(items), coordinates_(std::move(coordinates)), operand_(operand) {
    std::ranges::stable_sort(coordinates_, {}, &Coordinate::is_consecutive);
    width_ = widest_copy();
  }

  // The load that replaces the operand.
  Id load(const AccessPattern& readers, uint32_t number, uint32_t& next_axis) {
    row_ = padded_row(*kernel_.caps, coordinates_, readers, g_[operand_].dtype, width_);
    const int64_t vectors = extent_from(0) / width_,
                  rounds = (vectors + items_.count - 1) / items_.count;
    std::vector<Id> ranges;
    Id vector = items_.number;
    if (rounds > 1) {
      const AxisKind kind = rounds <= kMostCopies ? AxisKind::Upcast : AxisKind::Loop;
      ranges.push_back(make_range(g_, rounds, next_axis++, kind));
      vector = g_.binary(Op::Add, vector, g_.binary(Op::Mul, ranges[0], g_.index(items_.count)));
    }
    const DType dtype = g_[operand_].dtype;
    const Id array =
        make_array(g_, dtype, {number, PGR_SPACE_LOCAL, coordinates_[0].extent * stride(0)});
    Id store = fill(array, vector);
    if (vectors % items_.count != 0) {
      const Id gate = g_.binary(Op::CmpLt, vector, g_.index(vectors));
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
  int64_t stride(size_t coordinate) const { return stride_in_rows(coordinates_, row_, coordinate); }

  // The index of the kernel's element in the copy.
  Id place() {
    return index_in_copy(g_, coordinates_, [&](size_t i) { return stride(i); });
  }

  // The widest vectors that divide a row, are consecutive in memory behind one gate, and are
  // aligned to their size.
  int64_t widest_copy() {
    const Coordinate& row = coordinates_.back();
    if (!row.is_consecutive || g_[operand_].op != Op::Load) return 1;
    const DType dtype = g_[operand_].dtype;
    int64_t width = widest_moved(*kernel_.caps, dtype, row.extent);
    while (width > 1 && !is_of_vectors(width))
      width = widest_moved(*kernel_.caps, dtype, width / 2);
    return width;
  }
  bool is_of_vectors(int64_t width) {
    const auto sources = g_.sources(operand_);
    if (coordinates_.back().offset % width != 0 || !moves_by(sources[1], width)) return false;
    if (sources.size() == 2) return true;
    if (!is_const(g_, sources[3])) return false;
    OpenRanges open(g_);
    return std::ranges::all_of(conjuncts(g_, sources[2]), [&](Id condition) {
      if (!varies(open, condition)) return true;
      const Node& n = g_[condition];
      return n.op == Op::CmpLt && is_const(g_, n.src[1]) && const_int(g_, n.src[1]) % width == 0 &&
             moves_by(n.src[0], width);
    });
  }
  bool varies(OpenRanges& open, Id id) const {
    return std::ranges::any_of(coordinates_.back().parts,
                               [&](const auto& part) { return open.depends(id, part.first); });
  }
  // Whether the sum is the position in the row plus a multiple of the width.
  bool moves_by(Id id, int64_t width) {
    const auto& parts = coordinates_.back().parts;
    const auto sum = linear_of(g_, id);
    if (!sum || sum->constant % width != 0) return false;
    OpenRanges open(g_);
    for (const auto& [range, scale] : parts)
      if (sum->factor_of(range) != scale) return false;
    return std::ranges::all_of(sum->terms, [&](const Term& term) {
      const bool is_part = std::ranges::find(parts, term.id, [](const auto& part) {
                             return part.first;
                           }) != parts.end();
      return is_part || (term.factor % width == 0 && !varies(open, term.id));
    });
  }

  Id fill(Id array, Id vector) {
    Id index = g_.index(0);
    std::vector<std::pair<Id, Id>> map;
    for (size_t i = 0; i < coordinates_.size(); ++i) {
      const Coordinate& c = coordinates_[i];
      const bool is_row = i + 1 == coordinates_.size();
      const int64_t inner = is_row ? 1 : extent_from(i + 1) / width_;
      Id own = g_.binary(Op::FloorDiv, vector, g_.index(inner));
      if (i > 0)
        own = g_.binary(Op::FloorMod, own, g_.index(is_row ? c.extent / width_ : c.extent));
      if (is_row) own = g_.binary(Op::Mul, own, g_.index(width_));
      index = g_.binary(Op::Add, index, g_.binary(Op::Mul, own, g_.index(stride(i))));
      for (const auto& [range, scale] : c.parts)
        map.emplace_back(
            range, range == c.base ? g_.binary(Op::Add, own, g_.index(-c.offset)) : g_.index(0));
    }
    Id value = substitute(g_, operand_, map);
    if (width_ > 1) value = as_vector(value);
    return g_.add(Op::Store, DType::Void, {array, index, value});
  }

  // The load of a whole vector, from the load of its first element.
  Id as_vector(Id load) {
    const auto lanes = static_cast<uint64_t>(width_);
    std::vector<Id> sources = to_vector(g_.sources(load));
    if (sources.size() == 4) sources[3] = g_.add(Op::Vector, g_[load].dtype, {sources[3]}, lanes);
    return g_.add(Op::Load, g_[load].dtype, sources, lanes);
  }

  Kernel& kernel_;
  Graph& g_ = kernel_.graph;
  const Items& items_;
  std::vector<Coordinate> coordinates_;  // outermost first
  Id operand_;
  int64_t width_ = 1, row_ = 0;  // elements: of a vector, and from one row to the next
};

}  // namespace

void cache_read_local(Kernel& kernel, const ScheduleStep& change) {
  Graph& g = kernel.graph;
  const std::string text = to_string({change});
  require(change.amount >= 0 && change.amount <= static_cast<int64_t>(kernel.axes.size()),
          "[codegen] {}: the kernel has {} axes", text, kernel.axes.size());
  OpenRanges open(g);
  RangeSet inside = 0;
  for (size_t i = 0; i < kernel.axes.size(); ++i)
    if (static_cast<int64_t>(i) >= change.amount) inside |= open.bit(kernel.axes[i]);
  for (Id range : nodes_of(g, kernel.sink, Op::Range))
    if (is_inside(range_kind(g[range]))) inside |= open.bit(range);
  const std::vector<WorkItemAxis> item_axes_now = work_item_axes(kernel, open);
  const Items items = chosen_work_items(kernel, item_axes_now, text);
  const std::vector<Id> operands = find_operands(kernel, open, change, inside);
  uint32_t number = next_array(kernel), axis = new_axis(kernel);
  std::vector<std::pair<Id, Id>> map;
  for (Id operand : operands) {
    const Id gated = gated_by_stores(kernel, open, operand);
    std::vector<Id> ranges;
    for (Id r : open.members(open[gated] & inside)) {
      require(!is_bounded(g[r]), "[codegen] {}: an axis inside has bounds", text);
      ranges.push_back(r);
    }
    const AccessPattern readers = access_pattern(kernel, item_axes_now, operand);
    SharedCopy copy(kernel, items, tile_coordinates(kernel, gated, change.axis, ranges, true),
                    gated);
    map.emplace_back(operand, copy.load(readers, number++, axis));
  }
  replace(kernel, map);
}

void check_beside_local_copies(const Kernel& kernel, const ScheduleStep& change) {
  using Kind = ScheduleStep::Kind;
  const Graph& g = kernel.graph;
  OpenRanges open(g);
  for (Id filled : nodes_of(g, kernel.sink, Op::Filled)) {
    if (!is_local(g, filled)) continue;
    const bool is_plain =
        change.names_parameter() || change.kind == Kind::Thread || change.kind == Kind::Swap;
    const bool is_inner =
        change.kind == Kind::Unroll && !open.depends(filled, kernel.axes[change.axis]);
    require(is_plain || is_inner, "[codegen] {}: not after a stage in local memory",
            to_string({change}));
  }
}

}  // namespace plugrad::codegen

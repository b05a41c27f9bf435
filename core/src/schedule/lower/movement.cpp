#include "schedule/lower/movement.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <optional>

#include "ir/fold.h"
#include "ir/range.h"

namespace plugrad::schedule {
namespace {

/// Integers of up to 16 bits as f32, which holds them exactly.
bool is_conversion(DType from, DType to) {
  return from == to ||
         (to == DType::F32 && !is_float(from) && from != DType::Bool && size_of(from) <= 2);
}

// How far apart the elements of an axis are.
int64_t step_of(const std::vector<int64_t>& offsets) {
  return offsets.size() < 2 ? 0 : std::abs(offsets[1] - offsets[0]);
}

// Reads along the source, for a few neighbours of the destination at a time (run()).
void sort_axes(std::vector<Movement::Axis>& axes) {
  std::ranges::stable_sort(axes, std::greater(),
                           [](const auto& axis) { return step_of(axis.from); });
  const auto nearest = std::ranges::min_element(
      axes, {}, [](const auto& axis) { return axis.to.size() < 2 ? INT64_MAX : step_of(axis.to); });
  if (nearest != axes.end()) std::rotate(nearest, nearest + 1, axes.end());
}

class MovementReader {
 public:
  explicit MovementReader(const KernelAst& ast) : graph_(ast.graph), sink_(ast.sink) {}

  bool read() {
    if (graph_.sources(sink_).size() != 1) return false;
    const auto store = graph_.sources(graph_.sources(sink_)[0]);
    if (store.size() != 3) return false;
    Id value = store[2];
    moved_.result = graph_[value].dtype;
    Id condition = kNoId, gap = kNoId;
    bool is_cast = false;
    const auto skip_cast = [&] {
      if (is_cast || graph_[value].op != Op::Cast) return;
      is_cast = true;
      value = graph_.sources(value)[0];
    };
    skip_cast();
    if (graph_[value].op == Op::Where) {
      const auto where = graph_.sources(value);
      condition = where[0], value = where[1], gap = where[2];
      skip_cast();
    }
    if (graph_[value].op != Op::Load) return false;
    const auto load = graph_.sources(value);
    moved_.source = graph_[value].dtype;
    if (!is_conversion(moved_.source, moved_.result)) return false;
    if (load.size() == 4 && condition != kNoId) return false;
    if (load.size() == 4) condition = load[2], gap = load[3];
    find_ranges(store[1]);
    make_axes();
    return is_zero(gap) && add(store[1], 1, &Movement::Axis::to, moved_.to) &&
           add(load[1], 1, &Movement::Axis::from, moved_.from) &&
           (condition == kNoId || exclude(condition));
  }
  Movement take() {
    if (moved_.axes.empty()) moved_.axes.push_back({{0}, {0}, {0}});
    sort_axes(moved_.axes);
    return std::move(moved_);
  }

 private:
  using Offsets = std::vector<int64_t> Movement::Axis::*;

  bool is_zero(Id gap) const {
    return gap == kNoId || (graph_[gap].op == Op::Const && graph_[gap].arg == 0);
  }

  // Each element is written once: the ranges of its offset are all.
  void find_ranges(Id index) {
    if (graph_[index].op == Op::Range) {
      if (std::ranges::find(ranges_, index) == ranges_.end()) ranges_.push_back(index);
      return;
    }
    for (const Id source : graph_.sources(index)) find_ranges(source);
  }

  void make_axes() {
    std::ranges::sort(ranges_, {}, [&](Id range) { return range_axis(graph_[range]); });
    moved_.axes.resize(ranges_.size());
    for (size_t i = 0; i < ranges_.size(); ++i) {
      const auto size = static_cast<size_t>(range_size(graph_, ranges_[i]));
      moved_.axes[i] = {std::vector<int64_t>(size), std::vector<int64_t>(size),
                        std::vector<uint8_t>(size)};
    }
  }

  // The only range below, as an index of ranges_; its count if there is none; nothing if there are
  // several or others.
  std::optional<size_t> only_range(Id id) const {
    if (graph_[id].op == Op::Range) {
      const auto at = std::ranges::find(ranges_, id);
      if (at == ranges_.end() || is_bounded(graph_[id])) return {};
      return static_cast<size_t>(at - ranges_.begin());
    }
    size_t only = ranges_.size();
    for (const Id source : graph_.sources(id)) {
      const auto below = only_range(source);
      if (!below || (only != ranges_.size() && *below != ranges_.size() && *below != only))
        return {};
      if (*below != ranges_.size()) only = *below;
    }
    return only;
  }

  // The value where the only range has this one. Nothing for other ops than those of indices.
  std::optional<int64_t> value_at(Id id, int64_t position) const {
    const Node& node = graph_[id];
    if (node.op == Op::Range) return position;
    if (node.op == Op::Const) return static_cast<int64_t>(node.arg);
    if (node.src_count != 2) return {};
    const auto sources = graph_.sources(id);
    const auto a = value_at(sources[0], position), b = value_at(sources[1], position);
    if (!a || !b) return {};
    switch (node.op) {  // NOLINT(clang-diagnostic-switch-enum)
      case Op::Add:
        return *a + *b;
      case Op::Sub:
        return *a - *b;
      case Op::Mul:
        return *a * *b;
      case Op::FloorDiv:
        return floor_div(*a, *b);
      case Op::FloorMod:
        return floor_mod(*a, *b);
      case Op::CmpLt:
        return *a < *b;
      case Op::CmpEq:
        return *a == *b;
      case Op::CmpNe:
        return *a != *b;
      case Op::And:
        return *a & *b;
      case Op::Or:
        return *a | *b;
      case Op::Xor:
        return *a ^ *b;
      default:
        return {};
    }
  }

  // Adds index * factor to the offsets.
  bool add(Id index, int64_t factor, Offsets offsets, int64_t& begin) {
    const Node& node = graph_[index];
    const auto sources = graph_.sources(index);
    if (node.op == Op::Add)
      return add(sources[0], factor, offsets, begin) && add(sources[1], factor, offsets, begin);
    if (node.op == Op::Mul && graph_[sources[1]].op == Op::Const)
      return add(sources[0], factor * const_int(graph_, sources[1]), offsets, begin);
    const auto range = only_range(index);
    if (!range) return false;
    if (*range == ranges_.size()) {
      const auto value = value_at(index, 0);
      if (value) begin += factor * *value;
      return value.has_value();
    }
    std::vector<int64_t>& list = moved_.axes[*range].*offsets;
    for (size_t i = 0; i < list.size(); ++i) {
      const auto value = value_at(index, static_cast<int64_t>(i));
      if (!value) return false;
      list[i] += factor * *value;
    }
    return true;
  }

  // Elements for which the condition is false are gaps.
  bool exclude(Id condition) {
    if (graph_[condition].op == Op::And) {
      const auto sources = graph_.sources(condition);
      return exclude(sources[0]) && exclude(sources[1]);
    }
    const auto range = only_range(condition);
    if (!range || *range == ranges_.size()) return false;
    std::vector<uint8_t>& gaps = moved_.axes[*range].is_gap;
    for (size_t i = 0; i < gaps.size(); ++i) {
      const auto value = value_at(condition, static_cast<int64_t>(i));
      if (!value) return false;
      if (*value == 0) gaps[i] = 1;
    }
    return true;
  }

  const Graph& graph_;
  const Id sink_;
  std::vector<Id> ranges_;  // by axis
  Movement moved_;
};

// Positions [begin, end) of the last axis.
struct Indices {
  size_t begin, end;
};

template <class From, class To>
void move_along(const Movement& movement, size_t axis, Indices span, const From* from, To* to,
                bool is_gap) {
  const Movement::Axis& along = movement.axes[axis];
  const bool is_last = axis + 1 == movement.axes.size();
  const Indices own = is_last ? span : Indices{0, along.to.size()};
  for (size_t i = own.begin; i < own.end; ++i) {
    const bool in_gap = is_gap || along.is_gap[i] != 0;
    if (!is_last)
      move_along(movement, axis + 1, span, from + along.from[i], to + along.to[i], in_gap);
    else
      to[along.to[i]] = in_gap ? To{} : static_cast<To>(from[along.from[i]]);
  }
}

template <class From, class To = From>
void move_all(const Movement& movement, const std::byte* from, std::byte* to) {
  constexpr size_t kNeighbours = 16;  // lines of the source that are read at once
  const Movement::Axis& last = movement.axes.back();
  const size_t size = last.to.size(), step = step_of(last.from) == 1 ? size : kNeighbours;
  for (size_t i = 0; i < size; i += step)
    move_along(movement, 0, {i, std::min(size, i + step)},
               reinterpret_cast<const From*>(from) + movement.from,
               reinterpret_cast<To*>(to) + movement.to, false);
}

}  // namespace

void Movement::run(const std::byte* from_bytes, std::byte* to_bytes) const {
  if (source != result) {
    if (source == DType::I8) return move_all<int8_t, float>(*this, from_bytes, to_bytes);
    if (source == DType::U8) return move_all<uint8_t, float>(*this, from_bytes, to_bytes);
    if (source == DType::I16) return move_all<int16_t, float>(*this, from_bytes, to_bytes);
    return move_all<uint16_t, float>(*this, from_bytes, to_bytes);
  }
  switch (size_of(source)) {
    case 1:
      return move_all<uint8_t>(*this, from_bytes, to_bytes);
    case 2:
      return move_all<uint16_t>(*this, from_bytes, to_bytes);
    case 4:
      return move_all<uint32_t>(*this, from_bytes, to_bytes);
    default:
      return move_all<uint64_t>(*this, from_bytes, to_bytes);
  }
}

std::shared_ptr<const Movement> movement_of(const KernelAst& ast) {
  MovementReader reader(ast);
  return reader.read() ? std::make_shared<const Movement>(reader.take()) : nullptr;
}

}  // namespace plugrad::schedule

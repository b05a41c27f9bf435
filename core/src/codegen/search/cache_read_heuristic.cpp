// The cache_read and cache_write heuristic for CPUs. The operand with lanes is read row by row with
// a stride; packed, the panel that one column of register tiles reads repeatedly is one stream. The
// loops that the panel depends on go outside, the others inside.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include "base/check.h"
#include "codegen/analysis/access.h"
#include "codegen/search/heuristic.h"
#include "codegen/search/search.h"
#include "codegen/tiling/cost_model.h"
#include "codegen/transforms/transforms.h"
#include "cost/traffic.h"
#include "ir/facts.h"
#include "plugrad/error.h"

namespace plugrad::codegen {
namespace {

using Kind = ScheduleStep::Kind;

// Chosen, not measured alone.
constexpr double kEnoughReuse = 48;    // uses of overlapping windows, from which a copy pays
constexpr double kRowsOfTile = 8;      // typical rows of a register tile
constexpr int64_t kEnoughTiles = 6;    // register tiles in a block of rows, at least
constexpr int64_t kFewNeighbours = 4;  // consecutive elements stored together

// The part of an operand that one column of tiles reads.
struct Panel {
  uint32_t slot = 0;
  std::vector<Id> outside;  // output loops that it depends on
  double reuse = 1;         // reads of each element by the other output loops
  double elements = 1, span = 1;
  bool is_consecutive = false;
  uint64_t bytes = 0;
  double all_bytes = 0;  // of all panels
  bool has_split_rows = false;
  double row_bytes = 0;      // of consecutive elements
  double row_stride = 0;     // bytes from one row to the next
  bool is_windowed = false;  // panels share elements
  int64_t longest = 0;       // iterations of its longest serial reduce loop
  size_t longest_place = 0;
};

bool is_serial_output(const Graph& g, Id r) {
  return range_kind(g[r]) == AxisKind::Loop;
}

Panel panel_of(const Kernel& kernel, OpenRanges& open, Id store, Id load, Id lanes) {
  const Graph& g = kernel.graph;
  Panel panel;
  panel.slot = param_info(g, g.sources(load)[0]).slot;
  panel.is_consecutive = stride_of(g, g.sources(load)[1], lanes) == 1;
  for (Id r : kernel.axes) {
    const auto size = static_cast<double>(range_size(g, r));
    if (open.depends(load, r)) {
      if (is_serial_output(g, r)) {
        panel.outside.push_back(r);
        continue;
      }
      panel.elements *= size;
      panel.span +=
          std::abs(static_cast<double>(stride_of(g, g.sources(load)[1], r).value_or(1 << 20))) *
          (size - 1);
      if (range_kind(g[r]) == AxisKind::Reduce && range_size(g, r) > panel.longest) {
        panel.longest = range_size(g, r);
        panel.longest_place =
            static_cast<size_t>(std::ranges::find(kernel.axes, r) - kernel.axes.begin());
      }
    } else if (is_serial_output(g, r) && open.depends(store, r)) {
      panel.reuse *= size;
    }
  }
  panel.bytes = static_cast<uint64_t>(panel.elements) * size_of(g[load].dtype);
  panel.all_bytes = static_cast<double>(panel.bytes);
  for (Id r : panel.outside) panel.all_bytes *= static_cast<double>(range_size(g, r));
  const int64_t stride =
      stride_of(g, g.sources(load)[1], kernel.axes[panel.longest_place]).value_or(0);
  const auto elements = static_cast<double>(param_info(g, g.sources(load)[0]).elem_count);
  panel.is_windowed = panel.all_bytes > elements * size_of(g[load].dtype);
  const auto line = static_cast<int64_t>(kernel.machine().line_bytes);
  panel.has_split_rows = stride * size_of(g[load].dtype) % line != 0;
  panel.row_bytes = static_cast<double>(range_size(g, lanes)) * size_of(g[load].dtype);
  panel.row_stride = std::abs(static_cast<double>(stride)) * size_of(g[load].dtype);
  return panel;
}

// Whether reading strided lines costs more than reading a copy plus copying.
bool saves_lines(const Kernel& kernel, const Panel& panel) {
  const cost::Machine& machine = kernel.machine();
  const double line = machine.line_bytes;
  const double rows = static_cast<double>(panel.bytes) / panel.row_bytes;
  const double in_row = std::ceil(panel.row_bytes / line) + (panel.has_split_rows ? 1 : 0);
  const double packed = static_cast<double>(panel.bytes) / line;
  const double far = cost::reading_cycles({rows, in_row, panel.row_stride}, machine);
  const double near = cost::reading_cycles({.lines = packed}, machine);
  const double copying = 2 * panel.elements / machine.lanes + far;
  return panel.reuse * (far - near) > copying;
}

// Whether packing the panel is faster than reading it in place.
bool pays(const Kernel& kernel, const Panel& panel) {
  if (panel.longest == 0) return false;
  if (!panel.is_consecutive) return panel.reuse >= kEnoughGathers;
  if (panel.span <= 2 * panel.elements) return false;
  if (panel.is_windowed) return panel.reuse >= kEnoughReuse;
  return saves_lines(kernel, panel);
}

// The operands that the loops around a panel's reuse load.
struct Rows {
  uint32_t slot = 0;
  size_t loop = SIZE_MAX;  // position of the outermost loop that the panel does not depend on
  std::vector<bool> runs;  // by position: whether they depend on the axis
  double bytes = 0;        // of one iteration of the panel's own loops
  bool lie_apart = false;  // strided along the reduction
};

Rows rows_beside(const Kernel& kernel, OpenRanges& open, Id store, Id lanes, const Panel& panel) {
  const Graph& g = kernel.graph;
  const Id reduced = kernel.axes[panel.longest_place];
  const auto is_inner = [&](Id r) {
    return is_serial_output(g, r) && open.depends(store, r) &&
           std::ranges::find(panel.outside, r) == panel.outside.end();
  };
  Rows rows;
  const auto loop = std::ranges::find_if(kernel.axes, is_inner);
  if (loop == kernel.axes.end()) return rows;
  rows.loop = static_cast<size_t>(loop - kernel.axes.begin());
  rows.runs.assign(kernel.axes.size(), false);
  for (Id load : nodes_of(g, store, Op::Load)) {
    if (open.depends(load, lanes) || !open.depends(load, reduced) || !open.depends(load, *loop))
      continue;
    Rows now{0, rows.loop, {}, static_cast<double>(size_of(g[load].dtype)), true};
    if (g[g.sources(load)[0]].op != Op::Param) continue;
    now.slot = param_info(g, g.sources(load)[0]).slot;
    for (Id r : kernel.axes) {
      const bool runs = open.depends(load, r);
      now.runs.push_back(runs);
      if (runs && (is_inner(r) || !is_serial_output(g, r)))
        now.bytes *= static_cast<double>(range_size(g, r));
      if (is_reduce_axis(range_kind(g[r])) && stride_of(g, g.sources(load)[1], r) == 1)
        now.lie_apart = false;
    }
    if (now.bytes > rows.bytes) rows = std::move(now);
  }
  return rows;
}

// Moves output loops of a kernel; loops are identified by their original position.
class LoopOrder {
 public:
  explicit LoopOrder(Kernel& kernel) : kernel_(kernel) {
    for (size_t i = 0; i < kernel.axes.size(); ++i)
      if (is_output_axis(range_kind(kernel.graph[kernel.axes[i]]))) loops_.push_back(i);
  }
  size_t place(size_t loop) const {
    return static_cast<size_t>(std::ranges::find(loops_, loop) - loops_.begin());
  }
  /// Moves a loop to position `to`; loops between keep their order.
  void move(size_t loop, size_t to) {
    for (size_t i = place(loop); i > to; --i) {
      apply(kernel_, {Kind::Swap, static_cast<uint32_t>(i - 1), static_cast<int64_t>(i)});
      std::swap(loops_[i - 1], loops_[i]);
    }
  }
  void insert(size_t place) {
    loops_.insert(loops_.begin() + static_cast<std::ptrdiff_t>(place), SIZE_MAX);
  }

 private:
  Kernel& kernel_;
  std::vector<size_t> loops_;
};

std::vector<size_t> places_of(const Kernel& kernel, const std::vector<Id>& ranges) {
  std::vector<size_t> places;
  for (Id r : ranges)
    places.push_back(static_cast<size_t>(std::ranges::find(kernel.axes, r) - kernel.axes.begin()));
  return places;
}

// Splits the reduce loop into blocks for which the panel has `most` bytes, outside the output loops
// from `place` on. Returns the iterations of one block.
int64_t block_sum(Kernel& kernel, const Panel& panel, uint64_t most, size_t place) {
  if (panel.bytes <= most) return panel.longest;
  const auto longest = static_cast<uint32_t>(panel.longest_place);
  const auto parts = static_cast<int64_t>((panel.bytes + most - 1) / most);
  const int64_t block = part_of_size(panel.longest, std::max<int64_t>(panel.longest / parts, 1));
  apply(kernel, {Kind::Block, longest, block});
  apply(kernel, {Kind::SplitK, longest, static_cast<int64_t>(place)});
  return block;
}

// The number of blocks of at most `most` iterations that gives all threads equally many; 0 if there
// is none.
int64_t even_parts(int64_t size, int64_t most, int64_t threads) {
  for (int64_t parts = std::max<int64_t>(1, (size + most - 1) / most); parts <= size; ++parts)
    if (size % parts == 0 && (parts % threads == 0 || parts >= 8 * threads)) return parts;
  return 0;
}

// Panels outside, all rows inside. Threads split the panels.
size_t cache_read_panel(Kernel& kernel, const Panel& panel) {
  LoopOrder order(kernel);
  const std::vector<size_t> outside = places_of(kernel, panel.outside);
  for (size_t i = 0; i < outside.size(); ++i) order.move(outside[i], i);
  const int64_t block = block_sum(kernel, panel, kernel.caps->private_bytes, outside.size());
  const auto place = static_cast<int64_t>(outside.size());
  apply(kernel, {Kind::CacheRead, panel.slot, place + (block < panel.longest)});
  return outside.size();
}

// Blocks of rows outside: a block stays in a cache while one panel after another is packed. Threads
// split the rows. Rows may be packed too.
size_t cache_read_blocks(Kernel& kernel, const Panel& panel, const Rows& rows, bool pack_rows) {
  const pgr_device_caps& caps = *kernel.caps;
  const int64_t threads = std::max(1u, caps.threads), size = size_of_axis(kernel, rows.loop);
  bool others = false;  // loops over the same rows
  for (size_t place = rows.loop + 1; place < kernel.axes.size(); ++place)
    others |= rows.runs[place] && is_serial_output(kernel.graph, kernel.axes[place]);
  LoopOrder order(kernel);
  std::vector<size_t> both, columns;
  for (size_t place : places_of(kernel, panel.outside))
    (rows.runs[place] ? both : columns).push_back(place);
  for (size_t i = 0; i < both.size(); ++i) order.move(both[i], i);
  size_t at = both.size();
  const int64_t block = block_sum(kernel, panel, caps.private_bytes / (pack_rows ? 4 : 2), at);
  if (block < panel.longest) order.insert(at++);
  const double most = pack_rows ? 2.0 * static_cast<double>(caps.private_bytes)
                                : static_cast<double>(caps.cache_bytes[2]) /
                                      static_cast<double>(std::max<int64_t>(8, 4 * threads));
  const double bytes_of_one = rows.bytes / static_cast<double>(size) * static_cast<double>(block) /
                              static_cast<double>(panel.longest);
  const int64_t parts =
      even_parts(size, std::max<int64_t>(1, static_cast<int64_t>(most / bytes_of_one)), threads);
  if (parts == 0 || panel.reuse < static_cast<double>(parts * kEnoughTiles))
    fail(ErrorKind::User, "[codegen] the rows cannot be shared out");
  size_t inner = 0;  // position of a block's rows
  if (parts > 1) {
    const uint32_t number = new_axis(kernel);
    apply(kernel, {Kind::Block, static_cast<uint32_t>(order.place(rows.loop)), size / parts});
    inner = axis_with_number(kernel, number);
    order.move(rows.loop, at++);
  }
  if (pack_rows) apply(kernel, {Kind::CacheRead, rows.slot, static_cast<int64_t>(at)});
  for (size_t column : columns) order.move(column, at++);
  if (others)
    for (; inner > at; --inner)  // back outside of those
      apply(kernel, {Kind::Swap, static_cast<uint32_t>(inner - 1), static_cast<int64_t>(inner)});
  apply(kernel, {Kind::CacheRead, panel.slot, static_cast<int64_t>(at)});
  return both.size() + (parts > 1);
}

// Reads of each row by the panels.
double reads_per_row(const Kernel& kernel, const Panel& panel, const Rows& rows) {
  double readings = 1;
  for (size_t place : places_of(kernel, panel.outside))
    if (!rows.runs[place]) readings *= static_cast<double>(size_of_axis(kernel, place));
  return readings;
}

// Whether the rows exceed the cache or are so far apart that blocks are better.
bool wants_blocks(const Kernel& kernel, const Panel& panel, const Rows& rows) {
  const pgr_device_caps& caps = *kernel.caps;
  if (rows.loop == SIZE_MAX || rows.bytes == 0 || caps.cache_bytes[2] == 0) return false;
  if (panel.outside.empty()) return true;
  if (rows.lie_apart && rows.bytes > static_cast<double>(caps.private_bytes) / 2) return true;
  return rows.bytes > static_cast<double>(caps.cache_bytes[2]) / 6;
}

}  // namespace

bool splits_panels(const Kernel& kernel, size_t axis) {
  const Graph& g = kernel.graph;
  const Id lanes = kernel.axes[axis], store = g.sources(kernel.sink)[0];
  if (kernel.caps->private_bytes == 0 || kernel.caps->threads < 2 ||
      range_kind(g[lanes]) != AxisKind::Loop)
    return false;
  OpenRanges open(g);
  for (Id load : nodes_of(g, store, Op::Load)) {
    if (!open.depends(load, lanes) || g[g.sources(load)[0]].op != Op::Param) continue;
    Panel panel = panel_of(kernel, open, store, load, lanes);
    panel.reuse /= kRowsOfTile;
    if (pays(kernel, panel))
      return !wants_blocks(kernel, panel, rows_beside(kernel, open, store, lanes, panel));
  }
  return false;
}

namespace {

double predicted_cycles(const Kernel& kernel) {
  const Prediction found = predict(kernel, 0);
  return found.is_possible ? found.cycles.all : std::numeric_limits<double>::infinity();
}

// Packs rows that are strided along the sum. Rows of windows are partly consecutive: they are
// packed only if that clearly pays, e.g. if planes are powers of two apart.
std::optional<size_t> cache_read_cheapest_blocks(Kernel& kernel, const Panel& panel,
                                                 const Rows& rows) {
  const bool may_pack = reads_per_row(kernel, panel, rows) >= kEnoughGathers;
  const auto with_packing = [&](Kernel& k, bool pack) {
    return attempt(k, [&](Kernel& trial) { return cache_read_blocks(trial, panel, rows, pack); });
  };
  if (!may_pack || rows.lie_apart) return with_packing(kernel, may_pack && rows.lie_apart);
  Kernel packed = copy_of(kernel);
  const auto parallel = with_packing(kernel, false), parallel_packed = with_packing(packed, true);
  if (!parallel_packed ||
      (parallel && predicted_cycles(packed) >= kClearly * predicted_cycles(kernel)))
    return parallel;
  kernel = std::move(packed);
  return parallel_packed;
}

// cache_read of the operand with lanes, if it is read again often enough.
size_t cache_read_operands(Kernel& kernel) {
  if (kernel.caps->private_bytes == 0) return SIZE_MAX;
  const Graph& g = kernel.graph;
  OpenRanges open(g);
  const Id store = g.sources(kernel.sink)[0];
  for (Id lanes : kernel.axes) {
    if (range_kind(g[lanes]) != AxisKind::Vector || !open.depends(store, lanes)) continue;
    for (Id load : nodes_of(g, store, Op::Load)) {
      if (!open.depends(load, lanes) || g[g.sources(load)[0]].op != Op::Param) continue;
      const Panel panel = panel_of(kernel, open, store, load, lanes);
      if (!pays(kernel, panel)) continue;
      const Rows rows = rows_beside(kernel, open, store, lanes, panel);
      if (wants_blocks(kernel, panel, rows))
        if (const auto parallel = cache_read_cheapest_blocks(kernel, panel, rows)) return *parallel;
      return attempt(kernel, [&](Kernel& k) { return cache_read_panel(k, panel); })
          .value_or(SIZE_MAX);
    }
  }
  return SIZE_MAX;
}

// The loop along which a store is consecutive although its lanes are strided; the number of axes
// for none.
size_t loop_beside_lanes(const Kernel& kernel, OpenRanges& open, Id store) {
  const Graph& g = kernel.graph;
  const Id index = g.sources(store)[1];
  const auto lies_apart = [&](Id r) {
    return range_kind(g[r]) == AxisKind::Vector && open.depends(store, r) &&
           stride_of(g, index, r) != 1;
  };
  const auto is_beside = [&](Id r) {
    return is_serial_output(g, r) && stride_of(g, index, r) == 1;
  };
  if (std::ranges::none_of(kernel.axes, lies_apart)) return kernel.axes.size();
  return static_cast<size_t>(std::ranges::find_if(kernel.axes, is_beside) - kernel.axes.begin());
}

// Consecutive elements to collect: a divisor, small enough to keep the operands in the cache.
int64_t collected(int64_t size) {
  for (int64_t part : {4, 8, 6, 5, 7})
    if (size % part == 0) return part;
  return size <= 16 ? size : 4;
}

size_t last_output(const Kernel& kernel) {
  const auto is_output = [&](Id r) { return is_output_axis(range_kind(kernel.graph[r])); };
  return static_cast<size_t>(std::ranges::count_if(kernel.axes, is_output)) - 1;
}

// Splits off `part` iterations of the loop as the innermost output loop.
void move_inside(Kernel& kernel, size_t loop, int64_t part) {
  if (part < size_of_axis(kernel, loop))
    return apply(kernel, {Kind::Block, static_cast<uint32_t>(loop), part});
  for (const size_t last = last_output(kernel); loop < last; ++loop)
    apply(kernel, {Kind::Swap, static_cast<uint32_t>(loop), static_cast<int64_t>(loop + 1)});
}

// If one loop has few consecutive elements, as the phases of a stride have, collects along the next
// one too. Returns whether there is one.
bool move_next_inside(Kernel& kernel, int64_t few) {
  const Graph& g = kernel.graph;
  const Id index = g.sources(g.sources(kernel.sink)[0])[1];
  const auto is_next = [&](Id r) {
    return is_serial_output(g, r) && stride_of(g, index, r) == few;
  };
  const auto next = std::ranges::find_if(kernel.axes, is_next);
  if (few >= kFewNeighbours || next == kernel.axes.end()) return false;
  const int64_t part = (kFewNeighbours + few - 1) / few, size = range_size(g, *next);
  if (size <= part || size % part != 0) return false;
  move_inside(kernel, static_cast<size_t>(next - kernel.axes.begin()), part);
  return true;
}

// Whether `kernel` collects sums in a cache_write.
bool has_scattered(const Kernel& kernel) {
  const Graph& g = kernel.graph;
  const Id store = g.sources(kernel.sink)[0];
  if (kernel.caps->private_bytes == 0 || nodes_of(g, store, Op::Reduce).empty()) return false;
  OpenRanges open(g);
  return loop_beside_lanes(kernel, open, store) < kernel.axes.size();
}

// cache_write of a sum with strided lanes, until its consecutive elements are complete.
size_t cache_write_scattered(Kernel& kernel) {
  const Graph& g = kernel.graph;
  const Id store = g.sources(kernel.sink)[0];
  if (!has_scattered(kernel)) return SIZE_MAX;
  OpenRanges open(g);
  const size_t loop = loop_beside_lanes(kernel, open, store);
  const auto change = [&](Kernel& k) {
    const int64_t size = size_of_axis(k, loop), part = collected(size);
    move_inside(k, loop, part);
    const bool is_pair = part == size && move_next_inside(k, part);
    const size_t place = last_output(k) - (is_pair ? 1 : 0);
    const uint32_t slot = param_info(g, g.sources(store)[0]).slot;
    apply(k, {Kind::CacheRead, slot, static_cast<int64_t>(place)});
    return place;
  };
  return attempt(kernel, change).value_or(SIZE_MAX);
}

// The schedule with its cache_read steps after the steps that move loops for a cache_write.
std::optional<Kernel> with_copies_last(const Kernel& start, std::span<const ScheduleStep> changes) {
  Kernel kernel = copy_of(start);
  const auto change = [&](Kernel& k) {
    for (const ScheduleStep& c : changes)
      if (c.kind != Kind::CacheRead) apply(k, c);
    for (const ScheduleStep& c : changes)
      if (c.kind == Kind::CacheRead) apply(k, c);
    return size_t{0};
  };
  return attempt(kernel, change) ? std::optional(std::move(kernel)) : std::nullopt;
}

}  // namespace

// A cache_write may move a loop inside that a copied operand depends on, so that the copy is
// repeated for each tile. Copying more outside that loop, or no cache_write, may cost less.
size_t choose_cache_reads(Kernel& kernel) {
  if (!has_scattered(kernel)) return cache_read_operands(kernel);
  const Kernel start = copy_of(kernel);
  const size_t most = cache_read_operands(kernel), count = start.applied.size();
  if (kernel.applied.size() == count) return cache_write_scattered(kernel);
  Kernel alone = copy_of(kernel);
  const size_t scattered = std::min(most, cache_write_scattered(kernel));
  if (kernel.applied.size() == alone.applied.size()) return most;
  double least = predicted_cycles(kernel);
  if (auto last = with_copies_last(start, std::span(kernel.applied).subspan(count)))
    if (const double now = predicted_cycles(*last); now < least) {
      least = now;
      kernel = std::move(*last);
    }
  if (predicted_cycles(alone) >= least) return scattered;
  kernel = std::move(alone);
  return most;
}

}  // namespace plugrad::codegen

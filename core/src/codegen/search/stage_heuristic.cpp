// The operand that the lanes run over is read row by row, far apart; packed, the panel that one
// column of register tiles reads again and again is one stream. The loops that the panel depends on
// go outside, the others inside.
#include "codegen/search/stage_heuristic.h"

#include <algorithm>
#include <cmath>

#include "codegen/access.h"
#include "codegen/search/apply.h"
#include "codegen/search/tile_search.h"
#include "plugrad/error.h"
#include "uop/facts.h"

namespace plugrad::codegen {
namespace {

using Kind = Optimisation::Kind;

constexpr double kEnoughReuse = 48;      // of consecutive elements
constexpr double kEnoughGatherings = 4;  // of elements that lie apart

// What one column of tiles reads of an operand.
struct Panel {
  uint32_t slot = 0;
  std::vector<Id> outside;  // output loops that it depends on
  double reuse = 1;         // by the other output loops
  double elements = 1, span = 1;
  bool is_consecutive = false;
  uint64_t bytes = 0;
  int64_t longest = 0;  // iterations of its longest serial reduce loop
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
  return panel;
}

bool pays(const Panel& panel) {
  if (panel.longest == 0) return false;
  if (!panel.is_consecutive) return panel.reuse >= kEnoughGatherings;
  return panel.reuse >= kEnoughReuse && panel.span > 2 * panel.elements;
}

// The changes that order the output loops, those given first.
void put_first(Kernel& kernel, const std::vector<Id>& first) {
  std::vector<uint32_t> wanted;
  for (Id r : first) wanted.push_back(range_axis(kernel.graph[r]));
  std::ranges::sort(wanted);
  // Numbers change with every swap, so places are counted instead.
  std::vector<uint32_t> numbers;
  for (Id r : kernel.axes) numbers.push_back(range_axis(kernel.graph[r]));
  for (size_t place = 0; place < wanted.size(); ++place) {
    const auto at =
        static_cast<size_t>(std::ranges::find(numbers, wanted[place]) - numbers.begin());
    if (at == place) continue;
    // Moves it there past those between, which keep their order.
    for (size_t i = at; i > place; --i) {
      apply(kernel, {Kind::Swap, static_cast<uint32_t>(i - 1), static_cast<int64_t>(i)});
      std::swap(numbers[i - 1], numbers[i]);
    }
  }
}

// A part of the size that leaves no rest where there is one that is not much smaller.
int64_t part_of_size(int64_t size, int64_t most) {
  for (int64_t part = most; part > most / 2; --part)
    if (size % part == 0) return part;
  return most;
}

void stage_panel(Kernel& kernel, const Panel& panel) {
  const auto place = static_cast<int64_t>(panel.outside.size());
  const uint64_t most = kernel.caps->private_bytes;
  put_first(kernel, panel.outside);
  int64_t inside = place;
  if (panel.bytes > most) {
    const auto longest = static_cast<uint32_t>(panel.longest_place);
    const int64_t size = range_size(kernel.graph, kernel.axes[longest]);
    const auto parts = static_cast<int64_t>((panel.bytes + most - 1) / most);
    apply(kernel, {Kind::Block, longest, part_of_size(size, std::max<int64_t>(size / parts, 1))});
    apply(kernel, {Kind::Accumulate, longest, place});
    ++inside;
  }
  apply(kernel, {Kind::Stage, panel.slot, inside});
}

}  // namespace

size_t stage_operands(Kernel& kernel) {
  if (kernel.caps->private_bytes == 0) return SIZE_MAX;
  Kernel trial = copy_of(kernel);
  const Graph& g = trial.graph;
  OpenRanges open(g);
  const Id store = g.sources(trial.sink)[0];
  for (Id lanes : trial.axes) {
    if (range_kind(g[lanes]) != AxisKind::Vector || !open.depends(store, lanes)) continue;
    for (Id load : nodes_of(g, store, Op::Load)) {
      if (!open.depends(load, lanes)) continue;
      const Panel panel = panel_of(trial, open, store, load, lanes);
      if (!pays(panel)) continue;
      try {
        stage_panel(trial, panel);
      } catch (const Error& e) {
        if (e.kind() != ErrorKind::User) throw;
        return SIZE_MAX;  // what cannot be staged stays where it is
      }
      kernel = std::move(trial);
      return panel.outside.size();
    }
  }
  return SIZE_MAX;
}

}  // namespace plugrad::codegen

// Parameters, launch ids and the short stages of emission; linearise.cpp has the long one.
#include "codegen/emit/emission.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "codegen/analysis/access.h"
#include "codegen/kernel.h"
#include "codegen/lowering/int64_emulation.h"
#include "ir/facts.h"
#include "ir/kernel_ast.h"

namespace plugrad::codegen {
namespace {

class IdWriter {
 public:
  IdWriter(const Kernel& kernel, IrWriter& writer, LaunchSize& size)
      : kernel_(kernel), g_(kernel.graph), writer_(writer), size_(size) {
    for (uint32_t i = 0; i < 3; ++i)
      most_[i] = kernel.caps->max_groups[i] == 0 ? std::numeric_limits<uint32_t>::max()
                                                 : kernel.caps->max_groups[i];
  }

  LaunchIds run(std::span<const WorkItemAxis> axes) {
    std::vector<Id> globals;  // innermost first: axis 0 of the launch
    for (auto it = kernel_.axes.rbegin(); it != kernel_.axes.rend(); ++it)
      if (range_kind(g_[*it]) == AxisKind::Global) globals.push_back(*it);
    if (fits(globals))
      plain(globals);
    else
      folded(globals);
    items(axes);
    return std::move(ids_);
  }

 private:
  uint64_t count(Id range) const { return static_cast<uint64_t>(const_int(g_, g_[range].src[0])); }

  bool fits(const std::vector<Id>& globals) const {
    if (globals.size() > 3) return false;
    for (size_t i = 0; i < globals.size(); ++i)
      if (count(globals[i]) > most_[i]) return false;
    return true;
  }

  void plain(const std::vector<Id>& globals) {
    for (uint32_t i = 0; i < globals.size(); ++i) {
      size_.group_count[i] = count(globals[i]);
      ids_.groups.emplace_back(globals[i],
                               writer_.inst(PGR_OP_GROUP_ID, g_[globals[i]].dtype, 1, {}, i));
    }
  }

  void items(std::span<const WorkItemAxis> axes) {
    for (uint32_t i = 0; i < axes.size(); ++i) {
      const DType dtype = g_[axes[i].ranges[0]].dtype;
      const uint32_t id = writer_.inst(PGR_OP_LOCAL_ID, dtype, 1, {}, i);
      size_.local_size[i] = static_cast<uint32_t>(axes[i].size);
      ids_.items.push_back({axes[i].size, id, axes[i].ranges});
    }
  }

  // Spreads the groups evenly within the limits, so that few are without work.
  void spread_groups(uint64_t total) {
    const auto parts = [](uint64_t n, uint64_t most) { return (n + most - 1) / most; };
    uint64_t rows = parts(total, most_[0]);
    const uint64_t planes = parts(rows, most_[1]), fewest = rows;
    for (uint64_t n = fewest; n < 2 * fewest && planes == 1 && total % rows != 0; ++n)
      if (total % n == 0 && n <= most_[1]) rows = n;
    size_.group_count[2] = planes;
    size_.group_count[1] = parts(rows, planes);
    size_.group_count[0] = parts(total, size_.group_count[1] * planes);
    require(
        size_.group_count[0] <= most_[0] && size_.group_count[1] <= most_[1] && planes <= most_[2],
        "[codegen] a kernel of {} groups; the device launches at most {} x {} x {}", total,
        most_[0], most_[1], most_[2]);
  }

  // One number for all groups; each range takes its digit.
  void folded(const std::vector<Id>& globals) {
    uint64_t total = 1;
    for (Id range : globals) total *= count(range);
    spread_groups(total);
    const uint64_t launched = size_.group_count[0] * size_.group_count[1] * size_.group_count[2];
    const bool wide = launched > static_cast<uint64_t>(std::numeric_limits<int32_t>::max());
    dtype_ = wide ? DType::I64 : g_[globals[0]].dtype;
    uint32_t number = writer_.inst(PGR_OP_GROUP_ID, dtype_, 1, {}, 2);
    for (uint32_t axis : {1u, 0u})
      number = op(PGR_OP_ADD, op(PGR_OP_MUL, number, constant(size_.group_count[axis])),
                  writer_.inst(PGR_OP_GROUP_ID, dtype_, 1, {}, axis));
    if (launched > total)
      ids_.inside = writer_.inst(PGR_OP_CMPLT, DType::Bool, 1, {number, constant(total)});
    for (size_t i = 0; i < globals.size(); ++i) {
      const bool last = i + 1 == globals.size();
      uint32_t digit = last ? number : op(PGR_OP_MOD, number, constant(count(globals[i])));
      const DType dtype = g_[globals[i]].dtype;
      if (dtype != dtype_) digit = writer_.inst(PGR_OP_CAST, dtype, 1, {digit});
      ids_.groups.emplace_back(globals[i], digit);
      if (!last) number = op(PGR_OP_IDIV, number, constant(count(globals[i])));
    }
  }

  uint32_t op(uint16_t number, uint32_t a, uint32_t b) {
    return writer_.inst(number, dtype_, 1, {a, b});
  }
  uint32_t constant(uint64_t value) { return writer_.constant(dtype_, value); }

  const Kernel& kernel_;
  const Graph& g_;
  IrWriter& writer_;
  LaunchSize& size_;
  uint64_t most_[3];
  DType dtype_ = DType::I32;
  LaunchIds ids_;
};

}  // namespace

SunkLoads::SunkLoads(const Graph& g, Id sink) : sum_(g.size(), kNoId) {
  Reachable reachable;
  const std::vector<Id>& nodes = reachable.from(g, std::span(&sink, 1));
  std::vector<uint32_t> uses(g.size());
  for (Id id : nodes)
    for (Id s : g.sources(id)) ++uses[s];
  for (Id id : nodes) {
    const Node& n = g[id];
    if (n.src_count != 2 || (n.op != Op::Add && n.op != Op::Mul && n.op != Op::Max)) continue;
    for (int side : {0, 1}) {
      const Id reduce = n.src[side], load = n.src[1 - side];
      if (g[reduce].op != Op::Reduce || g[load].op != Op::Load) continue;
      if (uses[reduce] == 1 && uses[load] == 1) sum_[load] = reduce;
    }
  }
}

namespace {

pgr_ir_param scalar_param(const Kernel::ScalarInfo& scalar) {
  const DType dtype = launch_dtype(scalar.dtype);
  const auto type = static_cast<uint32_t>(dtype);
  if (scalar.dtype == DType::Index)
    return {PGR_PARAM_SCALAR, type, PGR_PARAM_READ, 0, 0, 0, scalar.most};
  const Interval all = is_integer(dtype) ? dtype_interval(dtype) : Interval{0, 0};
  return {PGR_PARAM_SCALAR, type, PGR_PARAM_READ, 0, 0, all.lo, all.hi};
}

}  // namespace

void write_parameters(Kernel& kernel, Emission& emission) {
  const Graph& g = kernel.graph;
  IrWriter& writer = emission.writer;
  emission.value.assign(g.size(), kNoInst);
  uint32_t count = 0;
  const auto add = [&](const ParamInfo& info, DType dtype) {
    ++count;
    const bool is_shared = (info.flags & kParamShared) != 0;
    return writer.param(
        {PGR_PARAM_BUFFER, static_cast<uint32_t>(dtype),
         (info.flags & ~kParamShared & ~PGR_PARAM_NO_ALIAS) | (is_shared ? 0 : PGR_PARAM_NO_ALIAS),
         std::max(kernel.caps->buffer_align_bytes, 1u), static_cast<uint64_t>(info.elem_count), 0,
         0});
  };
  const auto unused = [&](uint32_t end) {
    while (count < end) add({.slot = count, .elem_count = 0, .flags = 0}, DType::U8);
  };
  std::vector<Id> found = nodes_of(g, kernel.sink, Op::Param);
  std::ranges::sort(found, {}, [&](Id id) { return param_info(g, id).slot; });
  for (Id id : found) {
    const ParamInfo info = param_info(g, id);
    unused(info.slot);
    const uint32_t number = add(info, g[id].dtype);
    emission.value[id] = writer.inst(PGR_OP_PARAM, g[id].dtype, 1, {}, number);
  }
  unused(kernel.param_count);
  const uint32_t first = count;
  for (const Kernel::ScalarInfo& scalar : kernel.scalars) writer.param(scalar_param(scalar));
  for (Id id : nodes_of(g, kernel.sink, Op::Scalar)) {
    const DType dtype = g[id].dtype, given = launch_dtype(dtype);
    uint32_t value = writer.inst(PGR_OP_PARAM, given, 1, {}, first + scalar_number(g, id));
    if (is_negated(g, id)) value = writer.inst(PGR_OP_NEG, given, 1, {value});
    if (given != dtype && dtype != DType::Index)
      value = writer.inst(PGR_OP_CAST, dtype, 1, {value});
    emission.value[id] = value;
  }
}

void sink_loads(Kernel& kernel, Emission& emission) {
  emission.sunk_loads.emplace(kernel.graph, kernel.sink);
}

void write_launch_ids(Kernel& kernel, Emission& emission) {
  emission.open.emplace(kernel.graph);
  LaunchIds ids =
      IdWriter(kernel, emission.writer, emission.size).run(work_item_axes(kernel, *emission.open));
  for (const auto& [range, number] : ids.groups) emission.value[range] = number;
  for (const LaunchIds::WorkItemAxis& item : ids.items)
    for (Id range : item.ranges) emission.value[range] = item.id;
  emission.items = std::move(ids.items);
  emission.inside = ids.inside;
}

void emulate_int64(Kernel& kernel, Emission& emission) {
  if (needs_int64_emulation(emission.writer, *kernel.caps))
    emission.writer = emulate_int64(emission.writer, *kernel.caps);
}

std::vector<std::byte> encode(const Kernel& kernel, const Emission& emission,
                              std::string_view name) {
  return emission.writer.finish(name, emission.size,
                                kernel.options.contract ? PGR_IR_FLAG_CONTRACT : 0);
}

}  // namespace plugrad::codegen

#include "conformance/driver/smaller.h"

#include <algorithm>
#include <span>

#include "plugrad/sdk/op_info.h"

namespace plugrad::conformance {
namespace {

using Line = EditableIr::Line;

bool opens(const Line& line) {
  return line.op == PGR_OP_LOOP || line.op == PGR_OP_IF;
}

bool is_array(const EditableIr& ir, uint32_t pointer) {
  return ir.lines[pointer].op == PGR_OP_ARRAY;
}

// Lines that determine the addresses of stores. With a single work-item no race is possible, and
// none is pinned.
std::vector<bool> deciding_lines(const EditableIr& ir) {
  std::vector<bool> stored(ir.lines.size()), fixed(ir.lines.size());
  if (!ir.is_parallel()) return fixed;
  for (uint32_t i = 0; i < ir.lines.size(); ++i)
    if (ir.writes(i)) stored[ir.lines[i].sources[0]] = true;
  for (uint32_t i = static_cast<uint32_t>(ir.lines.size()); i-- > 0;) {
    const Line& line = ir.lines[i];
    if (fixed[i] || opens(line))
      for (const uint32_t source : line.sources) fixed[source] = true;
    if (ir.writes(i) || (line.op == PGR_OP_LOAD && stored[line.sources[0]]))
      fixed[line.sources[1]] = true;
    const size_t gate = ir.writes(i) ? 3 : 2;
    if ((ir.writes(i) || line.op == PGR_OP_LOAD) && line.sources.size() > gate)
      fixed[line.sources[gate]] = true;
  }
  return fixed;
}

bool is_loaded(const EditableIr& ir, uint32_t pointer) {
  return std::any_of(ir.lines.begin(), ir.lines.end(), [&](const Line& line) {
    return line.op == PGR_OP_LOAD && line.sources[0] == pointer;
  });
}

// True if no line loads a stored value: no barrier is needed.
bool reads_nothing_back(const EditableIr& ir) {
  for (uint32_t i = 0; i < ir.lines.size(); ++i)
    if (ir.writes(i) && is_loaded(ir, ir.lines[i].sources[0])) return false;
  return true;
}

// True if one store outside all blocks fills the array before its first read.
bool filled_at_once(const EditableIr& ir, uint32_t array) {
  uint32_t depth = 0;
  for (uint32_t i = array + 1; i < ir.lines.size(); ++i) {
    const Line& line = ir.lines[i];
    if (opens(line)) ++depth;
    if (line.op == PGR_OP_END_LOOP || line.op == PGR_OP_END_IF) --depth;
    if (line.sources.empty() || line.sources[0] != array) continue;
    if (line.op == PGR_OP_LOAD) return false;
    if (line.op == PGR_OP_STORE && depth == 0 && line.sources.size() == 3 &&
        line.lanes == ir.arrays[ir.lines[array].arg].elem_count)
      return true;
  }
  return false;
}

// True if all stores to arrays that are read still exist.
bool reads_what_is_written(const EditableIr& before, const EditableIr& after) {
  const auto array_writes = [](const EditableIr& ir) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < ir.lines.size(); ++i)
      count += ir.writes(i) && is_array(ir, ir.lines[i].sources[0]);
    return count;
  };
  if (array_writes(before) == array_writes(after)) return true;
  for (uint32_t i = 0; i < after.lines.size(); ++i)
    if (is_array(after, i) && is_loaded(after, i) && !filled_at_once(after, i)) return false;
  return true;
}

bool holds(const EditableIr& ir, uint32_t opener, bool (*what)(const EditableIr&, uint32_t)) {
  for (uint32_t i = opener + 1, end = ir.closer(opener); i < end; ++i)
    if (what(ir, i)) return true;
  return false;
}
bool writes_array(const EditableIr& ir, uint32_t line) {
  return ir.writes(line) && is_array(ir, ir.lines[line].sources[0]);
}
bool writes_any(const EditableIr& ir, uint32_t line) {
  return ir.writes(line);
}

// An unused value may be the cause of the failure: it is removed in a step of its own, not as a
// side effect of another step.
EditableIr with_unused_kept(EditableIr ir) {
  for (Line& line : ir.lines) line.stays = true;
  for (const Line& line : ir.lines)
    for (const uint32_t source : line.sources) ir.lines[source].stays = false;
  return ir;
}

class Steps {
 public:
  explicit Steps(const EditableIr& ir) : ir_(with_unused_kept(ir)), fixed_(deciding_lines(ir)) {}

  std::vector<EditableIr> all() {
    remove_unused();
    shrink_launch();
    one_lane();
    for (uint32_t i = 0; i < ir_.lines.size(); ++i)
      if (opens(ir_.lines[i])) remove_block(i);
    remove_writes();
    for (uint32_t i = static_cast<uint32_t>(ir_.lines.size()); i-- > 0;) simplify_line(i);
    shrink_buffers();
    return std::move(steps_);
  }

 private:
  void add(EditableIr step) {
    step.tidy();
    if (reads_what_is_written(ir_, step)) steps_.push_back(std::move(step));
  }

  void shrink_launch() {
    const bool has_local_arrays =
        !reads_nothing_back(ir_) &&
        std::any_of(ir_.arrays.begin(), ir_.arrays.end(),
                    [](const pgr_ir_array& array) { return array.space == PGR_SPACE_LOCAL; });
    for (int axis = 0; axis < 3; ++axis) {
      for (const uint64_t count : {uint64_t{1}, ir_.group_count[axis] / 2}) {
        EditableIr step = ir_;
        step.group_count[axis] = count;
        if (count > 0 && count < ir_.group_count[axis]) add(std::move(step));
      }
      if (ir_.local_size[axis] == 1 || has_local_arrays) continue;
      EditableIr step = ir_;
      step.local_size[axis] = 1;
      add(std::move(step));
    }
  }

  // Replaces every vector by its first lane.
  void one_lane() {
    EditableIr step = ir_;
    bool changed = false;
    for (uint32_t i = 0; i < step.lines.size(); ++i) {
      Line& line = step.lines[i];
      changed |= line.lanes > 1;
      if (line.op == PGR_OP_VECTOR || line.op == PGR_OP_LANE) {
        step.redirect(i, line.sources[0]);
        line.stays = false;
      }
      line.lanes = 1;
    }
    for (pgr_ir_array& array : step.arrays) array.lanes = 1;
    if (changed) add(std::move(step));
  }

  void remove_block(uint32_t opener) {
    const uint32_t closer = ir_.closer(opener);
    EditableIr without = ir_;
    without.remove([&](uint32_t line) { return line >= opener && line <= closer; });
    add(std::move(without));
    const bool is_loop = ir_.lines[opener].op == PGR_OP_LOOP;
    if (is_loop ? holds(ir_, opener, writes_array)
                : ir_.is_parallel() && holds(ir_, opener, writes_any))
      return;
    EditableIr unwrapped = ir_;
    if (is_loop) unwrapped.redirect(opener, ir_.lines[opener].sources[0]);
    unwrapped.remove([&](uint32_t line) { return line == opener || line == closer; });
    add(std::move(unwrapped));
  }

  // Steps that remove runs of `lines`, from `longest` lines down to one, by `remove`.
  template <typename Remove>
  void remove_runs(const std::vector<uint32_t>& lines, size_t longest, const Remove& remove) {
    for (size_t run = longest; run > 0; run /= 2)
      for (size_t begin = 0; begin < lines.size(); begin += run) {
        EditableIr step = ir_;
        remove(step, std::span(lines).subspan(begin, std::min(run, lines.size() - begin)));
        add(std::move(step));
      }
  }

  void remove_unused() {
    std::vector<uint32_t> unused;
    for (uint32_t i = 0; i < ir_.lines.size(); ++i)
      if (ir_.has_value(i) && ir_.lines[i].stays && ir_.lines[i].op != PGR_OP_LOOP)
        unused.push_back(i);
    remove_runs(unused, unused.size(), [](EditableIr& step, std::span<const uint32_t> run) {
      for (const uint32_t line : run) step.lines[line].stays = false;
    });
  }

  void remove_writes() {
    std::vector<uint32_t> writes;
    for (uint32_t i = 0; i < ir_.lines.size(); ++i)
      if (ir_.writes(i) ||
          (ir_.lines[i].op == PGR_OP_BARRIER && (!ir_.is_parallel() || reads_nothing_back(ir_))))
        writes.push_back(i);
    remove_runs(writes, writes.size() / 2, [](EditableIr& step, std::span<const uint32_t> run) {
      step.remove([&](uint32_t line) { return std::ranges::find(run, line) != run.end(); });
    });
  }

  // Replaces a value by one of its sources or a constant.
  void simplify_line(uint32_t number) {
    const Line& line = ir_.lines[number];
    const bool replaceable = ir_.has_value(number) && !ir_.is_pointer(number) &&
                             line.op != PGR_OP_LOOP && line.op != PGR_OP_CONST;
    if (fixed_[number] || !replaceable || line.stays) return;
    for (const uint32_t source : line.sources) {
      const Line& other = ir_.lines[source];
      if (ir_.is_pointer(source) || other.dtype != line.dtype || other.lanes != line.lanes)
        continue;
      EditableIr step = ir_;
      step.redirect(number, source);
      add(std::move(step));
    }
    for (const uint64_t value : {0, 1}) replace_by_constant(number, value);
  }

  void replace_by_constant(uint32_t number, uint64_t value) {
    const Line& line = ir_.lines[number];
    const sdk::DtypeInfo& dtype = *sdk::dtype_info(line.dtype);
    if (dtype.is_float && value) return;  // the bits depend on the dtype, except for 0
    if (line.op == PGR_OP_VECTOR && ir_.lines[line.sources[0]].op == PGR_OP_CONST) return;
    EditableIr step = ir_;
    step.insert(number, {PGR_OP_CONST, line.dtype, 1, value, {}, false});
    Line& old = step.lines[number + 1];
    if (line.lanes == 1)
      step.redirect(number + 1, number);
    else
      old = {PGR_OP_VECTOR, line.dtype, line.lanes, 0, {number}, false};
    add(std::move(step));
  }

  void shrink_buffers() {
    for (size_t i = 0; i < ir_.params.size(); ++i)
      for (const uint64_t count : {uint64_t{1}, ir_.params[i].elem_count / 2}) {
        EditableIr step = ir_;
        step.params[i].elem_count = count;
        if (count > 0 && count < ir_.params[i].elem_count) add(std::move(step));
      }
  }

  const EditableIr ir_;
  std::vector<bool> fixed_;
  std::vector<EditableIr> steps_;
};

}  // namespace

std::vector<EditableIr> smaller_kernels(const EditableIr& ir) {
  return Steps(ir).all();
}

}  // namespace plugrad::conformance

// Tries smaller kernels, coarse ones first, and continues from each that still differs. Candidates
// read no uninitialised array and have no race that the kernel does not have: lines that decide
// addresses stay as they are while several work-items run.
#include "runtime/checks/compare/shrink_kernel.h"

#include <algorithm>
#include <set>

#include "base/hash.h"
#include "runtime/checks/compare/values.h"
#include "runtime/checks/live_objects.h"

namespace plugrad::runtime {
namespace {

using Line = KernelLines::Line;

bool is_array(const KernelLines& kernel, uint32_t pointer) {
  return kernel.lines[pointer].op == PGR_OP_ARRAY;
}

bool is_loaded(const KernelLines& kernel, uint32_t pointer) {
  return std::ranges::any_of(kernel.lines, [&](const Line& line) {
    return line.op == PGR_OP_LOAD && line.sources[0] == pointer;
  });
}

// Whether one store outside all blocks fills the array before its first read.
bool is_filled_at_once(const KernelLines& kernel, uint32_t array) {
  uint32_t depth = 0;
  for (uint32_t i = array + 1; i < kernel.lines.size(); ++i) {
    const Line& line = kernel.lines[i];
    if (kernel.opens(i)) ++depth;
    if (line.op == PGR_OP_END_LOOP || line.op == PGR_OP_END_IF) --depth;
    if (line.sources.empty() || line.sources[0] != array) continue;
    if (line.op == PGR_OP_LOAD) return false;
    if (line.op == PGR_OP_STORE && depth == 0 && line.sources.size() == 3 &&
        line.lanes == kernel.arrays[kernel.lines[array].arg].elem_count)
      return true;
  }
  return false;
}

uint64_t array_writes(const KernelLines& kernel) {
  uint64_t out = 0;
  for (uint32_t i = 0; i < kernel.lines.size(); ++i)
    out += (kernel.writes(i) || kernel.lines[i].op == PGR_OP_ASYNC_COPY) &&
           is_array(kernel, kernel.lines[i].sources[0]);
  return out;
}

bool reads_what_is_written(const KernelLines& before, const KernelLines& after) {
  if (array_writes(before) == array_writes(after)) return true;
  for (uint32_t i = 0; i < after.lines.size(); ++i)
    if (is_array(after, i) && is_loaded(after, i) && !is_filled_at_once(after, i)) return false;
  return true;
}

// Lines that decide addresses, gates and loop bounds.
std::vector<bool> deciding_lines(const KernelLines& kernel) {
  std::vector<bool> stored(kernel.lines.size()), fixed(kernel.lines.size());
  const bool is_parallel = kernel.is_parallel();
  for (uint32_t i = 0; i < kernel.lines.size(); ++i)
    if (kernel.writes(i) || kernel.lines[i].op == PGR_OP_ASYNC_COPY)
      stored[kernel.lines[i].sources[0]] = true;
  for (uint32_t i = static_cast<uint32_t>(kernel.lines.size()); i-- > 0;) {
    const Line& line = kernel.lines[i];
    if (fixed[i] || line.op == PGR_OP_LOOP || (is_parallel && line.op == PGR_OP_IF) ||
        line.op == PGR_OP_ASYNC_COPY)
      for (const uint32_t source : line.sources) fixed[source] = true;
    if (!is_parallel) continue;
    const bool is_memory = kernel.writes(i) || line.op == PGR_OP_LOAD;
    if (kernel.writes(i) || (line.op == PGR_OP_LOAD && stored[line.sources[0]]))
      fixed[line.sources[1]] = true;
    const std::size_t gate = kernel.writes(i) ? 3 : 2;
    if (is_memory && line.sources.size() > gate) fixed[line.sources[gate]] = true;
  }
  return fixed;
}

class Shrinker {
 public:
  Shrinker(SmallKernel start, const Differs& differs,
           std::chrono::steady_clock::time_point deadline)
      : now_(std::move(start)), differs_(differs), deadline_(deadline) {
    is_new(now_.lines);
  }

  SmallKernel run() {
    while (in_time() && (groups() || stores() || blocks() || prefix() || one_lane() || lines())) {
    }
    now_.is_complete = in_time();
    now_.tried = tried_;
    return std::move(now_);
  }

 private:
  bool in_time() const { return std::chrono::steady_clock::now() < deadline_; }

  bool accept(KernelLines candidate) { return accept(std::move(candidate), now_.data); }
  bool accept(KernelLines candidate, LaunchData data) {
    candidate.remove_unused();
    if (!in_time() || !reads_what_is_written(now_.lines, candidate)) return false;
    if (!is_new(candidate)) return false;
    ++tried_;
    if (!differs_(candidate, data)) return false;
    now_.lines = std::move(candidate);
    now_.data = std::move(data);
    return true;
  }

  // Whether the candidate was not tried yet.
  bool is_new(const KernelLines& candidate) {
    return seen_.insert(hash64(candidate.encode())).second;
  }

  // One group, or the lower or upper half of the groups of an axis.
  bool groups() {
    bool any = false;
    for (std::size_t axis = 0; axis < 3; ++axis)
      while (in_time() && now_.data.group_count[axis] > 1 && fewer_groups(axis)) any = true;
    return any;
  }
  bool fewer_groups(std::size_t axis) {
    const uint64_t count = now_.data.group_count[axis];
    return keep_groups(axis, 0, 1) || keep_groups(axis, count - 1, 1) ||
           keep_groups(axis, 0, count / 2) || keep_groups(axis, count / 2, count - count / 2);
  }
  bool keep_groups(std::size_t axis, uint64_t first, uint64_t count) {
    KernelLines candidate = now_.lines;
    LaunchData data = now_.data;
    candidate.keep_groups(axis, first, count);
    data.group_count[axis] = count;
    return accept(std::move(candidate), std::move(data));
  }

  template <class Remove>
  bool remove_runs(const std::vector<uint32_t>& which, const Remove& remove) {
    for (std::size_t run = which.size() / 2; run > 0; run /= 2)
      for (std::size_t begin = 0; begin < which.size(); begin += run) {
        const auto part = std::span(which).subspan(begin, std::min(run, which.size() - begin));
        if (remove(part)) return true;
      }
    return false;
  }

  bool stores() {
    std::vector<uint32_t> writes;
    for (uint32_t i = 0; i < now_.lines.lines.size(); ++i)
      if (now_.lines.writes(i)) writes.push_back(i);
    return writes.size() > 1 && remove_runs(writes, [&](std::span<const uint32_t> run) {
             KernelLines candidate = now_.lines;
             candidate.remove([&](uint32_t i) { return std::ranges::find(run, i) != run.end(); });
             return accept(std::move(candidate));
           });
  }

  bool writes_within(uint32_t opener, bool only_arrays) const {
    for (uint32_t i = opener + 1, end = now_.lines.closer(opener); i < end; ++i)
      if (now_.lines.writes(i) &&
          (!only_arrays || is_array(now_.lines, now_.lines.lines[i].sources[0])))
        return true;
    return false;
  }

  // Removes a LOOP or IF with its lines, or leaves one iteration of it.
  bool blocks() {
    for (uint32_t i = 0; i < now_.lines.lines.size(); ++i)
      if (now_.lines.opens(i) && (remove_block(i) || unwrap(i))) return true;
    return false;
  }
  bool remove_block(uint32_t opener) {
    KernelLines candidate = now_.lines;
    const uint32_t end = candidate.closer(opener);
    candidate.remove([&](uint32_t i) { return i >= opener && i <= end; });
    return accept(std::move(candidate));
  }
  bool unwrap(uint32_t opener) {
    const Line& line = now_.lines.lines[opener];
    const bool is_loop = line.op == PGR_OP_LOOP;
    if (!is_loop && now_.lines.is_parallel() && writes_within(opener, false)) return false;
    KernelLines candidate = now_.lines;
    const uint32_t end = candidate.closer(opener);
    if (is_loop) candidate.redirect(opener, line.sources[0]);
    candidate.lines[opener] = candidate.lines[end] = Line{};
    if (accept(std::move(candidate))) return true;
    return is_loop && !writes_within(opener, true) && shorten(opener);
  }
  bool shorten(uint32_t loop) {
    const Line& line = now_.lines.lines[loop];
    const Line &begin = now_.lines.lines[line.sources[0]], &end = now_.lines.lines[line.sources[1]];
    if (begin.op != PGR_OP_CONST || end.op != PGR_OP_CONST || end.arg <= begin.arg + 1)
      return false;
    KernelLines candidate = now_.lines;
    const uint64_t middle = begin.arg + (end.arg - begin.arg) / 2;
    candidate.insert(loop, {PGR_OP_CONST, line.dtype, 1, middle, {}});
    candidate.lines[loop + 1].sources[1] = loop;
    return accept(std::move(candidate));
  }

  // Stores an early value of the expression instead of its result, found by bisection.
  bool prefix() {
    for (uint32_t i = 0; i < now_.lines.lines.size(); ++i)
      if (now_.lines.writes(i) && !is_array(now_.lines, now_.lines.lines[i].sources[0]) &&
          store_earlier(i))
        return true;
    return false;
  }
  bool store_earlier(uint32_t store) {
    const std::vector<uint32_t> values = values_before(store);
    std::size_t low = 0, high = values.size();  // the first that differs, if that is monotone
    bool any = false;
    SmallKernel best;
    while (low < high && in_time()) {
      const std::size_t middle = (low + high) / 2;
      SmallKernel candidate = now_;
      store_value(candidate, store, values[middle]);
      candidate.lines.remove_unused();
      ++tried_;
      if (is_new(candidate.lines) && reads_what_is_written(now_.lines, candidate.lines) &&
          differs_(candidate.lines, candidate.data)) {
        best = std::move(candidate);
        any = true;
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    if (any) now_ = std::move(best);
    return any;
  }
  // Stores another value; its dtype becomes that of the buffer.
  static void store_value(SmallKernel& kernel, uint32_t store, uint32_t value) {
    KernelLines& lines = kernel.lines;
    const uint32_t pointer = lines.lines[store].sources[0], dtype = lines.lines[value].dtype;
    lines.lines[store].sources[2] = value;
    if (lines.lines[pointer].dtype == dtype) return;
    pgr_ir_param& param = lines.params[lines.lines[pointer].arg];
    lines.lines[pointer].dtype = param.dtype = dtype;
    const std::vector<uint32_t> params = LaunchData::buffer_params(lines);
    const auto argument = std::ranges::find(params, lines.lines[pointer].arg) - params.begin();
    auto& region = kernel.data.regions[kernel.data.region_of[static_cast<std::size_t>(argument)]];
    region.resize(std::max<std::size_t>(region.size(), param.elem_count * dtype_bytes(dtype)));
  }
  // Whether no other line and no other argument uses the buffer of a store.
  bool has_own_buffer(uint32_t store) const {
    const uint32_t pointer = now_.lines.lines[store].sources[0];
    const std::vector<uint32_t> params = LaunchData::buffer_params(now_.lines);
    const auto argument = std::ranges::find(params, now_.lines.lines[pointer].arg) - params.begin();
    const auto& regions = now_.data.region_of;
    const std::size_t region = regions[static_cast<std::size_t>(argument)];
    return std::ranges::count(regions, region) == 1 &&
           std::ranges::count_if(now_.lines.lines, [&](const Line& line) {
             return std::ranges::find(line.sources, pointer) != line.sources.end();
           }) == 1;
  }
  // Visible values on which the stored value depends, of its type where the buffer has other uses.
  std::vector<uint32_t> values_before(uint32_t store) const {
    const auto& all = now_.lines.lines;
    const uint32_t stored = all[store].sources[2];
    std::vector<bool> needed(all.size()), hidden(all.size());
    needed[stored] = true;
    for (uint32_t i = stored + 1; i-- > 0;)
      if (needed[i])
        for (const uint32_t source : all[i].sources) needed[source] = true;
    for (uint32_t i = 0; i < store; ++i)
      if (now_.lines.opens(i) && now_.lines.closer(i) < store)
        std::fill(hidden.begin() + i, hidden.begin() + now_.lines.closer(i), true);
    const bool any_dtype = has_own_buffer(store);
    std::vector<uint32_t> out;
    for (uint32_t i = 0; i < stored; ++i)
      if (needed[i] && !hidden[i] && !now_.lines.is_pointer(i) && all[i].op != PGR_OP_CONST &&
          all[i].op != PGR_OP_PARAM && (any_dtype || all[i].dtype == all[stored].dtype) &&
          all[i].lanes == all[stored].lanes)
        out.push_back(i);
    return out;
  }

  // Replaces every vector by its first lane.
  bool one_lane() {
    KernelLines candidate = now_.lines;
    bool is_changed = false;
    for (uint32_t i = 0; i < candidate.lines.size(); ++i) {
      Line& line = candidate.lines[i];
      is_changed |= line.lanes > 1;
      if (line.op == PGR_OP_VECTOR || line.op == PGR_OP_LANE)
        candidate.redirect(i, line.sources[0]);
      line.lanes = 1;
    }
    for (pgr_ir_array& array : candidate.arrays) array.lanes = 1;
    return is_changed && accept(std::move(candidate));
  }

  bool lines() {
    const std::vector<bool> fixed = deciding_lines(now_.lines);
    for (uint32_t i = static_cast<uint32_t>(now_.lines.lines.size()); i-- > 0;)
      if (!fixed[i] && simplify(i)) return true;
    return ungate() || fold();
  }
  bool simplify(uint32_t number) {
    const Line line = now_.lines.lines[number];
    if (!now_.lines.has_value(number) || now_.lines.is_pointer(number) || line.op == PGR_OP_LOOP ||
        line.op == PGR_OP_CONST || line.op == PGR_OP_PARAM)
      return false;
    for (const uint32_t source : line.sources) {
      const Line& other = now_.lines.lines[source];
      if (now_.lines.is_pointer(source) || other.dtype != line.dtype || other.lanes != line.lanes)
        continue;
      KernelLines candidate = now_.lines;
      candidate.redirect(number, source);
      if (accept(std::move(candidate))) return true;
    }
    return to_constant(number, 0) || to_constant(number, 1);
  }
  bool to_constant(uint32_t number, int value) {
    const Line line = now_.lines.lines[number];
    if (line.op == PGR_OP_VECTOR && now_.lines.lines[line.sources[0]].op == PGR_OP_CONST)
      return false;
    const bool is_small = line.dtype == PGR_DTYPE_F8E4M3 || line.dtype == PGR_DTYPE_F8E5M2;
    if (is_small && value != 0) return false;
    const uint64_t bits =
        is_float(line.dtype) ? bits_of(line.dtype, value) : static_cast<uint64_t>(value);
    KernelLines candidate = now_.lines;
    candidate.insert(number, {PGR_OP_CONST, line.dtype, 1, bits, {}});
    if (line.lanes == 1)
      candidate.redirect(number + 1, number);
    else
      candidate.lines[number + 1] = {PGR_OP_VECTOR, line.dtype, line.lanes, 0, {number}};
    return accept(std::move(candidate));
  }
  bool ungate() {
    for (uint32_t i = 0; i < now_.lines.lines.size(); ++i) {
      const Line& line = now_.lines.lines[i];
      const bool is_store = now_.lines.writes(i) && line.sources.size() == 4;
      if (!is_store || now_.lines.is_parallel()) continue;
      KernelLines candidate = now_.lines;
      candidate.lines[i].sources.pop_back();
      if (accept(std::move(candidate))) return true;
    }
    return false;
  }
  // With one group, its id is 0: ids and their sums become constants.
  bool fold() {
    for (uint32_t i = 0; i < now_.lines.lines.size(); ++i) {
      const Line& line = now_.lines.lines[i];
      const bool is_id = line.op == PGR_OP_GROUP_ID && now_.data.group_count[line.arg] == 1;
      const auto value = [&](std::size_t s) { return now_.lines.lines[line.sources[s]]; };
      const bool is_sum = (line.op == PGR_OP_ADD || line.op == PGR_OP_MUL) && line.lanes == 1 &&
                          (line.dtype == PGR_DTYPE_I32 || line.dtype == PGR_DTYPE_I64) &&
                          value(0).op == PGR_OP_CONST && value(1).op == PGR_OP_CONST;
      if (!is_id && !is_sum) continue;
      uint64_t bits = 0;
      if (is_sum)
        bits = line.op == PGR_OP_ADD ? value(0).arg + value(1).arg : value(0).arg * value(1).arg;
      KernelLines candidate = now_.lines;
      candidate.lines[i] = {PGR_OP_CONST, line.dtype, 1, bits, {}};
      if (accept(std::move(candidate))) return true;
    }
    return false;
  }

  SmallKernel now_;
  const Differs& differs_;
  const std::chrono::steady_clock::time_point deadline_;
  std::set<uint64_t> seen_;
  uint64_t tried_ = 0;
};

}  // namespace

SmallKernel shrink_kernel(KernelLines kernel, LaunchData data, const Differs& differs,
                          std::chrono::steady_clock::time_point deadline) {
  return Shrinker({std::move(kernel), std::move(data)}, differs, deadline).run();
}

}  // namespace plugrad::runtime

// Runs groups in sequence. Each work-item of a group runs up to the next barrier in turn, which is
// one of the orders that barriers allow. Work-items that share a tensor core also synchronise at
// each WMMA.
#include <algorithm>
#include <cstring>

#include "plugrad/sdk/guard.h"
#include "program.h"

namespace plugrad::sdk {
namespace {

using Program = Interpreter::Program;

// A pending copy: its bytes are written at the wait, not earlier.
struct Copy {
  std::byte* to;
  const std::byte* from;  // nullptr: zeros
  uint32_t bytes;
  uint64_t group;
};

struct WorkItem {
  std::vector<uint64_t> slots;
  std::vector<Region> regions;  // parameters, then arrays
  std::vector<std::byte> private_memory;
  uint32_t local_id[3] = {};
  uint32_t step = 0;  // where it stopped: at a BARRIER, a WMMA, or at End
  std::vector<Copy> copies;
  uint64_t copy_groups = 0;  // number of committed groups
};

class GroupRunner {
 public:
  GroupRunner(const Program& program, const InterpreterLaunch& launch);
  void run_group(const uint64_t (&group_id)[3]);

 private:
  void run_team(std::span<WorkItem> team);
  void run_item(WorkItem& item);
  std::byte* locate(const WorkItem& item, const Step& step, uint64_t index, uint32_t lane,
                    uint32_t pointer = 0) const;
  void load(WorkItem& item, const Step& step) const;
  void store(WorkItem& item, const Step& step) const;
  void atomic_add(WorkItem& item, const Step& step) const;
  void start_copy(WorkItem& item, const Step& step) const;
  void check_barrier() const;
  [[noreturn]] void fail(const Step& step, const std::string& what,
                         pgr_status status = PGR_STATUS_LAUNCH_FAILED) const;

  const Program& program_;
  std::vector<WorkItem> items_;
  std::vector<std::byte> local_memory_;
  uint64_t group_id_[3] = {};
  uint64_t iterations_left_;
};

WorkItem make_item(const Program& p, const InterpreterLaunch& launch, std::byte* local_memory) {
  WorkItem item;
  item.slots = p.initial;
  item.private_memory.resize(p.private_bytes);
  size_t buffer = 0;
  std::vector<uint64_t> scalar_of(p.ir.params().size());
  size_t scalar = 0;
  for (size_t i = 0; i < p.ir.params().size(); ++i) {
    const pgr_ir_param& param = p.ir.params()[i];
    Region region;
    if (param.kind == PGR_PARAM_BUFFER)
      region = {static_cast<std::byte*>(launch.buffers[buffer++].data), param.elem_count};
    else
      scalar_of[i] = launch.scalars[scalar++];
    item.regions.push_back(region);
  }
  for (size_t i = 0; i < p.scalar_slots.size(); ++i)
    item.slots[p.scalar_slots[i]] = scalar_of[p.scalar_params[i]];
  for (size_t i = 0; i < p.ir.arrays().size(); ++i) {
    const pgr_ir_array& array = p.ir.arrays()[i];
    std::byte* area = array.space == PGR_SPACE_LOCAL ? local_memory : item.private_memory.data();
    item.regions.push_back({area + p.array_offsets[i], array.elem_count});
  }
  return item;
}

GroupRunner::GroupRunner(const Program& program, const InterpreterLaunch& launch)
    : program_(program),
      local_memory_(program.local_bytes),
      iterations_left_(launch.iteration_limit) {
  const auto& size = launch.local_size;
  for (uint32_t z = 0; z < size[2]; ++z)
    for (uint32_t y = 0; y < size[1]; ++y)
      for (uint32_t x = 0; x < size[0]; ++x) {
        items_.push_back(make_item(program, launch, local_memory_.data()));
        items_.back().local_id[0] = x;
        items_.back().local_id[1] = y;
        items_.back().local_id[2] = z;
      }
}

// Arrays start as all ones, NaN in every float format, so that reads of unwritten elements are
// detected.
void set_unwritten(std::vector<std::byte>& memory) {
  std::fill(memory.begin(), memory.end(), std::byte{0xff});
}

void GroupRunner::run_group(const uint64_t (&group_id)[3]) {
  std::copy(std::begin(group_id), std::end(group_id), group_id_);
  set_unwritten(local_memory_);
  for (WorkItem& item : items_) {
    item.step = 0;
    item.copies.clear();
    item.copy_groups = 0;
    set_unwritten(item.private_memory);
  }
  const uint32_t end = static_cast<uint32_t>(program_.steps.size()) - 1;
  do {
    for (size_t first = 0; first < items_.size(); first += program_.team)
      run_team(std::span(items_).subspan(first, program_.team));
    check_barrier();
    // All stopped at one barrier and continue together.
    if (items_[0].step != end)
      for (WorkItem& item : items_) ++item.step;
    else
      return;
  } while (true);
}

// Runs until all work-items are at a barrier or at the end.
void GroupRunner::run_team(std::span<WorkItem> team) {
  for (;;) {
    for (WorkItem& item : team) run_item(item);
    const Step& step = program_.steps[team[0].step];
    const auto is_at_wmma = [&](const WorkItem& item) {
      return program_.steps[item.step].kind == StepKind::Wmma;
    };
    const auto other =
        std::ranges::find_if(team, [&](const WorkItem& item) { return item.step != team[0].step; });
    if (other != team.end() && (is_at_wmma(*other) || is_at_wmma(team[0])))
      fail(is_at_wmma(team[0]) ? step : program_.steps[other->step],
           "the work-items that share a tensor core do not all reach it");
    if (!is_at_wmma(team[0])) return;
    std::vector<uint64_t*> slots;
    for (WorkItem& item : team) slots.push_back(item.slots.data());
    run_wmma(program_.tensor_cores[step.arg], step, slots);
    for (WorkItem& item : team) ++item.step;
  }
}

void GroupRunner::check_barrier() const {
  for (const WorkItem& item : items_) {
    if (item.step == items_[0].step) continue;
    const Step& a = program_.steps[items_[0].step];
    const Step& b = program_.steps[item.step];
    fail(a.kind == StepKind::Barrier ? a : b,
         "work-items of one group do not all reach the same barrier");
  }
}

// Completes all committed groups except the last `left`.
void finish_copies(WorkItem& item, uint64_t left) {
  const uint64_t done = item.copy_groups - std::min(left, item.copy_groups);
  std::erase_if(item.copies, [&](const Copy& copy) {
    if (copy.group >= done) return false;
    if (copy.from)
      std::memcpy(copy.to, copy.from, copy.bytes);
    else
      std::memset(copy.to, 0, copy.bytes);
    return true;
  });
}

// Lanes are sign-extended, so that bounds and indices of both widths compare as 64 bits.
int64_t as_signed(uint64_t bits) {
  return static_cast<int64_t>(bits);
}

void GroupRunner::run_item(WorkItem& item) {
  uint64_t* slots = item.slots.data();
  const Step* steps = program_.steps.data();
  uint32_t at = item.step;
  for (;;) {
    const Step& step = steps[at];
    switch (step.kind) {
      case StepKind::Alu:
        step.alu(step, slots);
        break;
      case StepKind::Load:
        load(item, step);
        break;
      case StepKind::Store:
        store(item, step);
        break;
      case StepKind::AtomicAdd:
        atomic_add(item, step);
        break;
      case StepKind::AsyncCopy:
        start_copy(item, step);
        break;
      case StepKind::AsyncCommit:
        ++item.copy_groups;
        break;
      case StepKind::AsyncWait:
        finish_copies(item, step.arg);
        break;
      case StepKind::GroupId:
        slots[step.dst] = group_id_[step.arg];
        break;
      case StepKind::LocalId:
        slots[step.dst] = item.local_id[step.arg];
        break;
      case StepKind::Loop:
        slots[step.dst] = slots[step.src[0]];
        if (as_signed(slots[step.dst]) >= as_signed(slots[step.src[1]])) {
          at = step.target;
          continue;
        }
        break;
      case StepKind::EndLoop:
        if (as_signed(++slots[step.dst]) < as_signed(slots[step.src[1]])) {
          if (iterations_left_-- == 0)
            fail(step, "more iterations than the limit", PGR_STATUS_TIMED_OUT);
          at = step.target;
          continue;
        }
        break;
      case StepKind::If:
        if (!slots[step.src[0]]) {
          at = step.target;
          continue;
        }
        break;
      case StepKind::Barrier:
      case StepKind::Wmma:
      case StepKind::End:
        item.step = at;
        return;
    }
    ++at;
  }
}

std::byte* GroupRunner::locate(const WorkItem& item, const Step& step, uint64_t index,
                               uint32_t lane, uint32_t pointer) const {
  const uint32_t memory = step.src[pointer];
  const Region& region = item.regions[memory];
  // A negative index is a large unsigned one; only lanes before the memory may be gated off, and
  // then the sum wraps.
  const uint64_t place = index + lane;
  if (place >= region.elem_count) {
    const uint64_t param_count = program_.ir.params().size();
    const bool is_param = memory < param_count;
    fail(step, "index " + std::to_string(as_signed(index)) +
                   (lane ? " + lane " + std::to_string(lane) : "") + " is outside [0, " +
                   std::to_string(region.elem_count) + ") of " +
                   (is_param ? "parameter " : "array ") +
                   std::to_string(memory - (is_param ? 0 : param_count)));
  }
  if (pointer == 0 && step.group_lanes > 1 && index % step.group_lanes != 0)
    fail(step, "index " + std::to_string(index) + " is not a multiple of the array's " +
                   std::to_string(step.group_lanes) + " lanes");
  return region.base + place * step.elem_size;
}

void GroupRunner::load(WorkItem& item, const Step& step) const {
  uint64_t* slots = item.slots.data();
  const uint64_t index = slots[step.src[1]];
  for (uint32_t i = 0; i < step.lanes; ++i) {
    const bool is_open = !step.is_gated || slots[step.src[2] + i * step.stride[2]];
    slots[step.dst + i] =
        is_open ? step.load(locate(item, step, index, i)) : slots[step.src[3] + i * step.stride[3]];
  }
}

void GroupRunner::store(WorkItem& item, const Step& step) const {
  const uint64_t* slots = item.slots.data();
  const uint64_t index = slots[step.src[1]];
  for (uint32_t i = 0; i < step.lanes; ++i)
    if (!step.is_gated || slots[step.src[3] + i * step.stride[3]])
      step.store(locate(item, step, index, i), slots[step.src[2] + i * step.stride[2]]);
}

void GroupRunner::atomic_add(WorkItem& item, const Step& step) const {
  const uint64_t* slots = item.slots.data();
  const uint64_t index = slots[step.src[1]];
  for (uint32_t i = 0; i < step.lanes; ++i) {
    if (step.is_gated && !slots[step.src[3] + i * step.stride[3]]) continue;
    std::byte* at = locate(item, step, index, i);
    uint64_t pair[2] = {step.load(at), slots[step.src[2] + i * step.stride[2]]};
    Step add;
    add.src[1] = 1;
    step.alu(add, pair);
    step.store(at, pair[0]);
  }
}

// Until the wait, the destination is unspecified: set to the unwritten pattern, so that early reads
// are detected.
void GroupRunner::start_copy(WorkItem& item, const Step& step) const {
  const uint64_t *slots = item.slots.data(), to = slots[step.src[1]], from = slots[step.src[3]];
  const bool is_open = !step.is_gated || slots[step.gate];
  if (to % step.lanes != 0 || (is_open && from % step.lanes != 0))
    fail(step, "index " + std::to_string(as_signed(to % step.lanes != 0 ? to : from)) +
                   " is not a multiple of the copy's " + std::to_string(step.lanes) + " lanes");
  locate(item, step, to, step.lanes - 1);
  Copy copy{locate(item, step, to, 0), nullptr, step.lanes * step.elem_size, item.copy_groups};
  if (is_open) {
    locate(item, step, from, step.lanes - 1, 2);
    copy.from = locate(item, step, from, 0, 2);
  }
  std::memset(copy.to, 0xff, copy.bytes);
  item.copies.push_back(copy);
}

void GroupRunner::fail(const Step& step, const std::string& what, pgr_status status) const {
  std::string where;
  for (uint64_t id : group_id_) where += (where.empty() ? "" : ", ") + std::to_string(id);
  const OpInfo* op = op_info(program_.ir.inst(step.number).op);
  throw StatusError(status, "kernel " + program_.ir.name() + ", group (" + where +
                                "), instruction " + std::to_string(step.number) + " (" +
                                std::string(op->name) + "): " + what);
}

void refuse(const Program& p, const std::string& what) {
  throw StatusError(PGR_STATUS_INVALID_ARGUMENT, "kernel " + p.ir.name() + ": " + what);
}

void check_scalar(const Program& p, size_t number, uint64_t bits) {
  const pgr_ir_param& param = p.ir.params()[number];
  const int64_t value = as_signed(bits);
  if (dtype_info(param.dtype)->is_float || (value >= param.min && value <= param.max)) return;
  refuse(p, "parameter " + std::to_string(number) + " is " + std::to_string(value) +
                ", was built for " + std::to_string(param.min) + " to " +
                std::to_string(param.max));
}

void check_arguments(const Program& p, const InterpreterLaunch& launch) {
  size_t buffer = 0, scalar = 0;
  for (size_t i = 0; i < p.ir.params().size(); ++i) {
    const pgr_ir_param& param = p.ir.params()[i];
    const std::string where = "parameter " + std::to_string(i);
    if (param.kind == PGR_PARAM_SCALAR) {
      if (scalar >= launch.scalars.size()) refuse(p, where + " has no value");
      check_scalar(p, i, launch.scalars[scalar++]);
      continue;
    }
    if (buffer >= launch.buffers.size()) refuse(p, where + " has no buffer");
    const uint64_t needed = param.elem_count * dtype_size(param.dtype);
    if (launch.buffers[buffer].size_bytes < needed)
      refuse(p, where + " has a buffer of " + std::to_string(launch.buffers[buffer].size_bytes) +
                    " bytes, needs " + std::to_string(needed));
    ++buffer;
  }
  if (buffer != launch.buffers.size() || scalar != launch.scalars.size())
    refuse(p, "takes " + std::to_string(buffer) + " buffers and " + std::to_string(scalar) +
                  " scalars, got " + std::to_string(launch.buffers.size()) + " and " +
                  std::to_string(launch.scalars.size()));
}

void check_sizes(const Program& p, const InterpreterLaunch& launch) {
  const pgr_ir_header& h = p.ir.header();
  for (int axis = 0; axis < 3; ++axis) {
    const std::string where = " along axis " + std::to_string(axis);
    if (launch.local_size[axis] != h.local_size[axis])
      refuse(p, "local size " + std::to_string(launch.local_size[axis]) + where +
                    ", was built for " + std::to_string(h.local_size[axis]));
    if (launch.group_count[axis] > h.group_count[axis])
      refuse(p, std::to_string(launch.group_count[axis]) + " groups" + where +
                    ", was built for at most " + std::to_string(h.group_count[axis]));
  }
}

}  // namespace

void Interpreter::check(const InterpreterLaunch& launch) const {
  check_arguments(*program_, launch);
  check_sizes(*program_, launch);
}

void Interpreter::run(const InterpreterLaunch& launch) const {
  check(launch);
  const auto& count = launch.group_count;
  if (count[0] == 0 || count[1] == 0 || count[2] == 0) return;
  GroupRunner runner(*program_, launch);
  for (uint64_t z = 0; z < count[2]; ++z)
    for (uint64_t y = 0; y < count[1]; ++y)
      for (uint64_t x = 0; x < count[0]; ++x) runner.run_group({x, y, z});
}

}  // namespace plugrad::sdk

// Turns kernel IR into steps. Constants and parameters are slots filled before the first step.
#include "program.h"

#include "plugrad/sdk/guard.h"

namespace plugrad::sdk {
namespace {

using Program = Interpreter::Program;

// Initial slot contents: NaN as floats and large as integers.
constexpr uint64_t kUnset = 0x7ff87fc07fc07fffu;

void run_vector(const Step& s, uint64_t* slots) {
  for (uint32_t i = 0; i < s.lanes; ++i) slots[s.dst + i] = slots[s.parts[i]];
}

void run_lane(const Step& s, uint64_t* slots) {
  for (uint32_t i = 0; i < s.lanes; ++i) slots[s.dst + i] = slots[s.src[0] + s.arg + i];
}

// Lane i of the result is lane i of the concatenated sources.
std::vector<uint32_t> vector_parts(const Program& p, uint32_t number) {
  const pgr_ir_inst& inst = p.ir.inst(number);
  std::vector<uint32_t> parts;
  for (uint32_t source : p.ir.sources(number))
    for (uint32_t i = 0; i < p.ir.inst(source).lanes; ++i) parts.push_back(p.slot_of[source] + i);
  if (parts.size() < inst.lanes) parts.assign(inst.lanes, parts[0]);
  return parts;
}

AluFn find_fn(const Program& p, uint32_t number) {
  const pgr_ir_inst& inst = p.ir.inst(number);
  const uint32_t operand = p.ir.inst(p.ir.source(number, 0)).dtype;
  switch (inst.op) {
    case PGR_OP_VECTOR:
      return run_vector;
    case PGR_OP_LANE:
      return run_lane;
    case PGR_OP_CAST:
      return find_cast(operand, inst.dtype);
    case PGR_OP_BITCAST:
      return find_bitcast(inst.dtype);
    case PGR_OP_WHERE:
      return find_alu(inst.op, inst.dtype);
    default:
      return find_alu(inst.op, operand);
  }
}

StepKind kind_of(uint16_t op) {
  switch (op) {
    case PGR_OP_LOAD:
      return StepKind::Load;
    case PGR_OP_STORE:
      return StepKind::Store;
    case PGR_OP_ATOMIC_ADD:
      return StepKind::AtomicAdd;
    case PGR_OP_GROUP_ID:
      return StepKind::GroupId;
    case PGR_OP_LOCAL_ID:
      return StepKind::LocalId;
    case PGR_OP_LOOP:
      return StepKind::Loop;
    case PGR_OP_END_LOOP:
      return StepKind::EndLoop;
    case PGR_OP_IF:
      return StepKind::If;
    case PGR_OP_BARRIER:
      return StepKind::Barrier;
    case PGR_OP_ASYNC_COPY:
      return StepKind::AsyncCopy;
    case PGR_OP_ASYNC_COMMIT:
      return StepKind::AsyncCommit;
    case PGR_OP_ASYNC_WAIT:
      return StepKind::AsyncWait;
    case PGR_OP_WMMA:
      return StepKind::Wmma;
    default:
      return StepKind::Alu;
  }
}

// NOP, constants, parameters, arrays and END_IF have no run-time step.
bool is_silent(uint16_t op) {
  return op == PGR_OP_NOP || op == PGR_OP_PARAM || op == PGR_OP_ARRAY || op == PGR_OP_CONST ||
         op == PGR_OP_END_IF;
}

void set_memory(Program& p, uint32_t number, Step& step) {
  const pgr_ir_inst& pointer = p.ir.inst(p.ir.source(number, 0));
  step.elem_size = dtype_size(pointer.dtype);
  step.load = find_load(pointer.dtype);
  step.store = find_store(pointer.dtype);
  step.is_gated = p.ir.sources(number).size() == (step.kind == StepKind::AsyncCopy ? 5 : 4);
  if (step.kind == StepKind::AsyncCopy && step.is_gated)
    step.gate = p.slot_of[p.ir.source(number, 4)];
  if (pointer.op == PGR_OP_ARRAY) step.group_lanes = p.ir.arrays()[pointer.arg].lanes;
  if (step.kind == StepKind::AtomicAdd) step.alu = find_alu(PGR_OP_ADD, pointer.dtype);
}

Step make_step(Program& p, uint32_t number) {
  const pgr_ir_inst& inst = p.ir.inst(number);
  Step step;
  step.kind = kind_of(inst.op);
  step.lanes = inst.lanes;
  step.dst = p.slot_of[number];
  step.number = number;
  step.arg = inst.arg;
  const auto sources = p.ir.sources(number);
  for (size_t i = 0; i < sources.size() && i < 4; ++i) {
    step.src[i] = p.slot_of[sources[i]];
    step.stride[i] = p.ir.inst(sources[i]).lanes > 1 ? 1 : 0;
  }
  if (step.kind == StepKind::Wmma) {
    check_wmma(p, number);
    p.team = p.tensor_cores[inst.arg].threads;
  }
  if (inst.op == PGR_OP_VECTOR) step.parts = vector_parts(p, number);
  if (step.kind == StepKind::Alu) {
    step.alu = find_fn(p, number);
    require(step.alu != nullptr, PGR_STATUS_UNSUPPORTED,
            "the interpreter does not run " + std::string(op_info(inst.op)->name) + " on " +
                std::string(dtype_name(inst.dtype)));
  }
  if (step.kind == StepKind::Load || step.kind == StepKind::Store ||
      step.kind == StepKind::AtomicAdd || step.kind == StepKind::AsyncCopy)
    set_memory(p, number, step);
  if (step.kind == StepKind::EndLoop) {
    const uint32_t loop = p.ir.partner(number);
    step.dst = p.slot_of[loop];
    step.src[1] = p.slot_of[p.ir.source(loop, 1)];
  }
  return step;
}

// Slots for values; regions (parameters, then arrays) for pointers.
void assign_slots(Program& p) {
  const uint32_t count = static_cast<uint32_t>(p.ir.insts().size());
  const uint32_t param_count = static_cast<uint32_t>(p.ir.params().size());
  p.slot_of.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    const pgr_ir_inst& inst = p.ir.inst(i);
    if (p.ir.is_pointer(i)) {
      p.slot_of[i] = static_cast<uint32_t>(inst.arg) + (inst.op == PGR_OP_ARRAY ? param_count : 0);
      continue;
    }
    p.slot_of[i] = static_cast<uint32_t>(p.initial.size());
    if (inst.dtype != PGR_DTYPE_VOID) p.initial.resize(p.initial.size() + inst.lanes, kUnset);
    if (inst.op == PGR_OP_CONST) p.initial[p.slot_of[i]] = inst.arg;
    if (inst.op == PGR_OP_PARAM) {
      p.scalar_slots.push_back(p.slot_of[i]);
      p.scalar_params.push_back(static_cast<uint32_t>(inst.arg));
    }
  }
}

// Openers jump behind their block, END_LOOP to the first step inside.
void link_blocks(Program& p, const std::vector<uint32_t>& step_of) {
  for (Step& step : p.steps) {
    if (step.kind == StepKind::Loop || step.kind == StepKind::If)
      step.target = step_of[p.ir.partner(step.number) + 1];
    if (step.kind == StepKind::EndLoop) step.target = step_of[p.ir.partner(step.number)] + 1;
  }
}

constexpr uint64_t kMostBytes = uint64_t{1} << 32;  // of a group

void place_arrays(Program& p) {
  constexpr uint64_t kAlign = 64;
  for (size_t i = 0; i < p.ir.arrays().size(); ++i) {
    const pgr_ir_array& array = p.ir.arrays()[i];
    uint64_t& area = array.space == PGR_SPACE_LOCAL ? p.local_bytes : p.private_bytes;
    p.array_offsets.push_back(area);
    const uint64_t bytes = array.elem_count * dtype_size(array.dtype);
    require(bytes <= kMostBytes && area <= kMostBytes, PGR_STATUS_LIMIT_EXCEEDED,
            "array " + std::to_string(i) + " has " + std::to_string(bytes) +
                " bytes; the interpreter holds at most " + std::to_string(kMostBytes));
    area += (bytes + kAlign - 1) / kAlign * kAlign;
  }
}

void check_group_bytes(const Program& p) {
  const uint32_t* size = p.ir.header().local_size;
  // the verifier limits it to less than 2^32
  const uint64_t items = uint64_t{size[0]} * size[1] * size[2];
  const uint64_t item_bytes = p.initial.size() * sizeof(uint64_t) + p.private_bytes + 512;
  require(items <= kMostBytes / item_bytes && p.local_bytes <= kMostBytes,
          PGR_STATUS_LIMIT_EXCEEDED,
          "a group of " + std::to_string(items) + " work-items of " + std::to_string(item_bytes) +
              " bytes; the interpreter holds at most " + std::to_string(kMostBytes));
}

}  // namespace

Interpreter::Program::Program(IrView view, std::span<const pgr_tensor_core> cores)
    : ir(std::move(view)), tensor_cores(cores.begin(), cores.end()) {
  assign_slots(*this);
  place_arrays(*this);
  check_group_bytes(*this);
  const uint32_t count = static_cast<uint32_t>(ir.insts().size());
  std::vector<uint32_t> step_of(count + 1);  // the first step at or after each instruction
  for (uint32_t i = 0; i < count; ++i) {
    step_of[i] = static_cast<uint32_t>(steps.size());
    if (!is_silent(ir.inst(i).op)) steps.push_back(make_step(*this, i));
  }
  step_of[count] = static_cast<uint32_t>(steps.size());
  steps.emplace_back();  // End
  link_blocks(*this, step_of);
}

Interpreter::Interpreter(IrView ir, std::span<const pgr_tensor_core> tensor_cores)
    : program_(std::make_unique<Program>(std::move(ir), tensor_cores)) {}
Interpreter::~Interpreter() = default;
Interpreter::Interpreter(Interpreter&&) noexcept = default;
const IrView& Interpreter::ir() const {
  return program_->ir;
}

}  // namespace plugrad::sdk

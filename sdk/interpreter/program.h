// A kernel prepared for execution: values in an array of slots, one per lane; one step per
// instruction with a run-time effect. Private to the interpreter.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plugrad/sdk/interpreter.h"
#include "plugrad/sdk/tensor_core.h"

namespace plugrad::sdk {

struct Step;

// Computes slots from slots.
using AluFn = void (*)(const Step& step, uint64_t* slots);
// Moves one lane between memory and a slot.
using LoadFn = uint64_t (*)(const std::byte* at);
using StoreFn = void (*)(std::byte* at, uint64_t bits);

enum class StepKind : uint8_t {
  Alu,
  Load,
  Store,
  AtomicAdd,
  GroupId,
  LocalId,
  Loop,
  EndLoop,
  If,
  Barrier,
  AsyncCopy,
  AsyncCommit,
  AsyncWait,
  Wmma,
  End,
};

struct Step {
  StepKind kind = StepKind::End;
  uint16_t lanes = 1;
  uint16_t stride[4] = {};  // of each source in slots: 0 splats a scalar
  uint32_t dst = 0;         // first slot of the result
  uint32_t src[4] = {};     // first slot of each source; of a pointer: its region
  uint32_t number = 0;      // instruction index, for messages
  uint32_t target = 0;      // jump target: behind the block, or its first step
  uint32_t elem_size = 0;
  uint32_t group_lanes = 1;  // memory: the index must be a multiple
  bool is_gated = false;
  uint32_t gate = 0;  // ASYNC_COPY: the slot of its gate
  uint64_t arg = 0;
  AluFn alu = nullptr;
  LoadFn load = nullptr;
  StoreFn store = nullptr;
  std::vector<uint32_t> parts;  // VECTOR: the slot of every lane
};

// Memory of a pointer: a buffer, or an array of a work-item or group.
struct Region {
  std::byte* base = nullptr;
  uint64_t elem_count = 0;
};

struct Interpreter::Program {
  Program(IrView view, std::span<const pgr_tensor_core> cores);

  IrView ir;
  std::vector<Step> steps;
  std::vector<uint64_t> initial;  // slots with constants filled in
  std::vector<uint32_t> slot_of;  // per instruction: its first slot, or its region for a pointer
  std::vector<uint32_t> scalar_slots;   // slots of scalar parameters
  std::vector<uint32_t> scalar_params;  // index of each one's parameter
  uint64_t private_bytes = 0, local_bytes = 0;
  std::vector<uint64_t> array_offsets;  // per array, within the private or the local area
  std::vector<pgr_tensor_core> tensor_cores;
  uint32_t team = 1;  // consecutive work-items that share each WMMA
};

// Throws StatusError (UNSUPPORTED) unless the kernel's WMMA matches its tensor core, and
// StatusError (INVALID_ARGUMENT) unless the group is a whole number of teams.
void check_wmma(const Interpreter::Program& program, uint32_t number);
// D = A * B + C for one team; `slots` has the slots of each work-item.
void run_wmma(const pgr_tensor_core& core, const Step& step, std::span<uint64_t* const> slots);

// nullptr if the verifier would have refused the instruction.
AluFn find_alu(uint32_t op, uint32_t dtype);
AluFn find_fma(uint32_t dtype);
AluFn find_cast(uint32_t from, uint32_t to);
AluFn find_bitcast(uint32_t to);
LoadFn find_load(uint32_t dtype);
StoreFn find_store(uint32_t dtype);

}  // namespace plugrad::sdk

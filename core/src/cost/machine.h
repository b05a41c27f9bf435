// Describes the processor that runs the kernels, for schedule and codegen. Figures come from a
// calibration of this machine (cost/calibration_text.h), else from the device's capabilities, else
// from a table by instruction set.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "plugrad/plugin_api/device.h"

namespace plugrad::cost {

/// A cache level, or memory.
struct Level {
  double bytes = 0;  // capacity available to one thread; unused for memory
  double one = 0;    // bytes a cycle, read by one thread
  double all = 0;    // bytes a cycle, read by all threads together
  bool operator==(const Level&) const = default;
};

/// The machine model of a device. Rates are per cycle and thread, in vectors as wide as the
/// registers. All fields are doubles, so that one list (fields()) reads, writes and checks them.
struct Machine {
  double lanes = 1;            // f32 elements of a vector
  double registers = 16;       // vectors
  double passing = 2;          // registers for operands on their way into one instruction
  double threads = 1;          // groups that run at once
  double multiply_adds = 1;    // a cycle
  double latency = 4;          // cycles until the next can add to its result
  double window = 0;           // instructions started while earlier ones wait
  double loads = 2;            // a cycle, in parallel with arithmetic
  double stores = 1;           // a cycle
  double lane_cost = 3;        // of a scalar access with insertion into or extraction from a vector
  double line_bytes = 64;      // of the caches
  double near_bytes = 65'536;  // of values that the nearest caches hold anyway
  double tlb_bytes = 262'144;  // covered by the first-level TLB
  double streams = 4;          // of vectors that prefetching follows at once
  double wake_cycles = 3'000;  // to hand a kernel to the threads and wait for them: 1 us at 3 GHz
  double cycles_a_second = 3e9;
  // L1, L2, L3, memory
  std::array<Level, 4> levels = {
      {{32'768, 8, 8}, {524'288, 4, 4}, {16'777'216, 2, 2}, {0, 0.25, 0.25}}};

  const Level& memory() const { return levels[3]; }
  /// A load's cost in instructions.
  double load_cost() const { return 1 / loads; }
  /// Bytes of memory traffic that take as long as an operation on one element, with all threads
  /// busy.
  double bytes_an_operation() const { return memory().all / (threads * lanes * multiply_adds); }
  /// The cost of one more kernel in vector instructions, two of which issue per cycle.
  double kernel_cost() const { return 2 * wake_cycles; }
  /// Iterations below which threads do not pay: 32 Ki vectorised iterations take twice the 3,000
  /// cycles.
  double parallel_iterations() const { return wake_cycles * 32'768 / 3'000; }
  bool operator==(const Machine&) const = default;
};

/// The rows of the table.
enum class MachineClass : uint8_t {
  X86_64,
  X86_64_v2,
  X86_64_v3,
  X86_64_v4,
  Aarch64,
  InStep,
  Unknown
};
const char* name_of(MachineClass machine_class);
/// By the architecture's name ("x86_64-znver3", "x86-64-v3") and the device's capabilities; an
/// empty name means a CPU.
MachineClass class_of(std::string_view arch, const pgr_device_caps& caps);

/// The table's row, with the device's capabilities where they are stated.
Machine table_machine(std::string_view arch, const pgr_device_caps& caps);

/// Equal for equal machines; part of the keys of plans and programs.
uint64_t hash_of(const Machine& machine);

}  // namespace plugrad::cost

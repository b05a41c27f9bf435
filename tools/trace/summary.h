// Sums up a trace: where the time went, by part of the program, device, kernel and copy.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace plugrad::tools::trace {

struct Interval {
  int64_t begin = 0, end = 0;
};

/// Sorted, without overlaps.
using Intervals = std::vector<Interval>;

/// The same points in time, sorted and without overlaps.
Intervals united(Intervals intervals);
int64_t length(const Intervals& united_intervals);

/// Each moment of the recording counts for the first part that applies to it. Spans of compilation
/// contain those of code generation and of the search.
/// Collective: the program waits for other processes, whatever other threads do meanwhile.
enum class Part : uint8_t {
  Device,
  Collective,
  Search,
  Codegen,
  Compile,
  Plan,
  Wait,
  Engine,
  Program
};
inline constexpr size_t kPartCount = 9;

/// What limits a kernel, by the peaks of its device.
enum class Bound : uint8_t { Unknown, Compute, Memory, Launch };
const char* to_string(Bound bound);

struct KernelSummary {
  int32_t kernel = kNone, device = kNone;
  int64_t launches = 0, total_ns = 0, shortest_ns = 0, longest_ns = 0;
  double share = 0;             ///< of the time of all launches
  double work = 0;              ///< operations that one launch executes; 0: not known
  double gflops = 0, gbps = 0;  ///< of the estimated work; 0: no estimate
  double of_peak = 0;  ///< fraction of the rate that the device's peaks allow; 0: not known
  Bound bound = Bound::Unknown;

  double mean_ns() const {
    return launches ? static_cast<double>(total_ns) / static_cast<double>(launches) : 0;
  }
};

struct CopySummary {
  int32_t device = kNone;
  Direction direction = Direction::ToDevice;
  int64_t count = 0, bytes = 0, total_ns = 0;
};
/// "host to device", …
const char* to_string(Direction direction);

/// Collectives between processes, of one kind.
struct CollectiveSummary {
  CollectiveKind kind = CollectiveKind::AllReduce;
  int64_t count = 0, values = 0, bytes = 0;  ///< bytes that this process gave
  int64_t total_ns = 0, waited_ns = 0;       ///< sums over them; they may overlap
};

struct DeviceSummary {
  int64_t busy_ns = 0, idle_ns = 0;  ///< at least one launch or copy runs, and none
  int64_t launch_ns = 0, copy_ns = 0, overlap_ns = 0;  ///< overlap: launches and copies at once
  int64_t launches = 0, copies = 0;
  int64_t queued_ns = 0;  ///< sum of the times between giving a launch and its start
  int64_t memory_peak_bytes = 0, memory_peak_at_ns = 0, cached_peak_bytes = 0;
};

struct SpanSummary {
  int64_t count = 0, total_ns = 0;  ///< over all threads
  int64_t from_cache = 0;           ///< kernels from the disk cache, plans from that of plans
  int64_t from_memory = 0;          ///< kernels that the process had already; not in `count`
};

/// Plans that were made for one cause.
struct CauseSummary {
  std::string cause, first;   ///< "number"; of the first plan, "a number is 0.5, was 0.25"
  int32_t operation = kNone;  ///< of the first plan
  int64_t plans = 0, kernels = 0, compile_ns = 0;
};

struct Summary {
  int64_t begin_ns = 0, end_ns = 0;
  std::array<int64_t, kPartCount> parts{};  ///< add up to wall_ns()
  std::array<SpanSummary, 9> spans{};       ///< by Category
  int64_t waits = 0, wait_ns = 0;           ///< for devices
  std::vector<DeviceSummary> devices;       ///< as Trace::devices
  std::vector<KernelSummary> kernels;       ///< the one with the most time first
  std::vector<CopySummary> copies;
  std::vector<CollectiveSummary> collectives;
  std::vector<CauseSummary> causes;  ///< the one with the most kernels first

  int64_t wall_ns() const { return end_ns - begin_ns; }
  const SpanSummary& of(Category category) const { return spans[static_cast<size_t>(category)]; }
  int64_t of(Part part) const { return parts[static_cast<size_t>(part)]; }
};

Summary summarise(const Trace& trace);

/// Names of the operations that a kernel computes, such as "matmul, add, relu".
std::string operations_text(const Trace& trace, int32_t kernel);
/// The first operation of a kernel with a known source line; null: none.
const Operation* first_located(const Trace& trace, int32_t kernel);
/// Its name, or "unknown kernel".
std::string kernel_name(const Trace& trace, int32_t kernel);
std::string device_name(const Trace& trace, int32_t device);

}  // namespace plugrad::tools::trace

// How it runs: one kernel AST (ir/kernel_ast.h) becomes kernel IR for a target. A function from
// graph to bytes; it sees no device, only the capabilities of one.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "ir/graph.h"
#include "plugrad/plugin_api/device.h"

namespace plugrad::codegen {

/// What a kernel does, for reports: floating-point operations and bytes that must move.
struct Estimates {
  int64_t flops = 0;
  int64_t bytes = 0;
};

/// One change to a kernel's ranges, e.g. {Upcast, axis 1, 4}. Printed as "upcast(1, 4)" and parsed
/// back (schedule_text.cpp has the printed names). docs/optimisations.md describes each.
struct ScheduleStep {
  enum class Kind : uint8_t {
    Upcast,
    Unroll,
    Vectorize,
    Local,
    Group,
    Thread,
    Swap,
    TensorCore,
    Block,
    SplitK,     ///< "accumulate"
    CacheRead,  ///< "stage"; cache_write of a parameter that the kernel stores to
    ComputeAt,  ///< "keep"
    Pipeline    ///< "ahead": software pipelining
  };
  Kind kind;
  uint32_t axis = 0;
  int64_t amount = 0;

  /// Whether `axis` is the number of a parameter.
  bool names_parameter() const { return kind == Kind::CacheRead || kind == Kind::Pipeline; }
};

/// The schedule of a kernel: steps in the order in which they are applied.
using KernelSchedule = std::vector<ScheduleStep>;
std::string to_string(const KernelSchedule& schedule);
/// Errors: User if the text is no schedule.
KernelSchedule parse_schedule(std::string_view text);

struct Options {
  bool no_opt = false;     // NOOPT; not beside a list
  bool fast_math = false;  // adds the rule set `fast`
  bool contract = true;    // a multiply-add may round once
  bool tf32 = false;       // TF32: products of f32 may be of their leading 10 bits of fraction
  const KernelSchedule* schedule = nullptr;  // null: the heuristic's
  std::string_view name = {};                // a C identifier; empty: one that says the axes
  std::shared_ptr<const cost::Machine> machine = nullptr;  // null: the table's, by `caps`
};

/// Everything needed to compile and launch one kernel.
struct KernelCode {
  std::string name;           // C identifier, unique by content: "r_128_8_16_1f3a"
  std::string colored_name;   // sizes of the axes in their colours
  std::vector<std::byte> ir;  // kernel IR block
  uint64_t group_count[3] = {1, 1, 1};
  uint32_t local_size[3] = {1, 1, 1};
  KernelSchedule schedule;
  Estimates estimates;
};

/// Name and estimates of a kernel before code generation.
KernelCode describe(const Graph& ast, Id sink);

/// `ast` is copied into a scratch graph; the source is not touched, so many threads may share it.
KernelCode generate(const Graph& ast, Id sink, const pgr_device_caps& caps, const Options& options);

}  // namespace plugrad::codegen

// The scheduler turns a tensor graph into a plan: a list of kernels and copies over numbered
// buffers. It sees no devices, only device numbers and the limits in Options.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "ir/graph.h"
#include "ir/kernel_ast.h"
#include "rewrite/stage.h"

namespace plugrad::schedule {

struct Movement;

struct Options {
  bool fast_math = false;    // adds the rule set `fast`
  uint32_t threads = 1;      // of the device: large reductions with few outputs are split over them
  uint32_t subgroup = 1;     // outputs that one thread of a GPU computes at once
  uint32_t lanes = 1;        // f32 lanes of a vector; above 1, layouts are chosen for vectors
  uint64_t cache_bytes = 0;  // cache of one thread; operands read repeatedly are cut to fit
  uint64_t scratch_bytes = 0;  // local memory of one thread for blocked rows; 0: no blocked rows
  uint32_t layout_seed = 0;    // for tests: other than 0, layouts are drawn at random
  uint32_t max_params = 64;    // limit on the buffers of one kernel
  // limit on an arena; a single larger value gets an arena of its own
  uint64_t max_buffer_bytes = UINT64_MAX;
  bool plan_memory = true;           // intermediates share storage
  bool share_kernels = true;         // values that can use the same loops share a kernel
  cost::Machine machine{};           // machine model that costs are computed for
  std::vector<uint32_t> replaced{};  // inputs, by number, that the plan's outputs will replace
  // Inputs, by number, ascending. A value that depends on them alone is computed once for many
  // runs.
  std::vector<uint32_t> constants{};
  bool keep_graph = false;  // fills Plan::scheduled
};

/// One value in memory while a plan runs.
struct PlannedBuffer {
  enum class Kind : uint8_t { Input, Output, Temporary, Constant };
  Kind kind;
  uint32_t number = 0;  // Input: index into Plan::inputs. Output: index into the roots given.
                        // Constant: index into Plan::constants
  DType dtype;
  uint32_t device = 0;  // device number, never 0
  int64_t elem_count = 0;
  // Temporaries share arenas: bytes [offset, offset + size) of arena `arena`.
  uint32_t arena = 0;
  uint64_t offset_bytes = 0;
};

/// Buffer donation: the output may take the memory of the input, if the input is not needed after
/// the run. The plan is correct without it, too.
struct Donation {
  uint32_t output, input;  // indices into Plan::buffers
};

struct Arena {
  uint32_t device;
  uint64_t size_bytes;
};

struct Step {
  enum class Kind : uint8_t { Kernel, Copy, User, Loop, Collective, Wait };
  Kind kind;
  uint32_t device;  // the device that runs it; for Copy, the destination
  uint32_t ast =
      0;  // Kernel: index into Plan::asts. User: number of the user's kernel. Loop: of its body
  std::vector<uint32_t> buffers;  // Kernel: buffer of each param, indices into Plan::buffers. Copy:
                                  // destination, source. User, Loop: outputs, inputs. Collective,
                                  // and the Wait for it: destination and source of each member
  std::vector<uint64_t> scalars = {};  // Kernel: value of each Scalar, by number. Collective: the
                                       // arguments (sharding/collectives.h), one after another
  std::vector<uint32_t> numbers =
      {};  // Kernel whose scalars each run gives: twice the number of the
           // graph's Scalar, and 1 more for the negative
  std::shared_ptr<const Movement> movement =
      nullptr;  // Copy: how elements move, on the host; null: all of them, as they are
};

/// The simplified tensor graph of a plan, for traces: what each step computes.
struct ScheduledGraph {
  struct Value {
    Id id;           // of `graph`
    Id source;       // the node of the given graph that it simplifies; kNoId: none
    int32_t step;    // the step that computes it; -1: none
    int32_t buffer;  // index into Plan::buffers; -1: not stored
    std::vector<int64_t> shape;
  };
  Graph graph;
  std::vector<Value> values;  // ascending ids: sources first
};

struct Plan {
  std::vector<PlannedBuffer> buffers;
  std::vector<Arena> arenas;
  std::vector<std::shared_ptr<const KernelAst>> asts;
  std::vector<Step> steps;  // in topological order
  // For each Input, its position among the Buffer nodes of the tensor graph in canonical order (see
  // Canonical).
  uint32_t input_count = 0;
  // The elements of each Constant, as a Const node has them in its arg.
  std::vector<std::vector<uint64_t>> constants;
  // For each root the buffer that holds it after the run. A root that is a Buffer, or a view of a
  // whole one, is that Input and costs nothing.
  std::vector<uint32_t> root_buffers;
  std::vector<Donation> donations;
  int64_t operations = 0;  // of the graph, each node computed once (cost/work.h)
  // Operations that kernels repeat because to store a value would take longer, beyond what hides
  // behind the memory that they move.
  int64_t repeated = 0;
  uint64_t visits = 0;     // node visits of walks below single nodes: the cost of planning
  uint32_t trace_run = 0;  // of its stages in a trace; 0: not recorded
  std::shared_ptr<const ScheduledGraph> scheduled{};  // null unless Options::keep_graph
};

/// Plans the computation of `roots` (nodes of `graph`, each to be stored contiguously in its own
/// shape, row-major). Buffer nodes are inputs: Input i is the i-th distinct Buffer node in the
/// order of `inputs`.
Plan make_plan(const Graph& graph, std::span<const Id> roots, std::span<const Id> inputs,
               uint32_t default_device, const Options& options);

/// The steps, the buffers with their locations, and each kernel's AST as text.
std::string to_string(const Plan& plan);

/// The stages of the scheduler, for `plugrad explain --stages`.
std::vector<StageInfo> stages();

}  // namespace plugrad::schedule

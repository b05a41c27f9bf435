// What runs: a tensor graph becomes a list of kernels and copies over numbered buffers. A function
// from graph to plan; it sees no device, only device numbers and the limits given in its options.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "ir/graph.h"
#include "ir/kernel_ast.h"

namespace plugrad::schedule {

struct Options {
  bool fast_math = false;  // adds the rule set `fast`
  uint32_t threads = 1;   // parallelism of the devices: large reductions with few outputs are split
  uint32_t subgroup = 1;  // outputs side by side that a thread computes at once, as GPUs do
  uint32_t lanes = 1;     // of a vector of f32; above 1, layouts are chosen for vectors
  uint64_t cache_bytes = 0;    // of a thread's own: what is read again and again is cut to fit
  uint64_t scratch_bytes = 0;  // of a thread's own, for rows that wait inside a kernel; 0: none do
  uint32_t layout_seed = 0;    // for tests: other than 0, layouts are drawn by lot instead
  uint32_t max_params = 64;    // most buffers one kernel may take
  uint64_t max_buffer_bytes = UINT64_MAX;  // largest arena, unless one value alone is larger
  bool plan_memory = true;                 // let intermediates share storage
  bool share_kernels = true;       // values that can be computed in the same loops share a kernel
  cost::Machine machine;           // that costs are of
  std::vector<uint32_t> replaced;  // inputs by number: what denotes them now will denote outputs
  // Inputs by number, ascending: what depends on them alone is computed once for many runs.
  std::vector<uint32_t> constants;
};

/// One value in memory while a plan runs.
struct PlannedBuffer {
  enum class Kind : uint8_t { Input, Output, Temporary, Constant };
  Kind kind;
  uint32_t number = 0;  // Input: index into Plan::inputs. Output: index into the roots given.
                        // Constant: index into Plan::constants
  DType dtype;
  uint32_t device = 0;  // device number, never 0: constants alone take the plan's default device
  int64_t elem_count = 0;
  // Temporaries share arenas: bytes [offset, offset + size) of arena `arena`.
  uint32_t arena = 0;
  uint64_t offset_bytes = 0;
};

/// An output that may lie where an input lies, should nobody want that any more when the plan runs;
/// as well somewhere else.
struct InPlace {
  uint32_t output, input;  // indices into Plan::buffers
};

struct Arena {
  uint32_t device;
  uint64_t size_bytes;
};

struct Step {
  enum class Kind : uint8_t { Kernel, Copy, User, Loop };
  Kind kind;
  uint32_t device;  // that runs it; for Copy the destination's
  uint32_t ast =
      0;  // Kernel: index into Plan::asts. User: number of the user's kernel. Loop: of its body
  std::vector<uint32_t> buffers;  // Kernel: buffer of each param, indices into Plan::buffers. Copy:
                                  // destination, source. User, Loop: outputs, inputs
  std::vector<uint64_t> scalars = {};  // Kernel: value of each Scalar, by number
};

struct Plan {
  std::vector<PlannedBuffer> buffers;
  std::vector<Arena> arenas;
  std::vector<std::shared_ptr<const KernelAst>> asts;
  std::vector<Step> steps;  // in an order that respects every dependency
  // For each Input, its position among the Buffer nodes of the tensor graph in canonical order (see
  // Canonical).
  uint32_t input_count = 0;
  // The elements of each Constant, as a Const node has them in its arg.
  std::vector<std::vector<uint64_t>> constants;
  // For each root given: the buffer that holds it when the plan has run. A root that is a Buffer
  // already, or a view of all of one, is that Input and costs nothing.
  std::vector<uint32_t> root_buffers;
  std::vector<InPlace> in_place;
  uint64_t visits = 0;  // of nodes, by the stages that walk below single nodes: what planning cost
};

/// Plans the computation of `roots` (nodes of `graph`, each to be stored contiguously in its own
/// shape, row-major). Buffer nodes are inputs: Input i is the i-th distinct Buffer node in the
/// order of `inputs`.
Plan make_plan(const Graph& graph, std::span<const Id> roots, std::span<const Id> inputs,
               uint32_t default_device, const Options& options);

/// The steps with their buffers, the buffers with their places, and each kernel's AST: for people.
std::string to_string(const Plan& plan);

}  // namespace plugrad::schedule

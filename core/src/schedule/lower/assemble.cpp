// Turns stored values into the buffers of a plan and groups of them into kernels and copies. Equal
// kernels become one program.
#include <algorithm>
#include <map>
#include <set>

#include "base/check.h"
#include "ir/user.h"
#include "schedule/lower/collective_order.h"
#include "schedule/lower/lower_kernel.h"

namespace plugrad::schedule {
namespace {

using Kind = PlannedBuffer::Kind;

class Assembler {
 public:
  explicit Assembler(SchedulerState& state) : state_(state), plan_(state.plan) {}

  void run() {
    state_.buffer_of.assign(state_.graph.size(), kNoBuffer);
    add_inputs();
    add_constants();
    add_outputs();
    for (Id id : state_.live)
      if (state_.stored[id] != 0) buffer(id);
    KernelLowering lowering(state_);
    order_collectives(state_);
    for (const std::vector<Id>& outputs : state_.kernels) add_step(lowering, outputs);
    find_donations(state_, kernels_);
    join_programs(state_, kernels_);
    for (size_t i = 0; i < kernels_.size(); ++i)
      if (kernels_[i]) plan_.steps[i].ast = intern(kernels_[i]);
  }

 private:
  void add_inputs() {
    plan_.input_count = static_cast<uint32_t>(state_.inputs.size());
    for (uint32_t i = 0; i < plan_.input_count; ++i) {
      const Id id = state_.source_inputs[i];
      PlannedBuffer planned{.kind = Kind::Input, .number = i, .dtype = state_.source[id].dtype};
      planned.device = buffer_device(state_.source, id);
      planned.elem_count = element_count(state_.source.arg_list(id).subspan(2));
      if (state_.inputs[i] != kNoId) state_.buffer_of[state_.inputs[i]] = i;
      plan_.buffers.push_back(planned);
    }
  }

  void add_constants() {
    for (ConstantBuffer& constant : state_.constants) {
      if (!std::ranges::binary_search(state_.live, constant.node)) continue;
      state_.buffer_of[constant.node] = static_cast<uint32_t>(plan_.buffers.size());
      PlannedBuffer planned{.kind = Kind::Constant,
                            .number = static_cast<uint32_t>(plan_.constants.size()),
                            .dtype = state_.graph[constant.node].dtype};
      planned.device = state_.devices[constant.node];
      planned.elem_count = state_.counts[constant.node];
      plan_.buffers.push_back(planned);
      plan_.constants.push_back(std::move(constant.bits));
    }
  }

  void add_outputs() {
    for (uint32_t i = 0; i < state_.roots.size(); ++i) {
      const Id root = state_.roots[i];
      if (state_.buffer_of[root] == kNoBuffer) {
        buffer(root);
        plan_.buffers.back().kind = Kind::Output;
        plan_.buffers.back().number = i;
      }
      plan_.root_buffers.push_back(state_.buffer_of[root]);
    }
  }

  void buffer(Id id) {
    if (state_.buffer_of[id] != kNoBuffer) return;
    ensure(state_.graph[id].op != Op::Buffer, "[schedule] Buffer {} is not among the inputs", id);
    const DType dtype = state_.graph[id].dtype;
    ensure(size_of(dtype) != 0, "[schedule] a value of dtype {} cannot be stored", name_of(dtype));
    state_.buffer_of[id] = static_cast<uint32_t>(plan_.buffers.size());
    PlannedBuffer planned{.kind = Kind::Temporary, .dtype = dtype};
    planned.device = state_.devices[id];
    planned.elem_count = state_.counts[id];
    plan_.buffers.push_back(planned);
  }

  void add_step(KernelLowering& lowering, const std::vector<Id>& outputs) {
    const Id id = outputs[0];
    const Op op = state_.graph[id].op;
    if (op == Op::UserKernel) return add_user_step(outputs);
    if (op == Op::Collective) return add_collective(outputs);
    Step step{op == Op::Copy ? Step::Kind::Copy : Step::Kind::Kernel, state_.devices[id], 0, {}};
    if (op == Op::Copy) {
      step.buffers = {state_.buffer_of[id], state_.buffer_of[state_.graph[id].src[0]]};
    } else {
      LoweredKernel kernel = lowering.lower(outputs);
      for (Id param : kernel.params) step.buffers.push_back(state_.buffer_of[param]);
      step.numbers = std::move(kernel.numbers);
      kernel.ast->graph.trim();
      kernels_.push_back(std::move(kernel.ast));
    }
    plan_.steps.push_back(std::move(step));
    kernels_.resize(plan_.steps.size());
  }

  /// The first time its start, the second time its end.
  void add_collective(const std::vector<Id>& bucket) {
    const bool is_start = in_flight_.insert(bucket[0]).second;
    Step step{
        is_start ? Step::Kind::Collective : Step::Kind::Wait, state_.devices[bucket[0]], 0, {}};
    for (const Id id : bucket) {
      step.buffers.push_back(state_.buffer_of[id]);
      step.buffers.push_back(state_.buffer_of[state_.graph[id].src[0]]);
      for (const int64_t word : state_.graph.arg_list(id))
        if (is_start) step.scalars.push_back(static_cast<uint64_t>(word));
    }
    plan_.steps.push_back(std::move(step));
    kernels_.resize(plan_.steps.size());
  }

  /// All outputs get memory, unread ones too.
  void add_user_step(const std::vector<Id>& outputs) {
    const Graph& g = state_.graph;
    const UserKernelArg arg(g.arg_list(outputs[0]));
    const bool is_loop = (arg.kernel() & kLoopBit) != 0;
    Step step{is_loop ? Step::Kind::Loop : Step::Kind::User,
              state_.devices[outputs[0]],
              arg.kernel() & ~kLoopBit,
              {}};
    for (uint32_t i = 0; i < arg.output_count(); ++i) {
      const auto at = std::ranges::find_if(
          outputs, [&](Id id) { return UserKernelArg(g.arg_list(id)).output() == i; });
      step.buffers.push_back(at != outputs.end() ? state_.buffer_of[*at]
                                                 : unread(arg.form(i), step.device));
    }
    for (Id s : g.sources(outputs[0])) step.buffers.push_back(state_.buffer_of[s]);
    require(is_loop || step.buffers.size() <= state_.options.max_params,
            "[schedule] a user's kernel takes {} buffers, the device {} at most",
            step.buffers.size(), state_.options.max_params);
    plan_.steps.push_back(std::move(step));
    kernels_.resize(plan_.steps.size());
  }

  uint32_t unread(const OutputForm& form, uint32_t device) {
    PlannedBuffer planned{.kind = Kind::Temporary, .dtype = form.dtype};
    planned.device = device;
    planned.elem_count = element_count(form.shape);
    plan_.buffers.push_back(planned);
    return static_cast<uint32_t>(plan_.buffers.size() - 1);
  }

  uint32_t intern(const std::shared_ptr<KernelAst>& ast) {
    state_.visits += ast->graph.size();
    const NodeHash hash = hash_of(*ast);
    ast->hash[0] = hash.word[0];
    ast->hash[1] = hash.word[1];
    const auto [at, fresh] = known_.try_emplace(hash, static_cast<uint32_t>(plan_.asts.size()));
    if (fresh) {
      ast->graph.trim();  // passes may have rebuilt it since it was lowered
      plan_.asts.push_back(ast);
    }
    return at->second;
  }

  SchedulerState& state_;
  Plan& plan_;
  std::vector<std::shared_ptr<KernelAst>> kernels_;  // by step; null for steps without one
  std::map<NodeHash, uint32_t> known_;
  std::set<Id> in_flight_;  // first members of collectives
};

}  // namespace

NodeHash hash_of(const KernelAst& ast) {
  NodeHash hash = structural_hash(ast.graph, ast.sink);
  hash.word[0] ^= ast.is_exact ? 1 : 0;
  return hash;
}

void assemble(SchedulerState& state) {
  Assembler(state).run();
}

}  // namespace plugrad::schedule

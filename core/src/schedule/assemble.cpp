// Every stored value gets a buffer and a kernel or copy; equal kernels are one object.
#include <map>

#include "base/check.h"
#include "schedule/draft.h"
#include "schedule/lower_kernel.h"
#include "uop/structural_hash.h"

namespace plugrad::schedule {
namespace {

using Kind = PlannedBuffer::Kind;

class Assembler {
 public:
  explicit Assembler(Draft& draft) : draft_(draft), plan_(draft.plan) {}

  void run() {
    draft_.buffer_of.assign(draft_.graph.size(), kNoBuffer);
    place_constants();
    add_inputs();
    add_outputs();
    for (Id id : draft_.live)
      if (draft_.stored[id] != 0) buffer(id);
    KernelLowering lowering(draft_, device_of_);
    for (Id id : draft_.live)
      if (draft_.stored[id] != 0 && draft_.counts[id] != 0) add_step(lowering, id);
  }

 private:
  /// Values without a device are computed where the first that reads them is; roots on the default device.
  void place_constants() {
    device_of_ = draft_.devices;
    for (Id root : draft_.roots)
      if (device_of_[root] == 0) device_of_[root] = draft_.default_device;
    for (size_t i = draft_.live.size(); i-- > 0;) {
      const Id id = draft_.live[i];
      if (device_of_[id] == 0) device_of_[id] = draft_.default_device;
      if (draft_.graph[id].op == Op::Copy) continue;
      for (Id s : draft_.graph.sources(id))
        if (device_of_[s] == 0) device_of_[s] = device_of_[id];
    }
  }

  void add_inputs() {
    plan_.input_count = static_cast<uint32_t>(draft_.inputs.size());
    for (uint32_t i = 0; i < plan_.input_count; ++i) {
      const Id id = draft_.source_inputs[i];
      PlannedBuffer planned{.kind = Kind::Input, .number = i, .dtype = draft_.source[id].dtype};
      planned.device = buffer_device(draft_.source, id);
      planned.elem_count = element_count(draft_.source.arg_list(id).subspan(2));
      if (draft_.inputs[i] != kNoId) draft_.buffer_of[draft_.inputs[i]] = i;
      plan_.buffers.push_back(planned);
    }
  }

  void add_outputs() {
    for (uint32_t i = 0; i < draft_.roots.size(); ++i) {
      const Id root = draft_.roots[i];
      if (draft_.buffer_of[root] == kNoBuffer) {
        buffer(root);
        plan_.buffers.back().kind = Kind::Output;
        plan_.buffers.back().number = i;
      }
      plan_.root_buffers.push_back(draft_.buffer_of[root]);
    }
  }

  void buffer(Id id) {
    if (draft_.buffer_of[id] != kNoBuffer) return;
    ensure(draft_.graph[id].op != Op::Buffer, "[schedule] Buffer {} is not among the inputs", id);
    const DType dtype = draft_.graph[id].dtype;
    ensure(size_of(dtype) != 0, "[schedule] a value of dtype {} cannot be stored", name_of(dtype));
    draft_.buffer_of[id] = static_cast<uint32_t>(plan_.buffers.size());
    PlannedBuffer planned{.kind = Kind::Temporary, .dtype = dtype};
    planned.device = device_of_[id];
    planned.elem_count = draft_.counts[id];
    plan_.buffers.push_back(planned);
  }

  void add_step(KernelLowering& lowering, Id id) {
    const Op op = draft_.graph[id].op;
    if (op == Op::Buffer) return;
    Step step{op == Op::Copy ? Step::Kind::Copy : Step::Kind::Kernel, device_of_[id], 0, {}};
    if (op == Op::Copy) {
      step.buffers = {draft_.buffer_of[id], draft_.buffer_of[draft_.graph[id].src[0]]};
    } else {
      LoweredKernel kernel = lowering.lower(id);
      for (Id param : kernel.params) step.buffers.push_back(draft_.buffer_of[param]);
      step.ast = intern(std::move(kernel.ast));
    }
    plan_.steps.push_back(std::move(step));
  }

  uint32_t intern(std::shared_ptr<KernelAst> ast) {
    const NodeHash hash = structural_hash(ast->graph, ast->sink);
    ast->hash[0] = hash.word[0];
    ast->hash[1] = hash.word[1];
    const auto [at, fresh] = known_.try_emplace(hash, static_cast<uint32_t>(plan_.asts.size()));
    if (fresh) plan_.asts.push_back(std::move(ast));
    return at->second;
  }

  Draft& draft_;
  Plan& plan_;
  std::vector<uint32_t> device_of_;
  std::map<NodeHash, uint32_t> known_;
};

}  // namespace

void assemble(Draft& draft) { Assembler(draft).run(); }

}  // namespace plugrad::schedule

// Turns user kernels into UserKernel nodes, one for each output; the session's table holds their
// code. Makes all checks that need no device.
#include "plugrad/user_kernel.h"

#include <algorithm>
#include <cctype>

#include "codegen/kernel.h"
#include "ir/kernel_ast.h"
#include "ir/range.h"
#include "ir/structural_hash.h"
#include "ir/text/printer.h"
#include "ir/user.h"
#include "ir/verifier.h"
#include "runtime/device/kernel_facts.h"
#include "runtime/discovery/selection.h"
#include "schedule/schedule.h"
#include "symbolic/bounds.h"
#include "tensor/handles.h"
#include "tensor/lazy_text.h"
#include "tensor/record.h"

namespace plugrad {

using tensor::Recorder;

namespace {

/// A buffer parameter of a kernel.
struct BufferForm {
  DType dtype;
  int64_t elem_count;
  bool written;
};

std::string text_of(const BufferForm& form) {
  return fmt::format("{} {} to {}", form.elem_count, name_of(form.dtype),
                     form.written ? "write" : "read");
}

bool is_identifier(const std::string& name) {
  const auto is_part = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::ranges::all_of(name, is_part);
}

void check_groups(const UserKernel& kernel) {
  require(
      kernel.groups != std::array<uint64_t, 3>(),
      "[{}] `groups` is missing: give the number of workgroups that run the source text, {{n, 1, "
      "1}} for n of them, {{1, 1, 1}} for one",
      kernel.name);
  for (size_t axis = 0; axis < 3; ++axis)
    require(kernel.groups[axis] != 0 && kernel.local[axis] != 0,
            "[{}] groups or work-items along axis {} are 0", kernel.name, axis);
}

void check_call(const UserKernel& kernel, const std::vector<Tensor>& inputs,
                const std::vector<KernelOutput>& outputs) {
  const std::string& name = kernel.name;
  require(is_identifier(name), "[UserKernel] \"{}\" is no C identifier", name);
  require(!kernel.sources.empty() || !kernel.ir.empty() || kernel.ast.defined(),
          "[{}] the kernel has no source, no kernel IR and no AST", name);
  require(!outputs.empty(), "[{}] the kernel has no outputs; it must write something", name);
  for (const KernelSource& source : kernel.sources)
    require(!source.device.empty() && !source.text.empty(), "[{}] a source for \"{}\" of {} bytes",
            name, source.device, source.text.size());
  if (!kernel.sources.empty()) check_groups(kernel);
  for (const KernelOutput& output : outputs) {
    require(size_of(output.dtype) != 0, "[{}] an output of {}, which is not stored", name,
            name_of(output.dtype));
    for (int64_t size : output.shape)
      require(size >= 0, "[{}] an output of shape {}", name, tensor::lazy_text(output.shape));
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    require(inputs[i].defined(), "[{}] input {} is undefined", name, i);
}

void check_block(const UserKernel& kernel, const std::vector<BufferForm>& forms,
                 engine::UserKernelCode& code) {
  const std::optional<runtime::KernelFacts> own = runtime::read_kernel_facts(kernel.ir);
  require(own && own->total_bytes == kernel.ir.size(),
          "[{}] the {} bytes given are no kernel IR block; make one with sdk::IrBuilder",
          kernel.name, kernel.ir.size());
  require(own->name == kernel.name, "[{}] the kernel IR block is of a kernel called {}",
          kernel.name, own->name);
  require(own->params.size() == forms.size(),
          "[{}] the kernel IR block takes {} buffers, the call "
          "has {} (outputs, then inputs)",
          kernel.name, own->params.size(), forms.size());
  for (size_t i = 0; i < forms.size(); ++i) {
    const pgr_ir_param& row = own->params[i];
    const BufferForm own_form{static_cast<DType>(row.dtype), static_cast<int64_t>(row.elem_count),
                              (row.flags & PGR_PARAM_WRITE) != 0};
    require(row.kind == PGR_PARAM_BUFFER && own_form.dtype == forms[i].dtype &&
                own_form.elem_count == forms[i].elem_count && own_form.written == forms[i].written,
            "[{}] buffer {} of the kernel IR block is {}, the call's is {}", kernel.name, i,
            text_of(own_form), text_of(forms[i]));
  }
  std::ranges::copy(own->group_count, code.group_count);
  std::ranges::copy(own->local_size, code.local_size);
}

// ---- ASTs ----

const char* ast_problem(const Graph& g, const Node& n) {
  switch (n.op) {
    case Op::Sink:
    case Op::Store:
    case Op::Load:
    case Op::Param:
    case Op::Const:
      return nullptr;
    case Op::Range:
      if (g[n.src[0]].op != Op::Const || n.dtype != DType::Index)
        return "the size of a loop must be an index constant";
      return range_kind(n) == AxisKind::Loop || range_kind(n) == AxisKind::Reduce
                 ? nullptr
                 : "a loop is of kind loop or reduce";
    case Op::Reduce:
      return n.src_count > 1 ? nullptr : "a reduction in a kernel is over ranges";
    default:
      return is_alu(n.op) ? nullptr : "the op has no place in a kernel's AST";
  }
}

/// Checks that the access stays inside its buffer, if its index depends on loop variables only.
void check_access(const std::string& name, Graph& g, Bounds& bounds, Id access) {
  const auto sources = g.sources(access);
  const size_t gate = g[access].op == Op::Store ? 3 : 2;
  if (sources.size() > gate) return;
  require(g[sources[1]].dtype == DType::Index,
          "[{}] the index of {} is {}; indices are of dtype "
          "index",
          name, print_node(g, access), name_of(g[sources[1]].dtype));
  Reachable reachable;
  const auto& below = reachable.from(g, sources.subspan(1, 1));
  const auto is_unknown = [&](Id id) {
    return g[id].op == Op::Load || (g[id].op == Op::Range && range_size(g, id) == 0);
  };
  if (std::ranges::any_of(below, is_unknown)) return;
  const Interval index = bounds[sources[1]];
  const int64_t count = param_info(g, sources[0]).elem_count;
  require(index.lo >= 0 && index.hi < count, "[{}] {} reaches elements {} to {} of a buffer of {}",
          name, print_node(g, access), index.lo, index.hi, count);
}

void check_param(const std::string& name, Graph& g, Id param,
                 const std::vector<BufferForm>& forms) {
  const ParamInfo info = param_info(g, param);
  require(info.slot < forms.size(),
          "[{}] the AST takes buffer {}, the call has {} (outputs, then "
          "inputs)",
          name, info.slot, forms.size());
  const BufferForm own{g[param].dtype, info.elem_count, (info.flags & PGR_PARAM_WRITE) != 0};
  const BufferForm& form = forms[info.slot];
  require(
      own.dtype == form.dtype && own.elem_count == form.elem_count && own.written == form.written,
      "[{}] buffer {} of the AST is {}, the call's is {}", name, info.slot, text_of(own),
      text_of(form));
}

std::shared_ptr<const KernelAst> checked_ast(const std::string& name, const Graph& from, Id root,
                                             const std::vector<BufferForm>& forms) {
  auto ast = std::make_shared<KernelAst>();
  Graph& g = ast->graph;
  ast->sink = codegen::copy_into(g, from, root);
  Reachable reachable;
  const std::vector<Id> nodes = reachable.from(g, std::span(&ast->sink, 1));
  for (Id id : nodes)
    if (const char* problem = ast_problem(g, g[id]))
      fail(ErrorKind::User, "[{}] {}: {}", name, problem, print_node(g, id));
  try {
    verify_kernel_ast(g, ast->sink);
  } catch (const Error& error) {
    fail(ErrorKind::User, "[{}] {}", name, error.what());
  }
  Bounds bounds(g);
  std::vector<bool> written(forms.size());
  for (Id id : nodes) {
    const Op op = g[id].op;
    if (op == Op::Param) check_param(name, g, id, forms);
    if (op == Op::Load || op == Op::Store) check_access(name, g, bounds, id);
    if (op == Op::Store) written[param_info(g, g.sources(id)[0]).slot] = true;
  }
  for (size_t i = 0; i < forms.size(); ++i)
    require(!forms[i].written || written[i] || forms[i].elem_count == 0,
            "[{}] the AST stores nothing into output {}", name, i);
  ast->param_count = static_cast<uint32_t>(forms.size());
  const NodeHash hash = structural_hash(g, ast->sink);
  ast->hash[0] = hash.word[0];
  ast->hash[1] = hash.word[1];
  return ast;
}

// ---- The call ----

engine::UserKernelCode code_of(const UserKernel& kernel, Recorder& r,
                               const std::vector<BufferForm>& forms) {
  engine::UserKernelCode code;
  code.name = kernel.name;
  for (const KernelSource& source : kernel.sources)
    code.sources.push_back({runtime::canonical_device_name(source.device), source.text});
  if (!kernel.sources.empty()) {
    std::ranges::copy(kernel.groups, code.group_count);
    std::ranges::copy(kernel.local, code.local_size);
  }
  code.param_count = static_cast<uint32_t>(forms.size());
  for (const BufferForm& form : forms) code.bytes += form.elem_count * size_of(form.dtype);
  if (!kernel.ir.empty()) {
    code.ir = kernel.ir;
    check_block(kernel, forms, code);
  }
  if (kernel.ast.defined())
    code.ast = checked_ast(kernel.name, r.graph(), tensor::state_of(kernel.ast)->node, forms);
  return code;
}

/// Nodes of the inputs, as they are stored.
std::vector<Id> stored_nodes(Recorder& r, const std::vector<Tensor>& inputs) {
  std::vector<Id> sources;
  for (const Tensor& input : inputs) {
    const Id node = r.use(input);
    sources.push_back(r.cast(node, strong(r.dtype(node))));
  }
  return sources;
}

std::vector<Tensor> launch(Recorder& r, uint32_t kernel, const std::vector<Id>& sources,
                           const std::vector<KernelOutput>& outputs) {
  std::vector<int64_t> list = {kernel, 0, static_cast<int64_t>(outputs.size())};
  for (const KernelOutput& output : outputs) {
    list.push_back(static_cast<int64_t>(output.dtype));
    list.push_back(static_cast<int64_t>(output.shape.size()));
    list.insert(list.end(), output.shape.begin(), output.shape.end());
  }
  std::vector<Tensor> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    list[1] = static_cast<int64_t>(i);
    results.push_back(
        r.done(r.graph().add(Op::UserKernel, outputs[i].dtype, sources, r.graph().list(list))));
  }
  return results;
}

std::vector<Tensor> call(const UserKernel& kernel, const std::vector<Tensor>& inputs,
                         const std::vector<KernelOutput>& outputs) {
  Recorder r(kernel.name);
  const std::vector<Id> sources = stored_nodes(r, inputs);
  std::vector<BufferForm> forms;
  for (const KernelOutput& output : outputs)
    forms.push_back({output.dtype, element_count(output.shape), true});
  for (Id node : sources)
    forms.push_back({r.dtype(node), element_count(r.session().shape(node)), false});
  return launch(r, r.session().user_kernels().add(code_of(kernel, r, forms)), sources, outputs);
}

}  // namespace

std::vector<Tensor> UserKernel::operator()(const std::vector<Tensor>& inputs,
                                           const std::vector<KernelOutput>& outputs) const {
  check_call(*this, inputs, outputs);
  const auto forward = [this, &outputs](FunctionContext&, const std::vector<Tensor>& detached) {
    return call(*this, detached, outputs);
  };
  if (backward) {
    // CustomFunction keeps only name and backward after the call: `forward` may hold references.
    CustomFunction function{name, forward, backward};
    return function(inputs);
  }
  FunctionContext none;
  std::vector<Tensor> detached;
  for (const Tensor& input : inputs) detached.push_back(input.detach());
  return forward(none, detached);
}

}  // namespace plugrad

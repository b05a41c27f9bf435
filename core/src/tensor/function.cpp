// Turns a CustomFunction into Function nodes: forward runs on detached inputs, each float output
// becomes a Function node with its value as source, and the gradient pass calls backward here.
#include "plugrad/function.h"

#include "base/binding.h"
#include "base/trace/call_site.h"
#include "base/trace/trace.h"
#include "ir/user.h"
#include "jit/trace.h"
#include "tensor/function_gradient.h"
#include "tensor/handles.h"
#include "tensor/lazy_text.h"

namespace plugrad {

using engine::FunctionCall;
using tensor::Recorder;

/// Converts between the nodes of a call and the tensors of the user's functions.
class FunctionCaller {
 public:
  FunctionCaller(Recorder& r, Id node)
      : r_(r),
        arg_(r.graph()[node].arg),
        call_(r.session().functions()[function_call(arg_)]),
        sources_(r.graph().sources(node).begin(), r.graph().sources(node).end()) {}

  std::vector<Id> gradients(const autodiff::FunctionVjp& vjp) {
    const auto& function = *static_cast<const CustomFunction*>(call_->function.get());
    FunctionContext context;
    for (uint32_t i = 0; i < call_->input_count; ++i) {
      context.inputs_.push_back(tensor(sources_[1 + i]));
      context.needed_.push_back(vjp.wanted[1 + i]);
    }
    for (uint32_t i = 0; i < call_->saved_count; ++i)
      context.saved_.push_back(tensor(sources_[1 + call_->input_count + i]));
    std::vector<Tensor> flowing;
    for (uint32_t i = 0; i < call_->output_count; ++i) {
      context.outputs_.push_back(tensor(output(i)));
      flowing.push_back(flowing_to(i, vjp));
    }
    return checked(context, function.backward(context, flowing));
  }

 private:
  Tensor tensor(Id node) { return tensor::tensor_of(r_.session().make(node)); }

  Id value(uint32_t output) const {
    return sources_[1 + call_->input_count + call_->saved_count + output];
  }

  /// The node of an output; added again if the graph has dropped it.
  Id output(uint32_t number) {
    const Id own = value(number);
    if (!is_float(r_.dtype(own))) return own;
    std::vector<Id> sources = sources_;
    sources[0] = own;
    return r_.graph().add(Op::Function, r_.dtype(own), sources,
                          function_arg(function_call(arg_), number));
  }

  Tensor flowing_to(uint32_t number, const autodiff::FunctionVjp& vjp) {
    for (const auto& flow : vjp.outputs)
      if (function_output(r_.graph()[flow.node].arg) == number) return tensor(flow.gradient);
    const Id own = value(number);
    if (!is_float(r_.dtype(own))) return {};
    return tensor(r_.broadcast_to(r_.graph().constant(r_.dtype(own), 0.0), r_.shape(own)));
  }

  std::vector<Id> checked(const FunctionContext& context, const std::vector<Tensor>& given) {
    require(given.size() == call_->input_count,
            "[{}] backward returned {} gradients for {} inputs; return one an input, undefined "
            "where there is none",
            call_->name, given.size(), call_->input_count);
    std::vector<Id> nodes;
    for (size_t i = 0; i < given.size(); ++i)
      nodes.push_back(given[i].defined() ? checked(i, context.inputs()[i], given[i]) : kNoId);
    return nodes;
  }

  Id checked(size_t number, const Tensor& input, const Tensor& gradient) {
    Graph& g = r_.graph();
    Id node = tensor::state_of(gradient)->node;
    const Id source = tensor::state_of(input)->node;
    const DType wanted = g[source].dtype;
    require(is_float(wanted),
            "[{}] backward returned a gradient for input {}, which is {}; only "
            "floats have one, return an undefined Tensor",
            call_->name, number, name_of(wanted));
    const bool literal = g[node].op == Op::Const && r_.shape(node).empty();
    if (literal) node = r_.cast(node, wanted);
    require(g[node].dtype == wanted && (literal || r_.shape(node) == r_.shape(source)),
            "[{}] backward returned {} {} as the gradient of input {}, which is {} {}; return that "
            "shape and dtype, with reshape(), sum() or cast()",
            call_->name, name_of(strong(g[node].dtype)), tensor::lazy_text(r_.shape(node)), number,
            name_of(wanted), tensor::lazy_text(r_.shape(source)));
    return node;
  }

  Recorder& r_;
  const uint64_t arg_;
  const engine::FunctionCallPtr call_;  // keeps the call alive while user code runs
  const std::vector<Id> sources_;
};

autodiff::Context tensor::gradient_context(Recorder& r) {
  engine::Session& session = r.session();
  autodiff::Context context{r.graph(), session.shapes(), session.devices()};
  context.extents = r.extents();
  context.caller = r.function();
  context.function = [&r](const autodiff::FunctionVjp& vjp) {
    return FunctionCaller(r, vjp.outputs[0].node).gradients(vjp);
  };
  if (tracing() || has_places())
    context.differentiated = [&session](Id node, Id first) {
      session.note_place(first, session.place(node));
      if (tracing()) session.note_operation(first, trace::derivative_of(session.operation(node)));
    };
  return context;
}

namespace {

void require_defined(const std::string& name, const char* what,
                     const std::vector<Tensor>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i)
    require(tensors[i].defined(), "[{}] {} {} is undefined", name, what, i);
}

void note_use(const Tensor& t) {
  if (jit_detail::JitTrace* trace = jit_detail::JitTrace::active())
    trace->use(*tensor::state_of(t));
}

/// The nodes of the tensors; literals are cast to the dtype in which they are stored.
std::vector<Id> nodes_of(Recorder& r, const std::vector<Tensor>& tensors) {
  std::vector<Id> nodes;
  for (const Tensor& t : tensors) {
    note_use(t);
    const Id node = tensor::state_of(t)->node;
    nodes.push_back(r.cast(node, strong(r.dtype(node))));
  }
  return nodes;
}

/// New handles of the same values, so that a later assignment to the caller's tensors has no
/// effect.
std::vector<Tensor> aliases(const std::string& name, const std::vector<Tensor>& tensors) {
  Recorder r(name);
  std::vector<Tensor> result;
  for (const Tensor& t : tensors) {
    note_use(t);
    result.push_back(tensor::tensor_of(
        r.session().make(tensor::state_of(t)->node, tensor::state_of(t)->device)));
  }
  return result;
}

/// Adds a Function node for each float output. Its sources are the output's value, all inputs and
/// saved tensors (for backward), and all output values, so that each node can rebuild the others.
std::vector<Tensor> bind_outputs(const std::shared_ptr<const CustomFunction>& function,
                                 const std::vector<Tensor>& inputs,
                                 const std::vector<Tensor>& saved,
                                 const std::vector<Tensor>& outputs) {
  Recorder r(function->name);
  auto call = std::make_shared<FunctionCall>();
  call->name = function->name;
  call->input_count = static_cast<uint32_t>(inputs.size());
  call->saved_count = static_cast<uint32_t>(saved.size());
  call->output_count = static_cast<uint32_t>(outputs.size());
  call->function = function;
  const std::vector<Id> values = nodes_of(r, outputs);
  std::vector<Id> sources = {kNoId};
  for (const auto& part : {nodes_of(r, inputs), nodes_of(r, saved), values})
    sources.insert(sources.end(), part.begin(), part.end());
  const uint64_t number = r.session().functions().add(std::move(call));
  std::vector<Tensor> results;
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    sources[0] = values[i];
    const DType dtype = r.dtype(values[i]);
    const Id node = is_float(dtype)
                        ? r.graph().add(Op::Function, dtype, sources, function_arg(number, i))
                        : values[i];
    results.push_back(
        tensor::tensor_of(r.session().make(node, tensor::state_of(outputs[i])->device)));
  }
  return results;
}

}  // namespace

std::vector<Tensor> CustomFunction::operator()(const std::vector<Tensor>& given) const {
  require(forward && backward, "[{}] the function needs a forward and a backward", name);
  require_defined(name, "input", given);
  const std::vector<Tensor> inputs = aliases(name, given);
  FunctionContext context;
  for (const Tensor& t : inputs) context.inputs_.push_back(is_float(t.dtype()) ? t.detach() : t);
  const std::vector<Tensor> outputs = forward(context, context.inputs_);
  require(!outputs.empty(), "[{}] forward returned no tensors", name);
  require_defined(name, "output", outputs);
  require_defined(name, "saved tensor", context.saved_);
  require(inputs.size() + context.saved_.size() + outputs.size() < kMostOutputs - 1,
          "[{}] {} inputs, saved tensors and outputs are more than {}", name,
          inputs.size() + context.saved_.size() + outputs.size(), kMostOutputs - 2);
  const auto kept = std::make_shared<const CustomFunction>(CustomFunction{name, {}, backward});
  return bind_outputs(kept, inputs, context.saved_, outputs);
}

}  // namespace plugrad

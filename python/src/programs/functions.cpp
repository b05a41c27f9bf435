// Functions with a backward of the user's, scan, and variables.
#include "programs/functions.h"

#include "bind.h"
#include "docs.h"
#include "place.h"
#include "programs/tree.h"
#include "released.h"

namespace plugrad::python {

namespace {

std::vector<std::optional<Tensor>> or_none(const std::vector<Tensor>& tensors) {
  std::vector<std::optional<Tensor>> list;
  for (const Tensor& tensor : tensors)
    list.push_back(tensor.defined() ? std::optional(tensor) : std::nullopt);
  return list;
}

nb::tuple tuple_of(const std::vector<Tensor>& tensors) {
  nb::list list;
  for (std::optional<Tensor>& tensor : or_none(tensors)) list.append(nb::cast(tensor));
  return nb::tuple(list);
}

std::string name_of_function(nb::handle function) {
  return nb::cast<std::string>(nb::str(nb::getattr(function, "__name__", nb::str("function"))));
}

/// A function of tensors with its own backward.
class Function {
 public:
  Function(nb::object forward, nb::object backward, std::string name)
      : forward_(std::move(forward)), backward_(std::move(backward)), name_(std::move(name)) {}

  nb::object call(const nb::args& arguments, const nb::kwargs& keywords) const {
    const Place place;
    const std::vector<Tensor> inputs = inputs_of(arguments);
    const nb::object context = new_context();
    bool is_list = false;
    CustomFunction function{name_, {}, backward_of(name_, backward_, context)};
    function.forward = [&](FunctionContext& call, const std::vector<Tensor>& detached) {
      const CalledBack called;
      const CurrentCall current(context, call, &call);
      const nb::object made = forward_(context, *tuple_of(detached), **keywords);
      is_list = PyTuple_Check(made.ptr()) || PyList_Check(made.ptr());
      return tensors_of_result(made, "[" + name_ + "] the result of forward", false);
    };
    const std::vector<Tensor> results = function(inputs);
    return is_list ? nb::object(tuple_of(results)) : nb::cast(results.at(0));
  }

  const nb::object& forward() const { return forward_; }
  const std::string& name() const { return name_; }
  void set_backward(nb::object backward) { backward_ = std::move(backward); }

  template <class Visit>
  int visit(Visit&& visit) {
    if (const int stop = visit(forward_)) return stop;
    return visit(backward_);
  }
  void clear() { const nb::object forward = std::move(forward_), backward = std::move(backward_); }

 private:
  std::vector<Tensor> inputs_of(const nb::args& arguments) const {
    std::vector<Tensor> inputs;
    for (const nb::handle argument : arguments) {
      TensorLike input;
      if (!input.assign(argument))
        throw nb::type_error(("[" + name_ + "] input " + std::to_string(inputs.size()) + " is a " +
                              nb::cast<std::string>(argument.type().attr("__name__")) +
                              "; inputs are tensors, give other values by keyword")
                                 .c_str());
      inputs.push_back(input.get());
    }
    return inputs;
  }

  nb::object forward_, backward_;
  std::string name_;
};

void bind_context(nb::module_& module) {
  nb::class_<CallContext> made(module, "FunctionContext", nb::dynamic_attr(),
                               doc("FunctionContext"));
  made.def_prop_ro(
      "inputs", [](const CallContext& self) { return tuple_of(self.get().inputs()); },
      nb::sig("def inputs(self) -> tuple[Tensor, ...]"), doc("FunctionContext::inputs"));
  made.def_prop_ro(
      "outputs", [](const CallContext& self) { return tuple_of(self.get().outputs()); },
      nb::sig("def outputs(self) -> tuple[Tensor, ...]"), doc("FunctionContext::outputs"));
  made.def_prop_ro(
      "saved", [](const CallContext& self) { return tuple_of(self.get().saved()); },
      nb::sig("def saved(self) -> tuple[Tensor, ...]"), "The values that forward saved, in order.");
  made.def(
      "save",
      [](CallContext& self, const nb::args& values) {
        self.get();
        if (!self.forward) throw Error(ErrorKind::User, "[save] only forward can save values");
        for (const nb::handle value : values) self.forward->save(nb::cast<Tensor>(value));
      },
      nb::sig("def save(self, *values: Tensor) -> None"), doc("FunctionContext::save"));
  made.def(
      "needs_gradient",
      [](const CallContext& self, int64_t input) {
        if (self.forward || input < 0 || static_cast<size_t>(input) >= self.get().inputs().size())
          throw nb::index_error("[needs_gradient] an input's number, in backward, is expected");
        return self.get().needs_gradient(static_cast<size_t>(input));
      },
      "input"_a, doc("FunctionContext::needs_gradient"));
}

constexpr const char* kFunctionDoc =
    "A function of tensors with its own backward, like torch.autograd.Function.\n\n"
    "    @plugrad.function\n"
    "    def clip(ctx, x, limit=1.0):\n"
    "        return x.clamp(-limit, limit)\n\n"
    "    @clip.backward\n"
    "    def _(ctx, gradient):\n"
    "        return gradient  # identity\n\n"
    "    y = clip(x, limit=2.0)\n\n"
    "Positional arguments are tensors, arguments by keyword anything. forward gets the inputs "
    "without\n"
    "gradients and returns a tensor or a tuple of them; backward gets one gradient for each "
    "output,\n"
    "None for outputs that are not floats, and returns one for each input, or None where there is\n"
    "none. Both have the context of the call first: ctx.inputs, ctx.outputs, ctx.save(), "
    "ctx.saved,\n"
    "ctx.needs_gradient(i), and attributes of their own. A backward of tensor functions can be\n"
    "differentiated again. No gradient flows to tensors that forward captures. Errors: TypeError "
    "for\n"
    "other inputs and results; ValueError when backward returns a wrong number, shape or dtype;\n"
    "exceptions of both functions.";

void bind_function_class(nb::module_& module) {
  nb::class_<Function> made(module, "CustomFunction", nb::type_slots(gc_slots<Function>),
                            kFunctionDoc);
  made.def(
      "__init__",
      [](Function* self, nb::object forward, nb::object backward, std::optional<std::string> name) {
        if (!PyCallable_Check(forward.ptr()) ||
            !(backward.is_none() || PyCallable_Check(backward.ptr())))
          throw nb::type_error("[function] functions are expected");
        std::string known = name ? *name : name_of_function(forward);
        new (self) Function(std::move(forward), std::move(backward), std::move(known));
      },
      "forward"_a, "backward"_a.none() = nb::none(), "name"_a = nb::none(),
      nb::sig("def __init__(self, forward: Callable[..., Tensor | Sequence[Tensor]], backward: "
              "Callable[..., Any] | None = None, name: str | None = None) -> None"));
  made.def("__call__", &Function::call,
           nb::sig("def __call__(self, *inputs: TensorLike, **options: Any) -> Any"),
           doc("CustomFunction::operator()"));
  made.def(
      "backward",
      [](nb::handle self, nb::object backward) {
        if (!PyCallable_Check(backward.ptr()))
          throw nb::type_error("[function] backward is a function");
        nb::inst_ptr<Function>(self)->set_backward(std::move(backward));
        return nb::borrow(self);
      },
      "backward"_a, nb::sig("def backward(self, backward: Callable[..., Any]) -> CustomFunction"),
      "Sets the backward; a decorator.");
  made.def_prop_ro("name", &Function::name, "The prefix of error messages.");
  made.def_prop_ro(
      "__wrapped__", [](const Function& self) { return self.forward(); },
      nb::sig("def __wrapped__(self) -> Callable[..., Any]"), "The forward.");
  made.def("__repr__", [](const Function& self) { return "<function " + self.name() + ">"; });
  module.def(
      "function",
      [](nb::object forward, nb::object backward, nb::object name) {
        return nb::type<Function>()(forward, backward, name);
      },
      "forward"_a, "backward"_a.none() = nb::none(), "name"_a.none() = nb::none(),
      nb::sig("def function(forward: Callable[..., Tensor | Sequence[Tensor]], backward: "
              "Callable[..., Any] | None = None, name: str | None = None) -> CustomFunction"),
      kFunctionDoc);
}

/// The result of a step: a pair of containers of tensors.
ScanResult result_of_step(Flat& state, Flat& outputs, Numbers& numbers, nb::handle made) {
  if (!PyTuple_Check(made.ptr()) || nb::len(made) != 2)
    throw nb::type_error("[scan] the step returns a pair: the next state, and the outputs");
  put_result(state, numbers, nb::object(made[0]), "[scan] the state that the step returned");
  put_result(outputs, numbers, nb::object(made[1]), "[scan] the outputs that the step returned");
  return {state.tensors, outputs.tensors};
}

nb::tuple scan_objects(nb::handle step, nb::handle state, nb::handle inputs, bool reverse) {
  const Place place;
  Numbers numbers;
  Flat initial, elements, outputs;
  put_result(initial, numbers, state, "[scan] the state");
  put_result(elements, numbers, inputs, "[scan] the inputs");
  const ScanStep recorded = [&](const std::vector<Tensor>& before,
                                const std::vector<Tensor>& element) {
    const CalledBack called;
    Flat after;
    outputs = {};
    const ScanResult result = result_of_step(after, outputs, numbers,
                                             step(take_result({before, initial.words}, numbers),
                                                  take_result({element, elements.words}, numbers)));
    if (after.words != initial.words)
      throw nb::type_error("[scan] the step returned a state with other containers than it got");
    return result;
  };
  ScanResult result = scan(recorded, initial.tensors, elements.tensors, reverse);
  initial.tensors = std::move(result.state);
  outputs.tensors = std::move(result.outputs);
  return nb::make_tuple(take_result(initial, numbers), take_result(outputs, numbers));
}

void bind_scan(nb::module_& module) {
  module.def(
      "scan", scan_objects, "step"_a, "state"_a, "inputs"_a, "reverse"_a = false,
      nb::sig("def scan(step: Callable[[Any, Any], tuple[Any, Any]], state: Any, inputs: Any, "
              "reverse: bool = False) -> tuple[Any, Any]"),
      ("step(state, inputs) returns (state, outputs). All four are tensors, or nested lists, "
       "tuples, dictionaries and data classes of tensors. " +
       std::string(doc("scan")))
          .c_str());
}

void bind_variable(nb::module_& module) {
  nb::class_<Variable> made(module, "Variable", doc("Variable"));
  made.def(nb::init<std::string, int64_t, int64_t>(), "name"_a, "low"_a, "high"_a,
           doc("Variable::__init__"));
  made.def_prop_ro("name", &Variable::name, "The name in messages.");
  made.def_prop_ro("low", &Variable::low, "The least value.");
  made.def_prop_ro("high", &Variable::high, "The largest value.");
  made.def(
      "bind",
      [](const Variable& self, int64_t value, const DeviceLike& device) {
        const Place place;
        return self.bind(value, device.name);
      },
      "value"_a, "device"_a = nb::none(),
      nb::sig("def bind(self, value: int, device: str | None = None) -> Tensor"),
      doc("Variable::bind"));
  made.def(
      "limit",
      [](const Variable& self, const TensorLike& x, const AxisArgument<int64_t>& axis,
         nb::handle value) {
        const Place place;
        if (nb::isinstance<Tensor>(value))  // not as a number, which would compute it
          return self.limit(x.get(), axis.value, nb::cast<Tensor>(value));
        return self.limit(x.get(), axis.value, nb::cast<int64_t>(value));
      },
      "x"_a, "axis"_a, "value"_a,
      nb::sig("def limit(self, x: TensorLike, axis: int, value: int | Tensor) -> Tensor"),
      doc("Variable::limit"));
  made.def(
      "fit",
      [](const Variable& self, const TensorLike& x, const AxisArgument<int64_t>& axis) {
        const Place place;
        const Tensor tensor = x.get();
        const Released released;
        return self.fit(tensor, axis.value);
      },
      "x"_a, "axis"_a, nb::sig("def fit(self, x: TensorLike, axis: int) -> Tensor"),
      doc("Variable::fit"));
  made.def("__repr__", [](const Variable& self) {
    return "Variable(\"" + self.name() + "\", " + std::to_string(self.low()) + ", " +
           std::to_string(self.high()) + ")";
  });
}

}  // namespace

const FunctionContext& CallContext::get() const {
  if (!current)
    throw Error(ErrorKind::User,
                "[context] the call has ended; use the context in forward and "
                "backward only, and save() what backward needs");
  return *current;
}

CurrentCall::CurrentCall(nb::handle context, const FunctionContext& current,
                         FunctionContext* forward)
    : context_(*nb::inst_ptr<CallContext>(context)),
      outer_(std::exchange(context_, {forward, &current})) {}

CurrentCall::~CurrentCall() {
  context_ = outer_;
}

nb::object new_context() {
  return nb::cast(CallContext());
}

CustomFunction::Backward backward_of(const std::string& name, nb::object backward,
                                     nb::object context) {
  const auto kept =
      std::make_shared<const KeptObject>(nb::make_tuple(std::move(backward), std::move(context)));
  return [name, kept](const FunctionContext& call, const std::vector<Tensor>& gradients) {
    const CalledBack called;
    const nb::object function(kept->get()[0]), own(kept->get()[1]);
    if (function.is_none())
      throw Error(ErrorKind::User, "[" + name +
                                       "] the function has no backward: decorate one with @" +
                                       name + ".backward, or detach() its result");
    const CurrentCall current(own, call, nullptr);
    return tensors_of_result(function(own, *tuple_of(gradients)),
                             "[" + name + "] the result of backward", true);
  };
}

std::vector<Tensor> tensors_of_result(nb::handle result, const std::string& what,
                                      bool may_be_none) {
  std::vector<Tensor> tensors;
  const auto add = [&](nb::handle object) {
    TensorLike tensor;
    const bool is_none = may_be_none && object.is_none();
    if (!is_none && !tensor.assign(object))
      throw nb::type_error((what + " is a tensor" + (may_be_none ? " or None" : "") +
                            ", or a tuple of them, not " +
                            nb::cast<std::string>(object.type().attr("__name__")))
                               .c_str());
    tensors.push_back(tensor.get());
  };
  if (PyTuple_Check(result.ptr()) || PyList_Check(result.ptr()))
    for (const nb::handle each : result) add(each);
  else
    add(result);
  return tensors;
}

nb::object object_of_results(const std::vector<Tensor>& tensors) {
  return tensors.size() == 1 ? nb::cast(tensors[0]) : nb::object(tuple_of(tensors));
}

void bind_function_classes(nb::module_& module) {
  bind_context(module);
  bind_function_class(module);
  bind_scan(module);
  bind_variable(module);
}

}  // namespace plugrad::python

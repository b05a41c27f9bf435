// Optimisers and learning rates: plugrad.optim's classes and functions.
#include <nanobind/stl/function.h>

#include "bind.h"
#include "optimiser_classes.h"

namespace plugrad::python {

namespace {

void bind_optimiser(nb::module_& module) {
  nb::class_<optim::Optimizer> made(module, "Optimizer", doc("Optimizer"));
  made.def(
      "zero_grad", [](optim::Optimizer& self) { self.zero_grad(); },
      "Forgets the gradients of the parameters.");
  made.def_prop_ro(
      "parameters", [](const optim::Optimizer& self) { return self.parameters(); },
      nb::sig("def parameters(self, /) -> list[Tensor]"), "The tensors that a step updates.");
  made.def_prop_rw(
      "lr", &optim::Optimizer::learning_rate,
      [](optim::Optimizer& self, double lr) {
        const Released released;
        self.set_learning_rate(lr);
      },
      "The learning rate. A new one takes effect at the next step, without new compilation.");
  made.def("has_gradients", &optim::Optimizer::has_gradients, doc("Optimizer::has_gradients"));
  made.def(
      "shard_state",
      [](optim::Optimizer& self, std::string_view axes) {
        const Place place;
        const Released released;
        self.shard_state(axes);
      },
      "axes"_a, nb::sig("def shard_state(self, axes: str) -> None"), doc("Optimizer::shard_state"));
  made.def_static(
      "realize_recorded",
      [] {
        const Released released;
        optim::Optimizer::realize_recorded();
      },
      doc("Optimizer::realize_recorded"));
}

void bind_schedule(nb::module_& module) {
  nb::class_<optim::Schedule> made(module, "Schedule", "A learning rate for each step.");
  made.def(nb::init<std::function<double(int64_t)>>(), "rate"_a,
           "The schedule of a function from the number of a step to its rate.");
  made.def("__call__", &optim::Schedule::operator(), "step"_a,
           nb::sig("def __call__(self, step: int) -> float"), doc("Schedule::operator()"));
}

void bind_clipping(nb::module_& module) {
  module.def(
      "clip_grad_norm",
      [](const TensorList& parameters, double max_norm, double order) {
        const Place place;
        return optim::clip_grad_norm(parameters.get(), max_norm, order);
      },
      "parameters"_a, "max_norm"_a, "order"_a = 2.0,
      nb::sig("def clip_grad_norm(parameters: Sequence[Tensor], max_norm: float, order: float = "
              "2.0) -> Tensor"),
      doc("clip_grad_norm"));
  module.def(
      "clip_grad_value",
      [](const TensorList& parameters, double bound) {
        const Place place;
        optim::clip_grad_value(parameters.get(), bound);
      },
      "parameters"_a, "bound"_a,
      nb::sig("def clip_grad_value(parameters: Sequence[Tensor], bound: float) -> None"),
      doc("clip_grad_value"));
}

}  // namespace

void bind_optimisers(nb::module_& module) {
  nb::module_ made = module.def_submodule("_optim", "Optimisers and learning rates.");
  bind_optimiser(made);
  bind_schedule(made);
  bind_clipping(made);
  bind_optimiser_classes(made);
}

}  // namespace plugrad::python

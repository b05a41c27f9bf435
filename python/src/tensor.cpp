// The class Tensor: what Python has in a form of its own. All other methods are generated.
#include <sstream>

#include "arguments.h"
#include "bind.h"
#include "docs.h"
#include "exchange/arrays.h"
#include "exchange/host_values.h"
#include "place.h"

namespace plugrad::python {

namespace {

Tensor make_tensor(nb::handle data, std::optional<DType> dtype, const DeviceLike& device) {
  if (PyList_Check(data.ptr()) || PyTuple_Check(data.ptr()))
    return tensor_of_list(data, dtype, device.name);
  TensorLike value;
  Tensor* known = nullptr;
  if (nb::try_cast(data, known, false) && known) {
    value = TensorLike(*known);
  } else if (auto array = tensor_of_array(data, device.name)) {
    return dtype ? array->cast(*dtype) : *array;
  } else if (value.assign(data)) {  // a number: a tensor of its own, no weak one
    if (dtype) check_holds(*dtype, data);
    return Tensor::full({}, value.get(), dtype, device.name);
  } else {
    throw nb::type_error(
        ("a tensor is made from numbers, nested lists of numbers, and arrays, not from " +
         nb::cast<std::string>(nb::str(data.type())))
            .c_str());
  }
  // A tensor of its own also where device and dtype are those of `data`.
  const Tensor own = value.get().clone();
  const Tensor moved = device.name.empty() ? own : own.to(device.name);
  return dtype ? moved.cast(*dtype) : moved;
}

std::optional<Tensor> if_defined(Tensor tensor) {
  return tensor.defined() ? std::optional(std::move(tensor)) : std::nullopt;
}

std::string repr(const Tensor& tensor) {
  if (!tensor.is_realized()) {
    std::ostringstream out;
    out << tensor;
    return out.str();
  }
  return to_string(tensor);
}

void bind_properties(nb::class_<Tensor>& tensor) {
  tensor.def_prop_ro("shape", &Tensor::shape, nb::sig("def shape(self) -> tuple[int, ...]"),
                     doc("Tensor::shape"));
  tensor.def_prop_ro("dtype", &Tensor::dtype, nb::sig("def dtype(self) -> dtype"),
                     doc("Tensor::dtype"));
  tensor.def_prop_ro("device", &Tensor::device, doc("Tensor::device"));
  tensor.def_prop_ro("ndim", &Tensor::ndim, doc("Tensor::ndim"));
  tensor.def_prop_ro("is_realized", &Tensor::is_realized, "Whether the value has been computed.");
  tensor.def_prop_ro(
      "T",
      [](const Tensor& self) {
        std::vector<int64_t> order(static_cast<size_t>(self.ndim()));
        for (size_t i = 0; i < order.size(); ++i)
          order[i] = static_cast<int64_t>(order.size() - 1 - i);
        return self.permute(order);
      },
      "The tensor with its axes in reverse order.");
  tensor.def_prop_rw(
      "requires_grad", &Tensor::requires_grad,
      [](Tensor& self, bool on) { self.requires_grad_(on); }, doc("Tensor::requires_grad_"));
  tensor.def_prop_rw(
      "grad", [](const Tensor& self) { return if_defined(self.grad()); },
      [](Tensor& self, const OptionalTensor& value) {
        if (value.get().defined())
          self.set_grad(value.get());
        else
          self.zero_grad();
      },
      nb::arg("value").none(), "The gradient that backward() added up, or None.");
}

void bind_creation(nb::class_<Tensor>& tensor) {
  tensor.def(
      "__init__",
      [](Tensor* self, nb::handle data, std::optional<DType> dtype, const DeviceLike& device,
         bool requires_grad) {
        const Place place;
        new (self) Tensor(make_tensor(data, dtype, device));
        if (requires_grad) self->requires_grad_();
      },
      "data"_a.none(), "dtype"_a = nb::none(), "device"_a = nb::none(), "requires_grad"_a = false,
      nb::sig("def __init__(self, data: Any, dtype: DTypeLike | None = None, device: str | None = "
              "None, "
              "requires_grad: bool = False) -> None"),
      "A tensor of a number, nested lists of numbers, an array (NumPy, PyTorch, JAX: its values "
      "are "
      "copied), or another tensor, whose value it has: no assignment to one changes the other, and "
      "requires_grad marks the new one. Lists of integers are int32, or int64 where a value needs "
      "it; lists "
      "with floats are float32; arrays keep their dtype. Errors: ValueError for lists of unequal "
      "lengths, OverflowError for integers beyond 64 bits, TypeError for what holds no numbers.");
  tensor.def_static(
      "random_state",
      [] {
        const RandomState state = Tensor::random_state();
        return std::pair(state.seed, state.counter);
      },
      doc("Tensor::random_state"));
  tensor.def_static(
      "set_random_state",
      [](const std::pair<uint64_t, uint64_t>& state) {
        Tensor::set_random_state({state.first, state.second});
      },
      "state"_a, doc("Tensor::random_state"));
}

void bind_representation(nb::class_<Tensor>& tensor) {
  tensor.def(
      "to",
      [](const Tensor& self, const DTypeOrDevice& target, std::optional<DType> dtype,
         const DeviceLike& device) {
        const Place place;
        Tensor made = self;
        for (const std::string& name : {target.device, device.name})
          if (!name.empty()) made = made.to(name);
        for (const std::optional<DType>& wanted : {target.dtype, dtype})
          if (wanted) made = made.cast(*wanted);
        return made;
      },
      "target"_a = nb::none(), nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none(),
      nb::sig("def to(self, target: DTypeLike | None = None, *, dtype: DTypeLike | None = None, "
              "device: str | None = None) -> Tensor"),
      "The tensor in another dtype, on another device, or both: x.to(\"float16\"), "
      "x.to(\"CUDA\").");
  tensor.def(
      "rearrange",
      [](const Tensor& self, std::string_view pattern, const nb::kwargs& sizes) {
        const Place place;
        std::vector<std::pair<std::string, int64_t>> known;
        for (const auto& [name, size] : sizes) {
          const auto number = integer_of_object(size);
          if (!number) throw nb::type_error("[rearrange] sizes of axes are integers");
          known.emplace_back(nb::cast<std::string>(name), *number);
        }
        return self.rearrange(pattern, known);
      },
      "pattern"_a, "sizes"_a, nb::sig("def rearrange(self, pattern: str, **sizes: int) -> Tensor"),
      doc("Tensor::rearrange"));
  tensor.def("__repr__", repr);
  tensor.def("__str__", [](const Tensor& self) { return to_string(self); });
}

void bind_autograd(nb::class_<Tensor>& tensor) {
  tensor.def(
      "backward",
      [](const Tensor& self, const OptionalTensor& gradient, bool retain_graph) {
        const Place place;
        const Tensor seed = gradient.get();
        const Released released;
        if (seed.defined())
          self.backward(seed, retain_graph);
        else
          self.backward(retain_graph);
      },
      "gradient"_a = nb::none(), "retain_graph"_a = false,
      nb::sig("def backward(self, gradient: TensorLike | None = None, retain_graph: bool = False) "
              "-> None"),
      doc("Tensor::backward"));
}

}  // namespace

void bind_tensor(nb::module_& module) {
  nb::class_<Tensor> tensor(
      module, "Tensor",
      "A lazily recorded n-dimensional array. Nothing runs before realize() or a "
      "read of its values.",
      nb::type_slots(buffer_slots()));
  bind_creation(tensor);
  bind_properties(tensor);
  bind_representation(tensor);
  bind_autograd(tensor);
  bind_values(tensor);
  bind_kernel_methods(tensor);
  bind_uop_methods(tensor);
  bind_operators(tensor);
  bind_indexing(tensor);
  bind_array_api(tensor);
  bind_sharding_methods(tensor);
  bind_exchange(module, tensor);
  bind_tensor_methods(tensor);
  module.def(
      "gradient",
      [](const Tensor& loss, const TensorList& targets, const OptionalTensor& seed) {
        const Place place;
        return gradient(loss, targets.get(), seed.get());
      },
      "loss"_a, "targets"_a, "seed"_a = nb::none(),
      nb::sig("def gradient(loss: Tensor, targets: Sequence[Tensor], seed: TensorLike | None = "
              "None) -> list[Tensor]"),
      doc("gradient"));
  module.def(
      "realize",
      [](const nb::args& tensors) {
        std::vector<Tensor> list;
        for (const nb::handle each : tensors) {
          Tensor* tensor = nullptr;
          if (!nb::try_cast(each, tensor, false) || !tensor)
            throw nb::type_error("[realize] takes tensors");
          list.push_back(*tensor);
        }
        const Released released;
        Tensor::realize(list);
      },
      nb::sig("def realize(*tensors: Tensor) -> None"),
      "Computes these tensors together, in one plan.");
}

}  // namespace plugrad::python

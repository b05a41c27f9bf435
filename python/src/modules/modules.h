// Shared by the bindings of layers and optimisers: attributes that are tensors or layers, the state
// of a C++ module, and copies of it.
#pragma once

#include <nanobind/stl/array.h>
#include <nanobind/stl/tuple.h>

#include <array>
#include <new>
#include <tuple>
#include <utility>

#include "arguments.h"
#include "docs.h"
#include "place.h"
#include "plugrad/plugrad.h"

namespace plugrad::python {

/// h and c of an LSTM, as a pair.
using RecurrentState = std::pair<TensorLike, TensorLike>;
inline nn::LSTMCell::State state_of(const std::optional<RecurrentState>& given) {
  if (!given) return {};
  return {given->first.get(), given->second.get()};
}

using TensorPair = std::tuple<Tensor, Tensor>;
inline TensorPair as_tuple(const nn::LSTMCell::State& state) {
  return {state.h, state.c};
}
inline TensorPair as_tuple(const nn::GRU::Result& result) {
  return {result.output, result.state};
}
inline std::tuple<Tensor, TensorPair> as_tuple(const nn::LSTM::Result& result) {
  return {result.output, as_tuple(result.state)};
}

// The values of attributes in Python.
template <class T>
T as_python(const T& value) {
  return value;
}
inline std::vector<int64_t> as_python(const PerAxis& value) {
  return value.list();
}
nb::object as_python(const Padding& value);

/// A new object in the memory of a Python object.
template <class T, class... Arguments>
void construct(T* self, Arguments&&... arguments) {
  new (self) T(std::forward<Arguments>(arguments)...);
}

/// The C++ object of a Python object. Errors: TypeError for another class, or one whose __init__
/// has not run.
template <class T>
T& object_of(nb::handle self) {
  if (nb::isinstance<T>(self) && nb::inst_ready(self)) return *nb::inst_ptr<T>(self);
  throw nb::type_error("the object is of another class, or super().__init__() was not called");
}

/// Names and tensors as a list of pairs.
nb::list list_of_state(const nn::StateDict& state);
/// The same as a dictionary, and back.
nb::dict dict_of_state(const nn::StateDict& state);
nn::StateDict state_of_dict(const nb::dict& dict);
/// "Linear(weight (128, 784) f32, bias (128) f32)".
std::string describe_module(nb::handle module, const nn::StateDict& state);

/// Called on the handles of a copied module: those whose original was copied before, as part of
/// another object of the same copy.deepcopy(), become handles of that copy; `memo` is its memory.
void share_copies(const std::vector<const Tensor*>& originals,
                  const std::vector<const Tensor*>& copies, nb::dict memo);
/// The object of the class of `original` at whose memory a C++ object is made, and then finish().
nb::object allocate_like(nb::handle original);
/// Marks the C++ object as made, and copies the attributes of a Python subclass.
void finish_copy(nb::handle copy, nb::handle original, nb::handle memo);

template <class Module>
std::vector<const Tensor*> handles_of(const Module& module) {
  std::vector<const Tensor*> handles;
  nn::StateVisitor visitor(handles, nullptr, nullptr);
  visitor.visit_module(module);
  return handles;
}

/// copy.deepcopy (with a memo) has tensors of its own, copy.copy shares them.
template <class Module>
nb::object copy_of(nb::handle self, nb::handle memo) {
  const Module& original = object_of<Module>(self);
  const nb::object made = allocate_like(self);
  Module* const copy = new (nb::inst_ptr<Module>(made)) Module(original);
  const std::vector<const Tensor*> from = handles_of(original), to = handles_of(*copy);
  if (memo.is_none())
    for (size_t i = 0; i < to.size(); ++i) *const_cast<Tensor*>(to[i]) = *from[i];
  else
    share_copies(from, to, nb::borrow<nb::dict>(memo));
  finish_copy(made, self, memo);
  return made;
}

/// Binds the method that nn.state_dict() calls.
template <class Module, class... Bases>
void bind_state(nb::class_<Module, Bases...>& made) {
  made.def(
      "_state", [](const Module& self) { return list_of_state(nn::state_dict(self)); },
      nb::sig("def _state(self) -> list[tuple[str, Tensor]]"));
}

/// state_dict() and load_state_dict(), as PyTorch's optimisers have them.
template <class Optimiser, class... Bases>
void bind_optimiser_state(nb::class_<Optimiser, Bases...>& made) {
  bind_state(made);
  made.def(
      "state_dict", [](const Optimiser& self) { return dict_of_state(nn::state_dict(self)); },
      nb::sig("def state_dict(self) -> dict[str, Tensor]"),
      "The tensors of the state by name: nn.state_dict(self).");
  made.def(
      "load_state_dict",
      [](const Optimiser& self, const nb::dict& state) {
        const Place place;
        const nn::StateDict target = nn::state_dict(self), source = state_of_dict(state);
        const Released released;
        nn::load_state(target, source);
      },
      "state"_a, nb::sig("def load_state_dict(self, state: dict[str, Any]) -> None"),
      "Assigns the tensors of a state: nn.load_state_dict(self, state).");
}

/// Names that pickling uses: the arguments of a layer's constructor without a default, its attributes
/// that are numbers, and those that are tensors or layers.
struct ModuleParts {
  std::vector<std::string> required, values, parts;
};

template <class Module>
void bind_module(nb::class_<Module>& made, const ModuleParts& parts) {
  bind_state(made);
  made.def_static(
      "_parts", [parts] { return std::tuple(parts.required, parts.values, parts.parts); },
      nb::sig("def _parts() -> tuple[list[str], list[str], list[str]]"));
  made.def(
      "__copy__", [](nb::handle self) { return copy_of<Module>(self, nb::none()); },
      nb::sig("def __copy__(self) -> Any"));
  made.def(
      "__deepcopy__", [](nb::handle self, nb::dict memo) { return copy_of<Module>(self, memo); },
      "memo"_a, nb::sig("def __deepcopy__(self, memo: dict[Any, Any]) -> Any"));
  made.def("__repr__", [](nb::handle self) {
    return describe_module(self, nn::state_dict(object_of<Module>(self)));
  });
}

/// An attribute that is None where the tensor is undefined.
template <auto member, class Module>
void def_tensor(nb::class_<Module>& made, const char* name, const char* getter,
                const char* setter) {
  made.def_prop_rw(
      name,
      [](const Module& self) {
        const Tensor& tensor = self.*member;
        return tensor.defined() ? std::optional(tensor) : std::nullopt;
      },
      [](Module& self, const OptionalTensor& value) { self.*member = value.get(); },
      nb::arg("value").none(), nb::for_getter(nb::sig(getter)), nb::for_setter(nb::sig(setter)));
}

/// An attribute that is a layer. The layer that is assigned shares its tensors with the attribute.
template <auto member, class Module>
void def_layer(nb::class_<Module>& made, const char* name) {
  using Layer = std::remove_cvref_t<decltype(std::declval<Module&>().*member)>;
  made.def_prop_rw(
      name, [](Module& self) -> Layer& { return self.*member; },
      [](Module& self, const Layer& value) {
        self.*member = value;
        const std::vector<const Tensor*> from = handles_of(value), to = handles_of(self.*member);
        for (size_t i = 0; i < to.size(); ++i) *const_cast<Tensor*>(to[i]) = *from[i];
      },
      nb::for_getter(nb::rv_policy::reference_internal));
}

/// The handle with a name that the module computes; null if there is none.
template <class Module>
Tensor* find_tensor(const Module& module, std::string_view name) {
  size_t i = 0;
  const std::vector<const Tensor*> handles = handles_of(module);
  for (const auto& [known, tensor] : nn::state_dict(module)) {
    while (i < handles.size() && !handles[i]->defined()) ++i;  // no part of the state
    if (known == name) return const_cast<Tensor*>(handles[i]);
    ++i;
  }
  return nullptr;
}

/// Attributes for tensors whose names the module computes: lstm.weight_ih_l0.
template <class Module>
void def_named_tensors(nb::class_<Module>& made) {
  made.def(
      "__getattr__",
      [](const Module& self, const char* name) {
        if (const Tensor* const tensor = find_tensor(self, name)) return *tensor;
        throw nb::attribute_error(name);
      },
      "name"_a, nb::sig("def __getattr__(self, name: str) -> Tensor"));
  made.def(
      "__setattr__",
      [](nb::handle self, nb::handle name, nb::handle value) {
        const bool is_made = nb::isinstance<Module>(self) && nb::inst_ready(self);
        Tensor* const tensor =
            is_made ? find_tensor(object_of<Module>(self), nb::cast<std::string>(name)) : nullptr;
        if (!tensor) {
          if (PyObject_GenericSetAttr(self.ptr(), name.ptr(), value.ptr()) != 0)
            throw nb::python_error();
          return;
        }
        TensorLike given;
        if (!given.assign(value)) throw nb::type_error("a weight is a tensor or an array");
        *tensor = given.get();
      },
      "name"_a, nb::arg("value").none(),
      nb::sig("def __setattr__(self, name: str, value: TensorLike) -> None"));
}

}  // namespace plugrad::python

// Turns tensors into pickles. pickle stores an object once; handles of one tensor (tied weights) are
// several objects in Python, which are therefore pickled as handles of one PickledTensor:
//   {"a": weight, "b": weight of another handle}   ->   both: tensor_of(PickledTensor 1)
#include "exchange/pickles.h"

#include "arguments.h"
#include "exchange/held_objects.h"
#include "exchange/host_values.h"
#include "plugrad/nn.h"

namespace plugrad::python {

namespace {

struct PickledTensor {
  Tensor tensor;
};

/// The PickledTensor of a tensor, while pickle keeps one.
nb::object pickled(const Tensor& tensor) {
  static PyObject* const kept =  // by identity, which is unique while the value lives
      nb::module_::import_("weakref").attr("WeakValueDictionary")().release().ptr();
  const nb::handle known = kept;
  const nb::int_ key(reinterpret_cast<uintptr_t>(nn::identity_of(tensor)));
  nb::object found = known.attr("get")(key);
  if (found.is_none()) {
    found = nb::cast(PickledTensor{tensor});
    known[key] = found;
  }
  return found;
}

nb::object function_named(const char* name) {
  return nb::module_::import_("plugrad._plugrad").attr(name);
}

/// The bytes of the values, and what is needed to read them.
nb::tuple reduced_values(const PickledTensor& self) {
  const Tensor& tensor = self.tensor;
  const HostValues values = *values_of(tensor, Copying::IfNeeded);
  return nb::make_tuple(
      function_named("_from_bytes"),
      nb::make_tuple(nb::bytes(values.data, values.size_bytes), tensor.bound_shape(),
                     strong(tensor.dtype()), tensor.requires_grad()));
}

PickledTensor from_bytes(const nb::bytes& bytes, const std::vector<int64_t>& shape, DType dtype,
                         bool requires_grad) {
  const std::span view(reinterpret_cast<const std::byte*>(bytes.c_str()), bytes.size());
  Tensor tensor = Tensor::from_bytes(view, shape, dtype, {}, hold(bytes));
  if (requires_grad) tensor.requires_grad_();
  return {tensor};
}

}  // namespace

void bind_pickles(nb::module_& module, nb::class_<Tensor>& tensor) {
  nb::class_<PickledTensor>(module, "_PickledTensor", nb::is_weak_referenceable(),
                            "What a pickle stores once for all handles of a tensor.")
      .def("__reduce__", reduced_values, nb::sig("def __reduce__(self) -> tuple[Any, ...]"));
  module.def("_from_bytes", from_bytes);
  module.def("_from_pickled", [](const PickledTensor& pickled) { return pickled.tensor; });
  tensor.def(
      "__reduce__",
      [](const Tensor& self) {
        return nb::make_tuple(function_named("_from_pickled"), nb::make_tuple(pickled(self)));
      },
      nb::sig("def __reduce__(self) -> tuple[Any, ...]"));
}

}  // namespace plugrad::python

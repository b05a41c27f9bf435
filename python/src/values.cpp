// Reading values: numbers, lists and arrays.
#include "arguments.h"
#include "bind.h"
#include "docs.h"
#include "exchange/arrays.h"
#include "place.h"

namespace plugrad::python {

namespace {

template <class T>
T item(const Tensor& tensor) {
  const Place place;
  const Released released;
  return tensor.item<T>();
}

nb::object number(const Tensor& tensor) {
  const DType dtype = tensor.dtype();
  if (dtype == DType::Bool) return nb::bool_(item<bool>(tensor));
  if (is_float(dtype)) return nb::float_(item<double>(tensor));
  if (dtype == DType::U64) return nb::int_(item<uint64_t>(tensor));
  return nb::int_(item<int64_t>(tensor));
}

bool truth(const Tensor& tensor) {
  if (tensor.numel() != 1)
    throw nb::value_error(
        "a tensor of several elements is neither true nor false: use (a > 0).all() or (a > "
        "0).any(), "
        "plugrad.where(a > 0, x, y) to choose elements, or `is None` to ask whether there is a "
        "tensor");
  return item<double>(tensor) != 0.0;
}

int64_t index(const Tensor& tensor) {
  if (tensor.dtype() == DType::Bool || is_float(tensor.dtype()) || tensor.numel() != 1)
    throw nb::type_error("only a tensor of one integer is an index");
  return item<int64_t>(tensor);
}

}  // namespace

void bind_values(nb::class_<Tensor>& tensor) {
  tensor.def(
      "realize",
      [](Tensor& self) -> Tensor& {
        const Released released;
        self.realize();
        return self;
      },
      nb::rv_policy::none, doc("Tensor::realize"));
  tensor.def("item", number, nb::sig("def item(self) -> bool | int | float"),
             "The only element, as a Python number. Errors: ValueError unless there is one.");
  tensor.def("tolist", list_of_tensor, nb::sig("def tolist(self) -> Any"),
             "The values in nested lists; a number for shape ().");
  tensor.def(
      "numpy", array_of_tensor, "copy"_a.none() = true,
      nb::sig("def numpy(self, copy: bool | None = True) -> NDArray[Any]"),
      "The values as a NumPy array of the same shape and dtype (bfloat16 and 8-bit floats are "
      "ml_dtypes'). copy=None: a read-only view without a copy, where the host can read the "
      "memory. copy=False: such a view, or ValueError.");
  tensor.def(
      "__array__",
      [](const Tensor& self, nb::handle dtype, std::optional<bool> copy) {
        const nb::object array = array_of_tensor(self, copy);
        if (dtype.is_none() || array.attr("dtype").equal(dtype)) return array;
        if (copy && !*copy)
          throw nb::value_error("another dtype needs a copy: leave out copy=False");
        return nb::object(array.attr("astype")(dtype));
      },
      "dtype"_a = nb::none(), "copy"_a.none() = nb::none(),
      nb::sig("def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]"));
  tensor.def("__bool__", truth);
  tensor.def("__int__", [](const Tensor& self) { return nb::int_(number(self)); });
  tensor.def("__float__", [](const Tensor& self) { return item<double>(self); });
  tensor.def("__index__", index);
  tensor.def("__len__", [](const Tensor& self) {
    if (self.ndim() == 0) throw nb::type_error("a tensor of shape () has no length");
    return self.size(0);
  });
}

}  // namespace plugrad::python

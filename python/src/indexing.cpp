// x[...] and x[...] = value by NumPy's rules.
#include "arguments.h"
#include "bind.h"
#include "exchange/arrays.h"
#include "place.h"

namespace plugrad::python {

namespace {

std::optional<int64_t> bound(nb::handle value) {
  if (value.is_none()) return {};
  if (const auto number = integer_of_object(value)) return number;
  throw nb::type_error("bounds of a slice are integers or None");
}

Slice slice_of(nb::handle object) {
  const std::optional<int64_t> step = bound(object.attr("step"));
  return {bound(object.attr("start")), bound(object.attr("stop")), step.value_or(1)};
}

/// A mask stands for the indices of its true elements, one list for each of its axes.
void add_mask(const Tensor& mask, std::vector<Index>& indices) {
  if (mask.ndim() == 0) throw nb::index_error("a single bool is no index");
  const Tensor rows = mask.nonzero();
  for (int64_t axis = 0; axis < mask.ndim(); ++axis)
    indices.emplace_back(rows.slice(1, {axis, axis + 1}).squeeze(1));
}

void add_tensor(const Tensor& tensor, std::vector<Index>& indices) {
  if (tensor.dtype() == DType::Bool)
    add_mask(tensor, indices);
  else if (is_float(tensor.dtype()))
    throw nb::index_error("indices are integers, bools, slices, None or ..., not floats");
  else
    indices.emplace_back(tensor);
}

void add_index(nb::handle object, std::vector<Index>& indices) {
  PyObject* const o = object.ptr();
  Tensor* tensor = nullptr;
  if (object.is_none())
    indices.emplace_back(kNewAxis);
  else if (o == Py_Ellipsis)
    indices.emplace_back(kEllipsis);
  else if (PySlice_Check(o))
    indices.emplace_back(slice_of(object));
  else if (nb::try_cast(object, tensor, false) && tensor)
    add_tensor(*tensor, indices);
  else if (const auto number = integer_of_object(object))
    indices.emplace_back(*number);
  else if (PyList_Check(o) || PyTuple_Check(o))
    add_tensor(
        nb::len(object) == 0 ? Tensor::empty({0}, DType::I32) : tensor_of_list(object, {}, {}),
        indices);
  else if (const auto array = tensor_of_array(object))
    add_tensor(*array, indices);
  else
    throw nb::index_error(
        "indices are integers, bools, slices, None, ..., lists, arrays or tensors");
}

std::vector<Index> indices_of(nb::handle object) {
  std::vector<Index> indices;
  if (PyTuple_Check(object.ptr()))
    for (const nb::handle each : object) add_index(each, indices);
  else
    add_index(object, indices);
  return indices;
}

}  // namespace

void bind_indexing(nb::class_<Tensor>& tensor) {
  tensor.def(
      "__getitem__",
      [](const Tensor& self, nb::handle index) {
        const Place place;
        return self.index(indices_of(index));
      },
      "index"_a.none(), nb::sig("def __getitem__(self, index: IndexLike) -> Tensor"),
      "Elements by integers, slices, None, ..., lists, bool masks and tensors, by NumPy's rules.");
  tensor.def(
      "__setitem__",
      [](Tensor& self, nb::handle index, const TensorLike& value) {
        const Place place;
        self.set_index(indices_of(index), value.get());
      },
      "index"_a.none(), "value"_a,
      nb::sig("def __setitem__(self, index: IndexLike, value: TensorLike) -> None"),
      "Assigns to elements; every reference to the tensor sees the change.");
  tensor.def(
      "__iter__",
      [](const Tensor& self) {
        if (self.ndim() == 0)
          throw nb::type_error("a tensor of shape () has no elements to iterate over");
        nb::list rows;
        for (int64_t i = 0; i < self.size(0); ++i) rows.append(self.index({Index(i)}));
        return nb::iter(rows);
      },
      nb::sig("def __iter__(self) -> Iterator[Tensor]"));
}

}  // namespace plugrad::python

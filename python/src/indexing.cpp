// x[...] and x[...] = value by NumPy's rules.
#include "arguments.h"
#include "bind.h"
#include "exchange/arrays.h"
#include "place.h"

namespace plugrad::python {

namespace {

/// Bounds beyond 64 bits are those of the longest axis, as for Python's lists.
std::optional<int64_t> bound(nb::handle value) {
  if (value.is_none()) return {};
  if (!PyIndex_Check(value.ptr())) throw nb::type_error("bounds of a slice are integers or None");
  const Py_ssize_t number = PyNumber_AsSsize_t(value.ptr(), nullptr);
  if (number == -1 && PyErr_Occurred()) throw nb::python_error();
  return number;
}

Slice slice_of(nb::handle object) {
  const std::optional<int64_t> step = bound(object.attr("step"));
  return {bound(object.attr("start")), bound(object.attr("stop")), step.value_or(1)};
}

/// The parts of x[…] for a tensor of a known shape.
class Indices {
 public:
  Indices(const Tensor& of, nb::handle object) : shape_(of.shape()) {
    if (!PyTuple_Check(object.ptr())) {
      add(object);
    } else {
      for (const nb::handle each : object) add(each);
    }
    check_masks();
  }
  const std::vector<Index>& get() const { return indices_; }

 private:
  void add(nb::handle object);
  void add_tensor(const Tensor& tensor);
  void add_mask(const Tensor& mask);
  void check_masks() const;

  Shape shape_;
  std::vector<Index> indices_;
  std::vector<std::pair<int64_t, Shape>> masks_;  // the first axis of each, and its shape
  int64_t axes_ = 0;                              // that the indices so far take
  std::optional<int64_t> ellipsis_;               // axes in front of "..."
};

/// A mask stands for the indices of its true elements, one list for each of its axes.
void Indices::add_mask(const Tensor& mask) {
  if (mask.ndim() == 0) throw nb::index_error("a single bool is an index only alone: x[mask]");
  masks_.emplace_back(axes_, mask.shape());
  axes_ += mask.ndim();
  const Tensor rows = mask.nonzero();
  for (int64_t axis = 0; axis < mask.ndim(); ++axis)
    indices_.emplace_back(rows.slice(1, {axis, axis + 1}).squeeze(1));
}

void Indices::add_tensor(const Tensor& tensor) {
  if (tensor.dtype() == DType::Bool) return add_mask(tensor);
  if (is_float(tensor.dtype()))
    throw nb::index_error("indices are integers, bools, slices, None or ..., not floats");
  ++axes_;
  indices_.emplace_back(tensor);
}

std::optional<int64_t> integer_index(nb::handle object) {
  try {
    return integer_of_object(object);
  } catch (const std::overflow_error& error) {
    throw nb::index_error(error.what());
  }
}

void Indices::add(nb::handle object) {
  PyObject* const o = object.ptr();
  Tensor* tensor = nullptr;
  if (object.is_none()) {
    indices_.emplace_back(kNewAxis);
  } else if (o == Py_Ellipsis) {
    ellipsis_ = axes_;
    indices_.emplace_back(kEllipsis);
  } else if (PySlice_Check(o)) {
    ++axes_;
    indices_.emplace_back(slice_of(object));
  } else if (nb::try_cast(object, tensor, false) && tensor) {
    add_tensor(*tensor);
  } else if (const auto number = integer_index(object)) {
    ++axes_;
    indices_.emplace_back(*number);
  } else if (PyList_Check(o) || PyTuple_Check(o)) {
    add_tensor(nb::len(object) == 0 ? Tensor::empty({0}, DType::I32)
                                    : tensor_of_list(object, {}, {}));
  } else if (const auto array = tensor_of_array(object)) {
    add_tensor(*array);
  } else {
    throw nb::index_error(
        "indices are integers, bools, slices, None, ..., lists, arrays or tensors");
  }
}

void Indices::check_masks() const {
  const auto rank = static_cast<int64_t>(shape_.size());
  if (axes_ > rank) return;  // reported with the shape by index()
  for (const auto& [first, sizes] : masks_) {
    const int64_t at = ellipsis_ && first >= *ellipsis_ ? first + rank - axes_ : first;
    for (size_t i = 0; i < sizes.size(); ++i)
      if (shape_[static_cast<size_t>(at) + i] != sizes[i])
        throw nb::index_error(("a mask of shape " + to_string(sizes) + " does not fit axis " +
                               std::to_string(at + static_cast<int64_t>(i)) + " of " +
                               to_string(shape_))
                                  .c_str());
  }
}

/// A bool tensor of shape () as the whole index: all of x, as one row, or none of it.
const Tensor* single_mask(nb::handle index) {
  Tensor* tensor = nullptr;
  const bool is_one = nb::try_cast(index, tensor, false) && tensor &&
                      tensor->dtype() == DType::Bool && tensor->ndim() == 0;
  return is_one ? tensor : nullptr;
}

Tensor get_item(const Tensor& self, nb::handle index) {
  const Place place;
  if (const Tensor* mask = single_mask(index)) {
    const Tensor row = self.unsqueeze(0);
    return row.index(Indices(row, nb::cast(mask->unsqueeze(0))).get());
  }
  return self.index(Indices(self, index).get());
}

void set_item(Tensor& self, nb::handle index, const TensorLike& value) {
  const Place place;
  if (const Tensor* mask = single_mask(index)) {
    const bool is_set = [&] {
      const Released released;
      return mask->item<bool>();
    }();
    if (is_set) self.set_index({kNewAxis}, value.get());
    return;
  }
  self.set_index(Indices(self, index).get(), value.get());
}

}  // namespace

void bind_indexing(nb::class_<Tensor>& tensor) {
  tensor.def(
      "__getitem__", get_item, "index"_a.none(),
      nb::sig("def __getitem__(self, index: IndexLike) -> Tensor"),
      "Elements by integers, slices, None, ..., lists, bool masks and tensors, by NumPy's rules.");
  tensor.def("__setitem__", set_item, "index"_a.none(), "value"_a,
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

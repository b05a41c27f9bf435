// x[...] and x[...] = value by NumPy's rules.
#include <algorithm>
#include <numeric>

#include "arguments.h"
#include "bind.h"
#include "docs.h"
#include "exchange/arrays.h"
#include "place.h"

namespace plugrad::python {

namespace {

/// Bounds beyond 64 bits are those of the longest axis, as for Python's lists.
std::optional<int64_t> fixed_bound(nb::handle value) {
  if (value.is_none()) return {};
  if (!PyIndex_Check(value.ptr())) throw nb::type_error("bounds of a slice are integers or None");
  const Py_ssize_t number = PyNumber_AsSsize_t(value.ptr(), nullptr);
  if (number == -1 && PyErr_Occurred()) throw nb::python_error();
  return number;
}

std::optional<Size> bound(nb::handle value) {
  if (nb::isinstance<Tensor>(value) || nb::isinstance<Variable>(value))
    if (auto size = size_of_object(value)) return size;
  const std::optional<int64_t> fixed = fixed_bound(value);
  return fixed ? std::optional<Size>(*fixed) : std::nullopt;
}

Slice slice_of(nb::handle object) {
  const std::optional<int64_t> step = fixed_bound(object.attr("step"));
  return {bound(object.attr("start")), bound(object.attr("stop")), step.value_or(1)};
}

/// The parts of x[…] for a tensor of a known shape.
class Indices {
 public:
  Indices(const Tensor& of, nb::handle object) : shape_(of.shape()), device_(of.device()) {
    if (!PyTuple_Check(object.ptr())) {
      add(object);
    } else {
      for (const nb::handle each : object) add(each);
    }
    check_masks();
    broadcast_arrays();
  }
  const std::vector<Index>& get() const { return indices_; }
  /// The elements that index() reads, with their axes in NumPy's order.
  Tensor in_order(const Tensor& read) const {
    return are_arrays_first_ ? moved(read, before_, rank_, 0) : read;
  }
  /// A value for set_index(), of one whose axes are in NumPy's order.
  Tensor value_for(const Tensor& of, const Tensor& value) const {
    if (!are_arrays_first_) return value;
    return moved(value.expand(in_order(of.index(indices_)).shape()), 0, rank_, before_);
  }

 private:
  void add(nb::handle object);
  void add_tensor(const Tensor& tensor);
  void add_mask(const Tensor& mask);
  void check_masks() const;
  void broadcast_arrays();
  int64_t result_axes(const Index& index) const;
  static Tensor moved(const Tensor& x, int64_t from, int64_t count, int64_t to);

  Shape shape_;
  std::string device_;
  std::vector<Index> indices_;
  std::vector<std::pair<int64_t, Shape>> masks_;  // the first axis of each, and its shape
  int64_t axes_ = 0;                              // that the indices so far take
  std::optional<int64_t> ellipsis_;               // axes in front of "..."
  // The axes of index arrays lie behind `before_` axes for index(), and first for NumPy.
  bool are_arrays_first_ = false;
  int64_t before_ = 0, rank_ = 0;
};

/// Errors: IndexError, as NumPy's, if index arrays do not broadcast.
Shape broadcast(const Shape& a, const Shape& b) {
  Shape common(std::max(a.size(), b.size()), 1);
  for (const Shape* const each : {&a, &b})
    for (size_t i = 0; i < each->size(); ++i) {
      int64_t& size = common[common.size() - each->size() + i];
      if (size != 1 && (*each)[i] != 1 && size != (*each)[i])
        throw nb::index_error(("index arrays of the shapes " + to_string(a) + " and " +
                               to_string(b) + " do not broadcast")
                                  .c_str());
      if (size == 1) size = (*each)[i];
    }
  return common;
}

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
  } catch (const IntegerTooLarge& error) {
    throw nb::index_error(("index " + error.digits() + " is out of range").c_str());
  }
}

Tensor tensor_of_index_list(nb::handle list, std::string_view device) {
  try {
    const Tensor made = tensor_of_list(list, {}, device);
    return made.numel() == 0 ? Tensor::empty(made.shape(), DType::I32, device) : made;
  } catch (const IntegerTooLarge& error) {
    throw nb::index_error(("index " + error.digits() + " is out of range").c_str());
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
    add_tensor(tensor_of_index_list(object, device_));
  } else if (const auto array = tensor_of_array(object, device_)) {
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

Tensor Indices::moved(const Tensor& x, int64_t from, int64_t count, int64_t to) {
  std::vector<int64_t> order(static_cast<size_t>(x.ndim()));
  std::iota(order.begin(), order.end(), 0);
  const auto first = order.begin() + from, last = first + count;
  if (from < to)
    std::rotate(first, last, last + (to - from));
  else
    std::rotate(order.begin() + to, first, last);
  return x.permute(order);
}

/// Checks that the arrays broadcast, and sees where their axes go.
void Indices::broadcast_arrays() {
  using Kind = Index::Kind;
  if (std::ranges::find(indices_, Kind::Tensor, &Index::kind) == indices_.end()) return;
  Shape common;
  std::vector<size_t> arrays, chosen;  // chosen: integers, too
  for (size_t i = 0; i < indices_.size(); ++i) {
    if (indices_[i].kind == Kind::Number || indices_[i].kind == Kind::Tensor) chosen.push_back(i);
    if (indices_[i].kind != Kind::Tensor) continue;
    arrays.push_back(i);
    common = broadcast(common, indices_[i].tensor->shape());
  }
  // If nothing is read, NumPy does not look at the elements of the arrays.
  if (std::ranges::find(common, 0) != common.end())
    for (const size_t i : arrays) indices_[i] = Tensor::empty(common, DType::I32, device_);
  rank_ = static_cast<int64_t>(common.size());
  for (size_t i = 0; i < arrays.front(); ++i) before_ += result_axes(indices_[i]);
  int64_t between = 0;
  for (size_t i = arrays.front(); i < arrays.back(); ++i) between += result_axes(indices_[i]);
  // A slice, None or "..." between two of them parts them; index() does so only if it has an axis,
  // and between arrays.
  const bool are_apart = chosen.back() - chosen.front() >= chosen.size();
  are_arrays_first_ = are_apart && between == 0 && before_ > 0 && rank_ > 0;
}

/// The axes of the result that an index other than an array has.
int64_t Indices::result_axes(const Index& index) const {
  switch (index.kind) {
    case Index::Kind::Slice:
    case Index::Kind::NewAxis:
      return 1;
    case Index::Kind::Ellipsis:
      return static_cast<int64_t>(shape_.size()) - axes_;
    default:
      return 0;
  }
}

/// An array or a list has no device: it goes to that of the tensor. Of a list's numbers those that the
/// tensor's dtype does not hold are errors, and floats stay floats.
Tensor assigned(nb::handle value, const Tensor& to) {
  const std::string device = to.device();
  if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr())) {
    const Tensor list = tensor_of_list(value, {}, device);
    return is_float(list.dtype()) && !is_float(to.dtype())
               ? list
               : tensor_of_list(value, to.dtype(), device);
  }
  TensorLike made;
  Tensor* known = nullptr;
  if (!nb::try_cast(value, known, false))
    if (auto array = tensor_of_array(value, device)) return *array;
  if (!made.assign(value))
    throw nb::type_error(("numbers, lists of them, arrays and tensors are assigned, not " +
                          nb::cast<std::string>(nb::str(value.type())))
                             .c_str());
  return made.get();
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
  const Indices indices(self, index);
  return indices.in_order(self.index(indices.get()));
}

void set_item(Tensor& self, nb::handle index, nb::handle value) {
  const Place place;
  const Tensor given = assigned(value, self);
  if (const Tensor* mask = single_mask(index)) {
    const bool is_set = [&] {
      const Released released;
      return mask->item<bool>();
    }();
    if (is_set) self.set_index({kNewAxis}, given);
    return;
  }
  const Indices indices(self, index);
  self.set_index(indices.get(), indices.value_for(self, given));
}

}  // namespace

void bind_indexing(nb::class_<Tensor>& tensor) {
  tensor.def(
      "__getitem__", get_item, "index"_a.none(),
      nb::sig("def __getitem__(self, index: IndexLike) -> Tensor"),
      "Elements by integers, slices, None, ..., lists, bool masks and tensors, by NumPy's rules.");
  tensor.def(
      "__setitem__", set_item, "index"_a.none(), "value"_a.none(),
      nb::sig("def __setitem__(self, index: IndexLike, value: TensorLike | Sequence[Any]) -> None"),
      "Assigns to elements; every reference to the tensor sees the change.");
  tensor.def(
      "assign",
      [](Tensor& self, nb::handle value) -> Tensor& {
        const Place place;
        return self.assign(assigned(value, self));
      },
      "value"_a.none(), nb::sig("def assign(self, value: TensorLike | Sequence[Any]) -> Tensor"),
      doc("Tensor::assign"), nb::rv_policy::none);
  tensor.def(
      "__iter__",
      [](const Tensor& self) {
        if (self.ndim() == 0)
          throw nb::type_error("a tensor of shape () has no elements to iterate over");
        const nb::module_ builtins = nb::module_::import_("builtins");
        return nb::iter(builtins.attr("map")(nb::find(self).attr("__getitem__"),
                                             builtins.attr("range")(self.size(0))));
      },
      nb::sig("def __iter__(self) -> Iterator[Tensor]"));
}

}  // namespace plugrad::python

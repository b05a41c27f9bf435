#include "arguments.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "exchange/arrays.h"

namespace plugrad::python {

namespace {

std::string digits_of(nb::handle integer) {
  const auto bits = nb::cast<int64_t>(integer.attr("bit_length")());
  if (bits >= 4096) return "of " + std::to_string(bits) + " bits";  // Python limits str()
  return nb::cast<std::string>(nb::str(integer));
}

/// The tensor of a Python number, with weak dtype; nothing for other objects.
/// Errors: OverflowError for an integer beyond 64 bits.
std::optional<Tensor> literal_of_object(nb::handle object) {
  PyObject* const o = object.ptr();
  if (PyBool_Check(o)) return Tensor(o == Py_True);
  if (PyLong_Check(o)) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow == 0) return Tensor(static_cast<int64_t>(value));
    const unsigned long long large = overflow > 0 ? PyLong_AsUnsignedLongLong(o) : 0;
    if (overflow < 0 || PyErr_Occurred()) {
      PyErr_Clear();
      throw IntegerTooLarge(object);
    }
    return Tensor(static_cast<uint64_t>(large));
  }
  if (PyFloat_Check(o)) return Tensor(PyFloat_AsDouble(o));
  return {};
}

bool is_sequence(nb::handle object) {
  return PyList_Check(object.ptr()) || PyTuple_Check(object.ptr());
}

template <class T, class Convert>
std::optional<std::vector<T>> list_of_object(nb::handle object, Convert convert) {
  if (!is_sequence(object)) return {};
  std::vector<T> list;
  for (const nb::handle item : object) {
    std::optional<T> value = convert(item);
    if (!value) return {};
    list.push_back(*value);
  }
  return list;
}

std::optional<std::pair<int64_t, int64_t>> pair_of_object(nb::handle object) {
  const auto list =
      is_sequence(object) ? integers_of_object(object) : std::optional<std::vector<int64_t>>();
  if (!list || list->size() != 2) return {};
  return std::pair((*list)[0], (*list)[1]);
}

}  // namespace

IntegerTooLarge::IntegerTooLarge(nb::handle integer) : IntegerTooLarge(digits_of(integer)) {}

IntegerTooLarge::IntegerTooLarge(std::string digits)
    : std::overflow_error("the integer " + digits + " has more than 64 bits: no dtype holds it"),
      digits_(std::move(digits)) {}

bool TensorLike::assign(nb::handle object) noexcept {
  try {
    Tensor* known = nullptr;
    if (nb::try_cast(object, known, false) && known) {
      tensor_ = *known;
      return true;
    }
    if (auto literal = literal_of_object(object)) {
      tensor_ = *literal;
      return true;
    }
    if (auto constant = constant_of_number(object)) {
      tensor_ = *constant;
      return true;
    }
    if (auto array = tensor_of_array(object)) {
      tensor_ = *array;
      return true;
    }
    return false;
  } catch (...) {
    error_ = std::current_exception();
    return true;
  }
}

std::vector<Tensor> TensorList::get() const {
  std::vector<Tensor> tensors;
  tensors.reserve(items.size());
  for (const TensorLike& item : items) tensors.push_back(item.get());
  return tensors;
}

std::optional<int64_t> integer_of_object(nb::handle object) {
  PyObject* const o = object.ptr();
  if (PyBool_Check(o) || PyFloat_Check(o) || !PyIndex_Check(o)) return {};
  const nb::object index = nb::steal(PyNumber_Index(o));
  if (!index.is_valid()) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
    PyErr_Clear();
    return {};
  }
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0) throw IntegerTooLarge(index);
  return value;
}

std::optional<std::vector<int64_t>> integers_of_object(nb::handle object) {
  if (const auto one = integer_of_object(object)) return std::vector{*one};
  return list_of_object<int64_t>(object, integer_of_object);
}

std::optional<Size> size_of_object(nb::handle object) {
  Tensor* tensor = nullptr;
  if (!PyLong_Check(object.ptr()) && nb::try_cast(object, tensor, false) && tensor &&
      tensor->ndim() == 0 && is_integer(tensor->dtype()))
    return Size(*tensor);
  if (nb::isinstance<Variable>(object))
    throw nb::type_error("a Variable is a size once it is bound to a value: give n.bind(value)");
  if (const auto integer = integer_of_object(object)) return Size(*integer);
  return {};
}

std::optional<Sizes> sizes_of_object(nb::handle object) {
  if (auto one = size_of_object(object)) return Sizes({*std::move(one)});
  if (auto list = list_of_object<Size>(object, size_of_object)) return Sizes(*std::move(list));
  return {};
}

std::optional<std::vector<std::optional<Size>>> optional_sizes_of_object(nb::handle object) {
  using Optional = std::optional<Size>;
  return list_of_object<Optional>(object, [](nb::handle item) -> std::optional<Optional> {
    if (item.is_none()) return Optional();
    auto size = size_of_object(item);
    return size ? std::optional<Optional>(std::move(size)) : std::nullopt;
  });
}

void refuse_mesh(nb::handle object) {
  if (nb::isinstance<Mesh>(object))
    throw Error(ErrorKind::User,
                "a Mesh is no name of a device; give mesh.device, which has all of a tensor at "
                "every position, or cut a tensor by x.shard(mesh, spec), a module by "
                "nn.shard(net, mesh, rules)",
                ErrorReason::Type);
}

template <class T>
std::optional<AxisArgument<T>> axis_argument_of_object(nb::handle object) {
  const bool may_be_none = !std::is_same_v<T, int64_t>;
  if (may_be_none && object.is_none()) return AxisArgument<T>{};
  try {
    if constexpr (std::is_same_v<T, Axes>) {
      if (const auto list = integers_of_object(object)) return AxisArgument<T>{Axes(*list)};
    } else {
      if (const auto one = integer_of_object(object)) return AxisArgument<T>{*one};
    }
  } catch (const IntegerTooLarge& error) {
    throw Error(ErrorKind::User, "axis " + error.digits() + " is out of range", ErrorReason::Index);
  }
  return {};
}
template std::optional<AxisArgument<int64_t>> axis_argument_of_object(nb::handle);
template std::optional<AxisArgument<std::optional<int64_t>>> axis_argument_of_object(nb::handle);
template std::optional<AxisArgument<Axes>> axis_argument_of_object(nb::handle);

std::vector<int64_t> integers_of_arguments(const nb::args& arguments) {
  const nb::handle only = arguments.size() == 1 ? arguments[0] : nb::handle(arguments);
  if (auto list = integers_of_object(only)) return *list;
  throw nb::type_error("integers, or one list of integers, are expected");
}

Sizes sizes_of_arguments(const nb::args& arguments) {
  const nb::handle only = arguments.size() == 1 ? arguments[0] : nb::handle(arguments);
  if (auto list = sizes_of_object(only)) return *std::move(list);
  throw nb::type_error("integers, or one list of integers, are expected");
}

std::optional<Pads> pads_of_object(nb::handle object) {
  if (const auto numbers = list_of_object<int64_t>(object, integer_of_object))
    return Pads(*numbers);
  const auto pair = [](nb::handle item) {
    return item.is_none() ? std::optional(std::pair<int64_t, int64_t>(0, 0)) : pair_of_object(item);
  };
  if (const auto pairs = list_of_object<Pads::Pair>(object, pair)) return Pads(*pairs);
  return {};
}

std::optional<Padding> padding_of_object(nb::handle object) {
  if (const auto one = integer_of_object(object)) return Padding(*one);
  if (PyUnicode_Check(object.ptr())) {
    if (nb::cast<std::string>(object) == "same") return Padding("same");
    if (nb::cast<std::string>(object) == "valid") return Padding(0);
    return {};
  }
  if (const auto numbers = integers_of_object(object)) return Padding(*numbers);
  if (const auto sides = list_of_object<std::pair<int64_t, int64_t>>(object, pair_of_object))
    return Padding(*sides);
  return {};
}

std::optional<Box> box_of_object(nb::handle object) {
  const auto part = [](nb::handle item) -> std::optional<Part> {
    if (item.is_none()) return Part();
    const auto pair = list_of_object<Size>(item, size_of_object);
    return pair && pair->size() == 2 ? std::optional(Part((*pair)[0], (*pair)[1])) : std::nullopt;
  };
  if (const auto parts = list_of_object<Part>(object, part)) return Box(*parts);
  return {};
}

}  // namespace plugrad::python

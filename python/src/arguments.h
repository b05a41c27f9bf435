// How Python objects become arguments of plugrad's functions, and results become Python objects.
//
// A converter that does not recognise an object lets the next overload try, and Python reports the
// types at last. An object that is recognised but cannot be used (an integer beyond 64 bits, a list
// of unequal rows) raises its own error when the function takes the argument.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugrad/plugrad.h"
#include "released.h"

namespace plugrad::python {

namespace nb = nanobind;
using namespace nb::literals;

/// A tensor, a number, a NumPy array or another array that gives its memory away.
class TensorLike {
 public:
  TensorLike() = default;
  explicit TensorLike(Tensor tensor) : tensor_(std::move(tensor)) {}
  /// Errors: those of the conversion.
  const Tensor& get() const {
    if (error_) std::rethrow_exception(error_);
    return tensor_;
  }
  /// Whether the object is one that converts; its errors wait for get().
  bool assign(nb::handle object) noexcept;

 private:
  Tensor tensor_;
  std::exception_ptr error_;
};

/// The same or None, which is an undefined tensor.
struct OptionalTensor : TensorLike {};

/// A list or tuple of what TensorLike takes.
struct TensorList {
  std::vector<TensorLike> items;
  std::vector<Tensor> get() const;
};

/// The name of a device, or None for the default one.
struct DeviceLike {
  std::string name;
};

/// The dtype that a string ("float32", "f32"), a plugrad or NumPy dtype, or one of Python's types
/// of numbers names; nothing for other names and objects.
std::optional<DType> dtype_of_object(nb::handle object);
/// The same where only a dtype can stand. Errors: User for an unknown name, with the known ones.
std::optional<DType> dtype_argument(nb::handle object);
/// Errors: User (TypeError) for a Mesh where the name of a device can stand.
void refuse_mesh(nb::handle object);
/// What x.to(…) and nn.to(…) take: a dtype, or the name of a device, or neither (None).
struct DTypeOrDevice {
  std::optional<DType> dtype;
  std::string device;
};
/// Text that names no dtype is the name of a device.
std::optional<DTypeOrDevice> dtype_or_device(nb::handle object);
/// The one Python object of a dtype.
nb::object object_of_dtype(DType dtype);

/// An integer beyond 64 bits; OverflowError in Python.
class IntegerTooLarge : public std::overflow_error {
 public:
  explicit IntegerTooLarge(nb::handle integer);
  const std::string& digits() const { return digits_; }  ///< "a number of 20000 bits" if very long

 private:
  explicit IntegerTooLarge(std::string digits);
  std::string digits_;
};

/// The number of an object that counts as an integer: int and objects with __index__, not bool.
/// Errors: IntegerTooLarge, and what __index__ raises other than TypeError.
std::optional<int64_t> integer_of_object(nb::handle object);
/// One integer, or a list of them.
std::optional<std::vector<int64_t>> integers_of_object(nb::handle object);

/// The same, where a tensor of one integer may stand for a variable size.
std::optional<Size> size_of_object(nb::handle object);
/// One size, or a list of them.
std::optional<Sizes> sizes_of_object(nb::handle object);
/// A list of sizes, None for no size.
std::optional<std::vector<std::optional<Size>>> optional_sizes_of_object(nb::handle object);

/// An argument that names axes: int64_t, std::optional<int64_t> or Axes.
template <class T>
struct AxisArgument {
  T value;
};
/// Errors: User (IndexError) for an integer beyond 64 bits, as for every axis out of range.
template <class T>
std::optional<AxisArgument<T>> axis_argument_of_object(nb::handle object);
/// A list of integers from separate arguments, f(2, 3), or one list, f((2, 3)).
/// Errors: TypeError for anything else.
std::vector<int64_t> integers_of_arguments(const nb::args& arguments);
/// The same of sizes.
Sizes sizes_of_arguments(const nb::args& arguments);
std::optional<Pads> pads_of_object(nb::handle object);
std::optional<Padding> padding_of_object(nb::handle object);
std::optional<Box> box_of_object(nb::handle object);

/// A value of an enum by its name in lower case, or by its C++ name.
template <class Enum>
struct EnumNames;  // specialised in the generated enums.h

template <class Enum>
std::optional<Enum> enum_of_object(nb::handle object) {
  if (!PyUnicode_Check(object.ptr())) return {};
  const std::string name = nb::cast<std::string>(object);
  for (const auto& [known, value] : EnumNames<Enum>::rows)
    if (name == known) return value;
  std::string all;
  for (const auto& [known, value] : EnumNames<Enum>::rows)
    all += (all.empty() ? "\"" : ", \"") + std::string(known) + "\"";
  throw nb::value_error(("\"" + name + "\" is none of " + all).c_str());
}

}  // namespace plugrad::python

namespace nanobind::detail {

/// Converts with a function from object to optional. An error of the function is of an object that
/// is recognised: it is thrown when the function takes the argument, and within a list, where
/// nothing may be thrown, it counts as "no match".
template <class T, std::optional<T> (*convert)(handle)>
struct ArgumentCaster {
  template <class U>
  using Cast = movable_cast_t<U>;
  template <class U>
  bool can_cast() const {
    return !error;
  }
  bool from_python(handle source, uint32_t, cleanup_list*) noexcept {
    try {
      value = convert(source);
    } catch (...) {
      error = std::current_exception();
      return true;
    }
    return value.has_value();
  }
  T& taken() {
    if (error) std::rethrow_exception(error);
    return *value;
  }
  explicit operator T*() { return &taken(); }
  explicit operator T&() { return taken(); }
  explicit operator T&&() { return std::move(taken()); }
  std::optional<T> value;
  std::exception_ptr error;
};

inline std::optional<plugrad::Axes> axes_of_object(handle object) {
  if (object.is_none()) return plugrad::Axes();
  if (auto list = plugrad::python::integers_of_object(object)) return plugrad::Axes(*list);
  return {};
}
template <>
struct type_caster<plugrad::Axes> : ArgumentCaster<plugrad::Axes, axes_of_object> {
  static constexpr auto Name = const_name("int | Sequence[int] | None");
};

inline std::optional<plugrad::PerAxis> per_axis_of_object(handle object) {
  if (object.is_none()) return plugrad::PerAxis(std::vector<int64_t>());
  if (auto one = plugrad::python::integer_of_object(object)) return plugrad::PerAxis(*one);
  if (auto list = plugrad::python::integers_of_object(object)) return plugrad::PerAxis(*list);
  return {};
}
template <>
struct type_caster<plugrad::PerAxis> : ArgumentCaster<plugrad::PerAxis, per_axis_of_object> {
  static constexpr auto Name = const_name("int | Sequence[int] | None");
};
template <>
struct type_caster<plugrad::Pads> : ArgumentCaster<plugrad::Pads, plugrad::python::pads_of_object> {
  static constexpr auto Name = const_name("Sequence[int] | Sequence[tuple[int, int] | None]");
};
template <>
struct type_caster<plugrad::Padding>
    : ArgumentCaster<plugrad::Padding, plugrad::python::padding_of_object> {
  static constexpr auto Name = const_name("int | Sequence[int] | Sequence[tuple[int, int]] | str");
};
template <>
struct type_caster<plugrad::Box> : ArgumentCaster<plugrad::Box, plugrad::python::box_of_object> {
  static constexpr auto Name = const_name("Sequence[tuple[int, int] | None]");
};

template <>
struct type_caster<plugrad::Size> : ArgumentCaster<plugrad::Size, plugrad::python::size_of_object> {
  static constexpr auto Name = const_name("int | Tensor");
};
inline std::optional<std::optional<plugrad::Size>> optional_size_of_object(handle object) {
  if (object.is_none()) return std::optional<plugrad::Size>();
  if (auto size = plugrad::python::size_of_object(object)) return size;
  return {};
}
template <>
struct type_caster<std::optional<plugrad::Size>>
    : ArgumentCaster<std::optional<plugrad::Size>, optional_size_of_object> {
  static constexpr auto Name = const_name("int | Tensor | None");
};
template <>
struct type_caster<plugrad::Sizes>
    : ArgumentCaster<plugrad::Sizes, plugrad::python::sizes_of_object> {
  static constexpr auto Name = const_name("int | Sequence[int]");
};
template <>
struct type_caster<std::vector<std::optional<plugrad::Size>>>
    : ArgumentCaster<std::vector<std::optional<plugrad::Size>>,
                     plugrad::python::optional_sizes_of_object> {
  static constexpr auto Name = const_name("Sequence[int | None]");
};

/// Shapes and lists of integers are tuples in Python.
template <>
struct type_caster<std::vector<int64_t>>
    : ArgumentCaster<std::vector<int64_t>, plugrad::python::integers_of_object> {
  static constexpr auto Name = const_name("int | Sequence[int]");
  static handle from_cpp(const std::vector<int64_t>& list, rv_policy, cleanup_list*) noexcept {
    PyObject* const made = PyTuple_New(static_cast<Py_ssize_t>(list.size()));
    if (!made) return {};
    for (size_t i = 0; i < list.size(); ++i)
      PyTuple_SetItem(made, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(list[i]));
    return made;
  }
};

inline std::optional<plugrad::python::DeviceLike> device_of_object(handle object) {
  if (object.is_none()) return plugrad::python::DeviceLike{};
  plugrad::python::refuse_mesh(object);
  if (!PyUnicode_Check(object.ptr())) return {};
  return plugrad::python::DeviceLike{cast<std::string>(object)};
}
template <>
struct type_caster<plugrad::python::DeviceLike>
    : ArgumentCaster<plugrad::python::DeviceLike, device_of_object> {
  static constexpr auto Name = const_name("str | None");
};

template <>
struct type_caster<plugrad::python::DTypeOrDevice>
    : ArgumentCaster<plugrad::python::DTypeOrDevice, plugrad::python::dtype_or_device> {
  static constexpr auto Name = const_name("dtype | str | None");
};

template <>
struct type_caster<plugrad::DType>
    : ArgumentCaster<plugrad::DType, plugrad::python::dtype_argument> {
  static constexpr auto Name = const_name("dtype | str");
  static handle from_cpp(plugrad::DType dtype, rv_policy, cleanup_list*) noexcept {
    return plugrad::python::object_of_dtype(dtype).release();
  }
};

inline std::optional<std::optional<plugrad::DType>> optional_dtype_of_object(handle object) {
  if (object.is_none()) return std::optional<plugrad::DType>();
  if (const auto dtype = plugrad::python::dtype_argument(object)) return std::optional(dtype);
  return {};
}
template <>
struct type_caster<std::optional<plugrad::DType>>
    : ArgumentCaster<std::optional<plugrad::DType>, optional_dtype_of_object> {
  static constexpr auto Name = const_name("dtype | str | None");
  static handle from_cpp(std::optional<plugrad::DType> dtype, rv_policy, cleanup_list*) noexcept {
    return dtype ? plugrad::python::object_of_dtype(*dtype).release() : none().release();
  }
};

template <class T>
struct type_caster<plugrad::python::AxisArgument<T>>
    : ArgumentCaster<plugrad::python::AxisArgument<T>,
                     plugrad::python::axis_argument_of_object<T>> {
  static constexpr auto Name = const_name("int | Sequence[int] | None");
};

template <>
struct type_caster<plugrad::python::TensorLike> {
  NB_TYPE_CASTER(plugrad::python::TensorLike, const_name("TensorLike"))
  bool from_python(handle source, uint32_t, cleanup_list*) noexcept { return value.assign(source); }
};
template <>
struct type_caster<plugrad::python::OptionalTensor> {
  NB_TYPE_CASTER(plugrad::python::OptionalTensor, const_name("TensorLike | None"))
  bool from_python(handle source, uint32_t, cleanup_list*) noexcept {
    return source.is_none() || value.assign(source);
  }
};
template <>
struct type_caster<plugrad::python::TensorList> {
  NB_TYPE_CASTER(plugrad::python::TensorList, const_name("Sequence[Tensor]"))
  bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) noexcept {
    make_caster<std::vector<plugrad::python::TensorLike>> list;
    if (!list.from_python(source, flags, cleanup)) return false;
    value.items = std::move(list.value);
    return true;
  }
};

}  // namespace nanobind::detail

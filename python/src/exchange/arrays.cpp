#include "exchange/arrays.h"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "arguments.h"
#include "exchange/host_array.h"
#include "exchange/host_values.h"

namespace plugrad::python {

namespace {

/// The values of one list, read depth first. The shape is that of the first element at each level.
class Reader {
 public:
  explicit Reader(nb::handle list) {
    for (nb::handle at = list; is_list(at);) {
      if (shape_.size() == kMostAxes)
        throw nb::value_error("the lists are nested more than 64 deep");
      shape_.push_back(static_cast<int64_t>(nb::len(at)));
      if (shape_.back() == 0) break;
      at = nb::object(at[0]);
    }
    read(list, 0);
  }
  const Shape& shape() const { return shape_; }
  const std::vector<nb::object>& values() const { return values_; }

 private:
  static bool is_list(nb::handle object) {
    return PyList_Check(object.ptr()) || PyTuple_Check(object.ptr());
  }
  void read(nb::handle object, size_t level) {
    if (level == shape_.size()) {
      if (is_list(object)) ragged(level);
      values_.push_back(nb::borrow(object));
      return;
    }
    if (!is_list(object) || static_cast<int64_t>(nb::len(object)) != shape_[level]) ragged(level);
    for (const nb::handle each : object) read(each, level + 1);
  }
  [[noreturn]] void ragged(size_t level) const {
    throw nb::value_error(("the lists have different lengths at depth " +
                           std::to_string(level + 1) + "; the first ones have the shape " +
                           to_string(shape_))
                              .c_str());
  }

  static constexpr size_t kMostAxes = 64;  // NumPy's limit; a list may hold itself
  Shape shape_;
  std::vector<nb::object> values_;
};

struct Kinds {
  bool has_float = false, has_integer = false, has_tensor = false;
  bool needs_64 = false, needs_unsigned = false, has_negative = false;
};

Kinds kinds_of(const std::vector<nb::object>& values) {
  Kinds kinds;
  for (const nb::object& value : values) {
    if (PyBool_Check(value.ptr())) continue;
    if (PyFloat_Check(value.ptr())) {
      kinds.has_float = true;
    } else if (PyLong_Check(value.ptr())) {
      kinds.has_integer = true;
      TensorLike number;
      number.assign(value);
      if (number.get().dtype() == DType::U64)
        kinds.needs_unsigned = true;
      else {
        const auto integer = *integer_of_object(value);
        kinds.needs_64 |= integer < INT32_MIN || integer > INT32_MAX;
        kinds.has_negative |= integer < 0;
      }
    } else {
      kinds.has_tensor = true;
    }
  }
  return kinds;
}

template <class T>
Tensor tensor_of(const Reader& list, std::string_view device) {
  std::vector<T> numbers;
  numbers.reserve(list.values().size());
  for (const nb::object& value : list.values()) numbers.push_back(nb::cast<T>(value));
  return Tensor::from(numbers, list.shape(), device);
}

/// The same of floats and integers, rounded towards zero, where float32 would round large integers.
template <class T>
Tensor truncated_tensor_of(const Reader& list, std::string_view device) {
  std::vector<T> numbers;
  numbers.reserve(list.values().size());
  for (const nb::object& value : list.values()) numbers.push_back(nb::cast<T>(nb::int_(value)));
  return Tensor::from(numbers, list.shape(), device);
}

/// Whether the object is a number of NumPy, such as numpy.float32(2) or an element of an array.
bool is_numpy_number(nb::handle object) {
  static PyObject* number_type = nullptr;  // numpy.generic; it lives as long as the process
  if (!number_type) {
    PyObject* const numpy = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy");  // borrowed
    if (!numpy || !nb::hasattr(numpy, "generic")) return false;
    number_type = nb::object(nb::handle(numpy).attr("generic")).release().ptr();
  }
  return nb::isinstance(object, number_type);
}

/// A list with tensors or NumPy numbers in it.
Tensor stack_list(const Reader& list, std::string_view device) {
  std::vector<Tensor> parts;
  for (const nb::object& value : list.values()) {
    TensorLike part;
    if (is_numpy_number(value))
      part = TensorLike(*tensor_of_array(value, device));
    else if (!part.assign(value))
      throw nb::type_error(("a tensor holds numbers, not " +
                            nb::cast<std::string>(nb::str(nb::handle(value.type()))))
                               .c_str());
    parts.push_back(part.get());
  }
  const Tensor joined = plugrad::stack(parts);
  Shape shape = list.shape();
  const Shape inner = parts.front().shape();
  shape.insert(shape.end(), inner.begin(), inner.end());
  const Tensor whole = joined.reshape(shape);
  return device.empty() ? whole : whole.to(device);
}

struct FloatFormat {
  int exponent_bits, mantissa_bits;
  bool has_infinity;
};
FloatFormat format_of(DType dtype) {
  if (dtype == DType::F16) return {5, 10, true};
  if (dtype == DType::BF16) return {8, 7, true};
  if (dtype == DType::F8E5M2) return {5, 2, true};
  return {4, 3, false};  // F8E4M3: NaN is all ones
}

double small_float(uint32_t bits, FloatFormat format) {
  const int width = format.exponent_bits + format.mantissa_bits;
  const int mantissa = static_cast<int>(bits & ((1u << format.mantissa_bits) - 1));
  const int highest = (1 << format.exponent_bits) - 1;
  const int exponent = static_cast<int>(bits >> format.mantissa_bits) & highest;
  const double sign = bits >> width & 1 ? -1.0 : 1.0;
  if (exponent == highest && format.has_infinity) return mantissa ? std::nan("") : sign * HUGE_VAL;
  if (!format.has_infinity && (bits & ((1u << width) - 1)) == (1u << width) - 1)
    return std::nan("");
  const int bias = highest / 2, hidden = exponent == 0 ? 0 : 1 << format.mantissa_bits;
  return sign * std::ldexp(mantissa + hidden, std::max(exponent, 1) - bias - format.mantissa_bits);
}

nb::object number_of(const std::byte* bytes, DType dtype) {
  const auto as = [&]<class T>(T value) {
    std::memcpy(&value, bytes, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::Bool:
      return nb::bool_(as(uint8_t()) != 0);
    case DType::I8:
      return nb::int_(as(int8_t()));
    case DType::U8:
      return nb::int_(as(uint8_t()));
    case DType::I16:
      return nb::int_(as(int16_t()));
    case DType::U16:
      return nb::int_(as(uint16_t()));
    case DType::I32:
      return nb::int_(as(int32_t()));
    case DType::U32:
      return nb::int_(as(uint32_t()));
    case DType::I64:
      return nb::int_(as(int64_t()));
    case DType::U64:
      return nb::int_(as(uint64_t()));
    case DType::F64:
      return nb::float_(as(double()));
    case DType::F32:
      return nb::float_(static_cast<double>(as(float())));
    default:
      return nb::float_(
          small_float(size_of(dtype) == 2 ? as(uint16_t()) : as(uint8_t()), format_of(dtype)));
  }
}

nb::object nested(const std::byte*& at, DType dtype, const Shape& shape, size_t axis) {
  if (axis == shape.size()) {
    nb::object number = number_of(at, dtype);
    at += size_of(dtype);
    return number;
  }
  nb::list rows;
  for (int64_t i = 0; i < shape[axis]; ++i) rows.append(nested(at, dtype, shape, axis + 1));
  return rows;
}

}  // namespace

std::optional<Tensor> constant_of_number(nb::handle object) {
  if (!is_numpy_number(object)) return {};
  const auto array = array_of_object(object);
  if (!array || array->is_swapped || !array->shape.empty()) return {};
  const nb::object number = number_of(array->data, array->dtype);
  TensorLike value;
  if (!value.assign(number)) return {};
  return Tensor::full({}, value.get(), array->dtype);
}

std::optional<Tensor> tensor_of_array(nb::handle object, std::string_view device) {
  auto array = array_of_object(object);
  if (!array) return {};
  return tensor_of(std::move(*array), device, Copying::Always);
}

void check_holds(DType dtype, nb::handle number) {
  if (is_float(dtype) || dtype == DType::Bool) return;
  const bool is_whole = PyLong_Check(number.ptr()) && !PyBool_Check(number.ptr());
  if (!is_whole && !PyFloat_Check(number.ptr())) return;
  const bool is_signed = !is_unsigned(dtype);
  const int bits = static_cast<int>(size_of(dtype)) * 8 - (is_signed ? 1 : 0);
  const double limit = std::ldexp(1.0, bits), value = PyFloat_AsDouble(number.ptr());
  const bool is_beyond_doubles = value == -1.0 && PyErr_Occurred() != nullptr;
  PyErr_Clear();
  if (std::isnan(value)) throw nb::value_error("NaN has no integer");
  // Doubles round the integers next to the limits of 64 bits, where Python compares exactly.
  const double whole = std::trunc(value);
  const bool is_near = is_whole && bits > 52 && std::abs(whole) >= limit / 2;
  bool holds = !is_beyond_doubles && whole < limit && whole >= (is_signed ? -limit : 0.0);
  if (is_near && !is_beyond_doubles) {
    const nb::object exact = nb::int_(1).attr("__lshift__")(bits);
    holds = nb::borrow(number) < exact &&
            nb::borrow(number) >= (is_signed ? nb::object(-exact) : nb::object(nb::int_(0)));
  }
  if (!holds)
    throw std::overflow_error(
        std::string(name_of(dtype)) + " does not hold " +
        (is_beyond_doubles ? "so large an integer" : nb::cast<std::string>(nb::str(number))));
}

Tensor tensor_of_list(nb::handle object, std::optional<DType> dtype, std::string_view device) {
  const Reader list(object);
  const Kinds kinds = kinds_of(list.values());
  if (dtype)
    for (const nb::object& value : list.values()) check_holds(*dtype, value);
  Tensor made;
  if (list.values().empty())
    made = Tensor::from(std::vector<float>(), list.shape(), device);
  else if (kinds.has_tensor)
    made = stack_list(list, device);
  else if (dtype && is_float(*dtype))
    made = tensor_of<double>(list, device);
  else if (dtype && kinds.has_float && *dtype == DType::U64)
    made = truncated_tensor_of<uint64_t>(list, device);
  else if (dtype && kinds.has_float && *dtype != DType::Bool)
    made = truncated_tensor_of<int64_t>(list, device);
  else if (kinds.has_float)
    made = tensor_of<float>(list, device);
  else if (kinds.needs_unsigned && kinds.has_negative)
    throw std::overflow_error("no dtype holds both the negative integers and those above 2^63");
  else if (kinds.needs_unsigned)
    made = tensor_of<uint64_t>(list, device);
  else if (kinds.needs_64)
    made = tensor_of<int64_t>(list, device);
  else if (kinds.has_integer)
    made = tensor_of<int32_t>(list, device);
  else
    made = tensor_of<bool>(list, device);
  return dtype && *dtype != made.dtype() ? made.cast(*dtype) : made;
}

namespace {

/// numpy.dtype of the dtype; lives as long as the process.
nb::handle numpy_dtype(DType dtype) {
  static PyObject* known[static_cast<size_t>(DType::F8E5M2) + 1] = {};
  PyObject*& object = known[static_cast<size_t>(dtype)];
  if (!object) {
    const nb::object name = nb::object(object_of_dtype(dtype).attr("name"));
    object = nb::module_::import_("numpy").attr("dtype")(name).release().ptr();
  }
  return object;
}

/// A writable array around a copy in a bytearray: a third of the time that DLPack's capsule takes.
nb::object array_of_few(const HostValues& values, const Shape& shape, DType dtype) {
  static PyObject* const ndarray =
      nb::object(nb::module_::import_("numpy").attr("ndarray")).release().ptr();
  const nb::object bytes = nb::steal(PyByteArray_FromStringAndSize(
      reinterpret_cast<const char*>(values.data), static_cast<Py_ssize_t>(values.size_bytes)));
  if (!bytes.is_valid()) throw nb::python_error();
  const nb::object sizes = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
  if (!sizes.is_valid()) throw nb::python_error();
  for (size_t i = 0; i < shape.size(); ++i)
    PyTuple_SetItem(sizes.ptr(), static_cast<Py_ssize_t>(i), PyLong_FromLongLong(shape[i]));
  return nb::handle(ndarray)(sizes, numpy_dtype(dtype), bytes);
}

}  // namespace

nb::object array_of_tensor(const Tensor& tensor, std::optional<bool> copy) {
  const auto copying = copy ? (*copy ? Copying::Always : Copying::Never) : Copying::IfNeeded;
  auto values = values_of(tensor, copying);
  if (!values)
    throw nb::value_error(
        "these values become an array only by a copy, because they are in memory of a device or on "
        "a mesh: leave out copy=False");
  const Shape sizes = tensor.bound_shape();
  // Small floats are ml_dtypes': NumPy knows only their bits.
  const DType dtype = strong(tensor.dtype());
  const bool is_small = dtype == DType::BF16 || dtype == DType::F8E4M3 || dtype == DType::F8E5M2;
  constexpr size_t kFew = 1 << 12;  // bytes: copied once more in less than a microsecond
  if (copying == Copying::Always && !is_small && values->size_bytes > 0 &&
      values->size_bytes <= kFew)
    return array_of_few(*values, sizes, dtype);
  const std::vector<size_t> shape(sizes.begin(), sizes.end());
  const nb::dlpack::dtype stored =
      dlpack_of(is_small ? (size_of(dtype) == 2 ? DType::U16 : DType::U8) : dtype);
  auto* const kept = new HostValues(std::move(*values));
  const nb::capsule owner(kept, [](void* held) noexcept { delete static_cast<HostValues*>(held); });
  nb::object array;
  if (copying == Copying::Always)
    array = nb::cast(nb::ndarray<nb::numpy>(const_cast<std::byte*>(kept->data), shape.size(),
                                            shape.data(), owner, nullptr, stored),
                     nb::rv_policy::reference);
  else
    array = nb::cast(nb::ndarray<nb::numpy, nb::ro>(kept->data, shape.size(), shape.data(), owner,
                                                    nullptr, stored),
                     nb::rv_policy::reference);
  if (!is_small) return array;
  const nb::object name = nb::object(object_of_dtype(dtype).attr("name"));
  return array.attr("view")(nb::module_::import_("ml_dtypes").attr(name));
}

nb::object list_of_tensor(const Tensor& tensor) {
  const HostValues values = *values_of(tensor, Copying::IfNeeded);
  const std::byte* at = values.data;
  return nested(at, strong(tensor.dtype()), tensor.bound_shape(), 0);
}

}  // namespace plugrad::python

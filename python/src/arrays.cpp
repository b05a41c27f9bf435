#include "arrays.h"

#include <nanobind/ndarray.h>

#include <array>
#include <cstring>

#include "arguments.h"

namespace plugrad::python {

namespace {

struct Row {
  nb::dlpack::dtype_code code;
  uint8_t bits;
  DType dtype;
};
using Code = nb::dlpack::dtype_code;
constexpr std::array kRows = {
    Row{Code::Bool, 8, DType::Bool},
    Row{Code::Int, 8, DType::I8},
    Row{Code::UInt, 8, DType::U8},
    Row{Code::Int, 16, DType::I16},
    Row{Code::UInt, 16, DType::U16},
    Row{Code::Int, 32, DType::I32},
    Row{Code::UInt, 32, DType::U32},
    Row{Code::Int, 64, DType::I64},
    Row{Code::UInt, 64, DType::U64},
    Row{Code::Float, 16, DType::F16},
    Row{Code::Bfloat, 16, DType::BF16},
    Row{Code::Float, 32, DType::F32},
    Row{Code::Float, 64, DType::F64},
    Row{Code::Float8_E4M3FN, 8, DType::F8E4M3},
    Row{Code::Float8_E5M2, 8, DType::F8E5M2},
};

DType dtype_of(nb::dlpack::dtype type) {
  for (const Row& row : kRows)
    if (type.code == static_cast<uint8_t>(row.code) && type.bits == row.bits && type.lanes == 1)
      return row.dtype;
  throw nb::type_error("plugrad has no dtype for the elements of this array");
}

nb::dlpack::dtype dlpack_of(DType dtype) {
  for (const Row& row : kRows)
    if (row.dtype == dtype) return {static_cast<uint8_t>(row.code), row.bits, 1};
  throw nb::type_error("this dtype has no array form");
}

/// The values of one list, read depth first. The shape is that of the first element at each level.
class Reader {
 public:
  explicit Reader(nb::handle list) {
    for (nb::handle at = list; is_list(at);) {
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

  Shape shape_;
  std::vector<nb::object> values_;
};

struct Kinds {
  bool has_float = false, has_integer = false, has_tensor = false;
  bool needs_64 = false, needs_unsigned = false;
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

/// A list with tensors or NumPy numbers in it.
Tensor stack_list(const Reader& list, std::string_view device) {
  std::vector<Tensor> parts;
  for (const nb::object& value : list.values()) {
    TensorLike part;
    if (!part.assign(value))
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
    default:
      return nb::float_(static_cast<double>(as(float())));
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

std::vector<std::byte> bytes_of(const Tensor& tensor) {
  const nb::gil_scoped_release released;
  return tensor.to_bytes();
}

}  // namespace

std::optional<Tensor> tensor_of_array(nb::handle object, std::string_view device) {
  if (PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr())) return {};
  nb::ndarray<nb::ro, nb::c_contig> array;
  if (!nb::try_cast(object, array, true)) return {};
  Shape shape;
  for (size_t i = 0; i < array.ndim(); ++i) shape.push_back(static_cast<int64_t>(array.shape(i)));
  const DType dtype = dtype_of(array.dtype());
  const std::span bytes(static_cast<const std::byte*>(array.data()), array.size() * size_of(dtype));
  return Tensor::from_bytes(bytes, shape, dtype, device);
}

Tensor tensor_of_list(nb::handle object, std::optional<DType> dtype, std::string_view device) {
  const Reader list(object);
  const Kinds kinds = kinds_of(list.values());
  Tensor made;
  if (list.values().empty())
    made = Tensor::from(std::vector<float>(), list.shape(), device);
  else if (kinds.has_tensor)
    made = stack_list(list, device);
  else if (dtype && is_float(*dtype))
    made = tensor_of<double>(list, device);
  else if (kinds.has_float)
    made = tensor_of<float>(list, device);
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

nb::object array_of_tensor(const Tensor& tensor) {
  auto* const bytes = new std::vector<std::byte>(bytes_of(tensor));
  const nb::capsule owner(
      bytes, [](void* held) noexcept { delete static_cast<std::vector<std::byte>*>(held); });
  std::vector<size_t> shape;
  for (const int64_t size : tensor.bound_shape()) shape.push_back(static_cast<size_t>(size));
  const DType dtype = strong(tensor.dtype());
  const nb::ndarray<nb::numpy> array(bytes->data(), shape.size(), shape.data(), owner, nullptr,
                                     dlpack_of(dtype));
  return nb::cast(array, nb::rv_policy::reference);
}

nb::object list_of_tensor(const Tensor& tensor) {
  const DType dtype = strong(tensor.dtype());
  const bool is_narrow = is_float(dtype) && dtype != DType::F64;
  const Tensor wide = is_narrow ? tensor.cast(DType::F32) : tensor;
  const std::vector<std::byte> bytes = bytes_of(wide);
  const std::byte* at = bytes.data();
  return nested(at, is_narrow ? DType::F32 : dtype, tensor.bound_shape(), 0);
}

}  // namespace plugrad::python

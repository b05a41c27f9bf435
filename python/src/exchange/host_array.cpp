#include "exchange/host_array.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>

#include "arguments.h"
#include "exchange/dlpack.h"
#include "exchange/held_objects.h"

namespace plugrad::python {

namespace {

struct ArrayRow {
  nb::dlpack::dtype_code code;
  uint8_t bits;
  DType dtype;
};
using Code = nb::dlpack::dtype_code;
constexpr std::array kArrayRows = {
    ArrayRow{Code::Bool, 8, DType::Bool},
    ArrayRow{Code::Int, 8, DType::I8},
    ArrayRow{Code::UInt, 8, DType::U8},
    ArrayRow{Code::Int, 16, DType::I16},
    ArrayRow{Code::UInt, 16, DType::U16},
    ArrayRow{Code::Int, 32, DType::I32},
    ArrayRow{Code::UInt, 32, DType::U32},
    ArrayRow{Code::Int, 64, DType::I64},
    ArrayRow{Code::UInt, 64, DType::U64},
    ArrayRow{Code::Float, 16, DType::F16},
    ArrayRow{Code::Bfloat, 16, DType::BF16},
    ArrayRow{Code::Float, 32, DType::F32},
    ArrayRow{Code::Float, 64, DType::F64},
    ArrayRow{Code::Float8_E4M3FN, 8, DType::F8E4M3},
    ArrayRow{Code::Float8_E5M2, 8, DType::F8E5M2},
};

/// The C struct of NumPy's __array_struct__ protocol.
struct ArrayInterface {
  int two, ndim;
  char kind;
  int item_size, flags;
  Py_ssize_t *shape, *strides;
  void* data;
  PyObject* description;
};
constexpr int kNativeByteOrder = 0x200;

[[noreturn]] void refuse_kind(nb::handle dtype, char kind) {
  std::string message =
      "plugrad has no dtype for arrays of " + nb::cast<std::string>(nb::str(dtype)) + "; ";
  switch (kind) {
    case 'O':
      message += "convert the objects to numbers: array.astype(\"float32\")";
      break;
    case 'S':
    case 'U':
    case 'T':
      message += "a tensor holds numbers, no texts";
      break;
    case 'c':
      message += "pass array.real and array.imag, since there are no complex numbers";
      break;
    case 'm':
    case 'M':
      message += "count times in units of your choice: array.astype(\"int64\")";
      break;
    default:
      message += kind == 'V' ? "pass the fields of a structured array one by one"
                             : "convert it: array.astype(\"float64\")";
  }
  throw nb::type_error(message.c_str());
}

DType dtype_of_numpy(nb::handle array, const ArrayInterface& facts) {
  if (facts.kind == 'b' && facts.item_size == 1) return DType::Bool;
  if (facts.kind == 'f' && facts.item_size == 4) return DType::F32;
  if (facts.kind == 'f' && facts.item_size == 8) return DType::F64;
  if (facts.kind == 'i' || facts.kind == 'u') {
    const Code code = facts.kind == 'i' ? Code::Int : Code::UInt;
    for (const ArrayRow& row : kArrayRows)
      if (row.code == code && row.bits == facts.item_size * 8) return row.dtype;
  }
  // Small floats are ml_dtypes', of which several have the same kind and size.
  const nb::object dtype = array.attr("dtype");
  const bool may_be_small = facts.item_size <= 2 && (facts.kind == 'f' || facts.kind == 'V');
  if (may_be_small && dtype.attr("names").is_none())
    if (const auto known = dtype_of_object(dtype)) return *known;
  refuse_kind(dtype, facts.kind);
}

void refuse_masked(nb::handle array) {
  if (nb::hasattr(array, "filled") && nb::hasattr(array, "mask"))
    throw nb::type_error(
        "a masked array has elements without a value: pass array.filled(value), and the mask");
}

std::optional<HostArray> array_of_numpy(nb::handle object) {
  nb::object capsule = nb::getattr(object, "__array_struct__", nb::none());
  if (capsule.is_none() || !PyCapsule_CheckExact(capsule.ptr())) return {};
  const auto* const facts =
      static_cast<const ArrayInterface*>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
  if (!facts) throw nb::python_error();
  if (facts->two != 2) return {};
  refuse_masked(object);
  HostArray array;
  array.data = static_cast<const std::byte*>(facts->data);
  array.dtype = dtype_of_numpy(object, *facts);
  array.shape.assign(facts->shape, facts->shape + facts->ndim);
  array.strides.assign(facts->strides, facts->strides + facts->ndim);
  array.is_swapped = facts->item_size > 1 && !(facts->flags & kNativeByteOrder);
  array.keeper = std::move(capsule);
  return array;
}

/// memoryview, bytearray, array.array, ctypes' arrays.
std::optional<HostArray> array_of_buffer(nb::handle object) {
  // A memoryview has strides, which nanobind reads, where the object has none (ctypes).
  const nb::object bytes = nb::steal(PyMemoryView_FromObject(object.ptr()));
  if (!bytes.is_valid()) PyErr_Clear();
  nb::ndarray<nb::ro> view;
  if (!bytes.is_valid() || !nb::try_cast(bytes, view, false)) return {};
  HostArray array;
  array.dtype = dtype_of(view.dtype());
  array.data = static_cast<const std::byte*>(view.data());
  for (size_t i = 0; i < view.ndim(); ++i) {
    array.shape.push_back(static_cast<int64_t>(view.shape(i)));
    array.strides.push_back(view.stride(i) * size_of(array.dtype));
  }
  auto* const kept = new nb::ndarray<nb::ro>(std::move(view));
  array.keeper = nb::capsule(
      kept, [](void* held) noexcept { delete static_cast<nb::ndarray<nb::ro>*>(held); });
  return array;
}

template <size_t kSize>
void gather(std::byte*& to, const std::byte* from, const HostArray& array, size_t axis) {
  if (axis == array.shape.size()) {
    std::memcpy(to, from, kSize);
    to += kSize;
    return;
  }
  const int64_t count = array.shape[axis], stride = array.strides[axis];
  if (axis + 1 < array.shape.size()) {
    for (int64_t i = 0; i < count; ++i) gather<kSize>(to, from + i * stride, array, axis + 1);
  } else if (stride == static_cast<int64_t>(kSize)) {
    std::memcpy(to, from, static_cast<size_t>(count) * kSize);
    to += static_cast<size_t>(count) * kSize;
  } else {
    for (int64_t i = 0; i < count; ++i, to += kSize) std::memcpy(to, from + i * stride, kSize);
  }
}

void swap_bytes(std::byte* bytes, size_t count, size_t size) {
  for (size_t i = 0; i < count; ++i) std::reverse(bytes + i * size, bytes + (i + 1) * size);
}

/// The elements in row-major order, copied without the interpreter's lock.
std::shared_ptr<std::byte[]> copied_elements(const HostArray& array) {
  const Released released;
  const size_t size_bytes = array.size_bytes(), item = size_of(array.dtype);
  std::shared_ptr<std::byte[]> bytes(new std::byte[size_bytes]);
  std::byte* to = bytes.get();
  if (size_bytes == 0) return bytes;
  if (item == 1)
    gather<1>(to, array.data, array, 0);
  else if (item == 2)
    gather<2>(to, array.data, array, 0);
  else if (item == 4)
    gather<4>(to, array.data, array, 0);
  else
    gather<8>(to, array.data, array, 0);
  if (array.is_swapped) swap_bytes(bytes.get(), size_bytes / item, item);
  return bytes;
}

}  // namespace

DType dtype_of(nb::dlpack::dtype type) {
  for (const ArrayRow& row : kArrayRows)
    if (type.code == static_cast<uint8_t>(row.code) && type.bits == row.bits && type.lanes == 1)
      return row.dtype;
  throw nb::type_error(type.code == static_cast<uint8_t>(Code::Complex)
                           ? "plugrad has no complex numbers: pass the real and imaginary parts"
                           : "plugrad has no dtype for the elements of this array");
}

nb::dlpack::dtype dlpack_of(DType dtype) {
  for (const ArrayRow& row : kArrayRows)
    if (row.dtype == dtype) return {static_cast<uint8_t>(row.code), row.bits, 1};
  throw nb::type_error("this dtype has no array form");
}

size_t HostArray::size_bytes() const {
  size_t size = size_of(dtype);
  for (const int64_t each : shape) size *= static_cast<size_t>(each);
  return size;
}

bool HostArray::is_plain() const {
  if (is_swapped) return false;
  if (std::ranges::find(shape, 0) != shape.end()) return true;
  int64_t step = size_of(dtype);
  for (size_t i = shape.size(); i-- > 0; step *= shape[i])
    if (shape[i] != 1 && strides[i] != step) return false;
  return true;
}

std::optional<HostArray> array_of_object(nb::handle object, Copying copying) {
  PyObject* const o = object.ptr();
  if (PyUnicode_Check(o) || PyBytes_Check(o) || PyType_Check(o)) return {};
  if (auto array = array_of_numpy(object)) return array;
  if (nb::hasattr(object, "__dlpack__") && nb::hasattr(object, "__dlpack_device__"))
    return array_of_dlpack(object, copying);
  if (auto array = array_of_buffer(object)) return array;
  if (!nb::hasattr(object, "__array__")) return {};
  if (copying == Copying::Never)
    throw nb::value_error("this object becomes an array only by a copy");
  return array_of_numpy(nb::module_::import_("numpy").attr("asarray")(object));
}

Tensor tensor_of(HostArray array, std::string_view device, Copying copying) {
  const bool is_plain = array.is_plain();
  if (copying == Copying::Never && !is_plain)
    throw nb::value_error(
        "the array is not in row-major order of native numbers, so that a tensor of it needs a "
        "copy: leave out copy=False");
  const size_t size_bytes = array.size_bytes();
  std::shared_ptr<const void> owner;
  const std::byte* data = array.data;
  if (copying != Copying::Always && is_plain) {
    owner = hold(std::move(array.keeper));
  } else {
    auto bytes = copied_elements(array);
    data = bytes.get();
    owner = std::move(bytes);
  }
  const Released released;
  return Tensor::from_bytes({data, size_bytes}, array.shape, array.dtype, device, std::move(owner));
}

}  // namespace plugrad::python

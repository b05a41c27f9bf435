#include "exchange/host_values.h"

#include <array>
#include <cstring>

#include "place.h"
#include "plugrad/host_view.h"
#include "released.h"

namespace plugrad::python {

namespace {

HostValues copied(const Tensor& tensor) {
  auto bytes = std::make_shared<std::vector<std::byte>>(tensor.to_bytes());
  const std::byte* const data = bytes->data();
  const size_t size = bytes->size();
  return {data, size, std::move(bytes), true};
}

/// The C struct of Python's buffer protocol, whose declaration the stable ABI has only since 3.11.
struct BufferView {
  void* data;
  PyObject* object;
  Py_ssize_t size_bytes, item_size;
  int is_read_only, ndim;
  char* format;
  Py_ssize_t *shape, *strides, *suboffsets;
  void* internal;
};
constexpr int kWritable = 0x1, kFormat = 0x4, kNd = 0x8, kStrides = 0x10 | kNd,
              kFortran = 0x40 | kStrides;
constexpr int kGetBufferSlot = 1, kReleaseBufferSlot = 2;

/// The values and the shape of a view, kept until Python releases it.
struct Held {
  HostValues values;
  std::vector<Py_ssize_t> shape, strides;
  char format[2] = {};
};

/// The character of the struct module; 0 if it has none.
char buffer_format(DType dtype) {
  constexpr std::array kFormats = {
      std::pair{DType::Bool, '?'}, std::pair{DType::I8, 'b'},  std::pair{DType::U8, 'B'},
      std::pair{DType::I16, 'h'},  std::pair{DType::U16, 'H'}, std::pair{DType::I32, 'i'},
      std::pair{DType::U32, 'I'},  std::pair{DType::I64, 'l'}, std::pair{DType::U64, 'L'},
      std::pair{DType::F16, 'e'},  std::pair{DType::F32, 'f'}, std::pair{DType::F64, 'd'}};
  for (const auto& [known, format] : kFormats)
    if (known == dtype) return format;
  return 0;
}

std::unique_ptr<Held> held_of(const Tensor& tensor) {
  auto held = std::make_unique<Held>();
  const DType dtype = strong(tensor.dtype());
  held->format[0] = buffer_format(dtype);
  if (held->format[0] == 0)
    throw nb::buffer_error(
        "Python's buffers have no format for this dtype: use numpy(), bitcast(\"uint8\"), or "
        "cast(\"float32\")");
  held->values = *values_of(tensor, Copying::IfNeeded);
  const Shape shape = tensor.bound_shape();
  held->shape.assign(shape.begin(), shape.end());
  held->strides.resize(shape.size());
  Py_ssize_t step = size_of(dtype);
  for (size_t i = shape.size(); i-- > 0; step *= std::max<Py_ssize_t>(held->shape[i], 1))
    held->strides[i] = step;
  return held;
}

void fill(BufferView& view, PyObject* self, int flags) {
  if (flags & kWritable)
    throw nb::buffer_error("the values of a tensor are read-only: assign with x[...] = value");
  const Tensor& tensor = *nb::inst_ptr<Tensor>(self);
  std::unique_ptr<Held> held = held_of(tensor);
  if ((flags & kFortran) == kFortran && held->shape.size() > 1)
    throw nb::buffer_error("the values of a tensor are in row-major order");
  static std::byte none;
  view.data = const_cast<std::byte*>(held->values.data ? held->values.data : &none);
  view.size_bytes = static_cast<Py_ssize_t>(held->values.size_bytes);
  view.item_size = size_of(strong(tensor.dtype()));
  view.is_read_only = 1;
  view.format = flags & kFormat ? held->format : nullptr;
  view.ndim = static_cast<int>(held->shape.size());
  view.shape = flags & kNd ? held->shape.data() : nullptr;
  view.strides = (flags & kStrides) == kStrides ? held->strides.data() : nullptr;
  view.suboffsets = nullptr;
  view.internal = held.release();
  Py_IncRef(self);
  view.object = self;
}

int get_buffer(PyObject* self, BufferView* view, int flags) noexcept {
  view->object = nullptr;
  try {
    fill(*view, self, flags);
    return 0;
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_BufferError, error.what());
  }
  return -1;
}

void release_buffer(PyObject*, BufferView* view) noexcept {
  delete static_cast<Held*>(view->internal);
}

}  // namespace

std::optional<HostValues> values_of(const Tensor& tensor, Copying copying) {
  constexpr size_t kLarge = 1 << 14;  // bytes; smaller copies are as quick as a view. Chosen
  const Place place;
  const Released released;
  const auto size = static_cast<size_t>(tensor.numel()) * size_of(strong(tensor.dtype()));
  const bool is_small = size < kLarge && size_of(strong(tensor.dtype())) > 1;
  if (copying == Copying::Always && is_small) return copied(tensor);
  auto view = host_view(tensor);
  if (!view && copying == Copying::Never) {
    if (tensor.numel() == 0) return HostValues{};
    view = host_view(tensor.contiguous());  // a constant, which has no memory yet
    if (!view) return {};
  }
  if (!view) return copied(tensor);
  if (copying != Copying::Always)
    return HostValues{view->bytes.data(), view->bytes.size(), std::move(view->owner), false};
  const size_t size_bytes = view->bytes.size();
  const std::shared_ptr<std::byte[]> bytes(new std::byte[size_bytes]);
  std::memcpy(bytes.get(), view->bytes.data(), size_bytes);
  return HostValues{bytes.get(), size_bytes, bytes, true};
}

const PyType_Slot* buffer_slots() {
  static const PyType_Slot slots[] = {{kGetBufferSlot, reinterpret_cast<void*>(get_buffer)},
                                      {kReleaseBufferSlot, reinterpret_cast<void*>(release_buffer)},
                                      {0, nullptr}};
  return slots;
}

}  // namespace plugrad::python

#include "exchange/dlpack.h"

#include <algorithm>
#include <array>
#include <string>

#include "arguments.h"
#include "exchange/host_values.h"

namespace plugrad::python {

namespace {

constexpr char kName[] = "dltensor", kUsedName[] = "used_dltensor";
constexpr char kVersionedName[] = "dltensor_versioned",
               kUsedVersionedName[] = "used_dltensor_versioned";
constexpr uint32_t kMajor = 1, kMinor = 1;
constexpr uint64_t kReadOnly = 1, kIsCopied = 2;
constexpr int32_t kCpu = 1;

struct Managed {
  nb::dlpack::dltensor tensor;
  void* context = nullptr;
  void (*release)(Managed*) = nullptr;
};

struct VersionedManaged {
  uint32_t major = kMajor, minor = kMinor;
  void* context = nullptr;
  void (*release)(VersionedManaged*) = nullptr;
  uint64_t flags = 0;
  nb::dlpack::dltensor tensor;
};

/// CPU, and memory of CUDA and ROCm that the host reads: pinned and managed.
bool is_host(int32_t device_type) {
  constexpr std::array kHostTypes = {kCpu, 3, 11, 13};
  return std::ranges::find(kHostTypes, device_type) != kHostTypes.end();
}

[[noreturn]] void refuse_device(int32_t device_type) {
  throw nb::buffer_error(("the host cannot read memory of the DLPack device type " +
                          std::to_string(device_type) +
                          ": copy the array to the CPU first, as x.cpu() does in PyTorch")
                             .c_str());
}

HostArray array_of(const nb::dlpack::dltensor& tensor, nb::object keeper) {
  if (!is_host(tensor.device.device_type)) refuse_device(tensor.device.device_type);
  HostArray array;
  array.keeper = std::move(keeper);
  array.dtype = dtype_of(tensor.dtype);
  if (tensor.ndim < 0 || (tensor.ndim > 0 && !tensor.shape))
    throw nb::buffer_error("the DLPack tensor has no shape");
  array.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  int64_t size_bytes = size_of(array.dtype);
  for (const int64_t size : array.shape) {
    if (size < 0 || __builtin_mul_overflow(size_bytes, size, &size_bytes))
      throw nb::buffer_error(("the DLPack tensor has the shape " + to_string(array.shape)).c_str());
  }
  if (!tensor.data && size_bytes != 0) throw nb::buffer_error("the DLPack tensor has no memory");
  array.data = static_cast<const std::byte*>(tensor.data);
  if (tensor.data) array.data += tensor.byte_offset;
  const int64_t item = size_of(array.dtype);
  array.strides.resize(array.shape.size());
  int64_t step = item;
  for (size_t i = array.shape.size(); i-- > 0; step *= std::max<int64_t>(array.shape[i], 1))
    array.strides[i] = tensor.strides ? tensor.strides[i] * item : step;
  return array;
}

template <class Struct>
nb::object keeper_of(Struct* managed) {
  return nb::capsule(managed, [](void* held) noexcept {
    auto* const tensor = static_cast<Struct*>(held);
    if (tensor->release) tensor->release(tensor);
  });
}

template <class Struct>
Struct* take(nb::handle capsule, const char* name, const char* used_name) {
  void* const pointer = PyCapsule_GetPointer(capsule.ptr(), name);
  if (!pointer || PyCapsule_SetName(capsule.ptr(), used_name) != 0) throw nb::python_error();
  return static_cast<Struct*>(pointer);
}

nb::object call_dlpack(nb::handle object, int32_t device_type, Copying copying) {
  nb::dict keywords;
  keywords["max_version"] = nb::make_tuple(kMajor, kMinor);
  if (!is_host(device_type)) {
    if (copying == Copying::Never) refuse_device(device_type);
    keywords["dl_device"] = nb::make_tuple(kCpu, 0);
  }
  try {
    return object.attr("__dlpack__")(**keywords);
  } catch (nb::python_error& error) {
    const bool is_old = error.matches(PyExc_TypeError);
    if (!is_host(device_type) && (is_old || error.matches(PyExc_BufferError)))
      refuse_device(device_type);
    if (!is_old) throw;
  }
  return object.attr("__dlpack__")();  // of before DLPack 1.0
}

/// A tensor's elements while another library uses them.
struct Exported {
  HostValues values;
  Shape shape;
  std::vector<int64_t> strides;

  Exported(const Tensor& source, HostValues held)
      : values(std::move(held)), shape(source.bound_shape()), strides(shape.size()) {
    int64_t step = 1;
    for (size_t i = shape.size(); i-- > 0; step *= std::max<int64_t>(shape[i], 1))
      strides[i] = step;
  }
  nb::dlpack::dltensor tensor(DType dtype) {
    nb::dlpack::dltensor made;
    made.data = const_cast<std::byte*>(values.data);
    made.device = {kCpu, 0};
    made.ndim = static_cast<int32_t>(shape.size());
    made.dtype = dlpack_of(dtype);
    made.shape = shape.data();
    made.strides = strides.data();
    return made;
  }
};

template <class Struct>
nb::object capsule_of(std::unique_ptr<Exported> exported, DType dtype, const char* name,
                      PyCapsule_Destructor destructor, uint64_t flags) {
  auto managed = std::make_unique<Struct>();
  managed->tensor = exported->tensor(dtype);
  if constexpr (std::is_same_v<Struct, VersionedManaged>) managed->flags = flags;
  managed->context = exported.get();
  managed->release = [](Struct* self) {
    delete static_cast<Exported*>(self->context);
    delete self;
  };
  nb::object capsule = nb::steal(PyCapsule_New(managed.get(), name, destructor));
  if (!capsule.is_valid()) throw nb::python_error();
  managed.release();
  exported.release();
  return capsule;
}

template <class Struct>
void release_unused(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;
  auto* const managed = static_cast<Struct*>(PyCapsule_GetPointer(capsule, name));
  managed->release(managed);
}

void require_cpu(nb::handle device) {
  if (device.is_none()) return;
  std::pair<int, int> wanted;
  if (!nb::try_cast(device, wanted)) throw nb::type_error("dl_device is a pair of integers");
  if (wanted != std::pair(kCpu, 0))
    throw nb::buffer_error("plugrad hands out host memory only: dl_device=(1, 0)");
}

nb::object export_tensor(const Tensor& self, nb::handle stream, nb::handle max_version,
                         nb::handle device, std::optional<bool> copy) {
  require_cpu(device);
  if (!stream.is_none()) throw nb::buffer_error("host memory has no stream: leave stream out");
  std::pair<uint32_t, uint32_t> version{0, 0};
  if (!max_version.is_none() && !nb::try_cast(max_version, version))
    throw nb::type_error("max_version is a pair of integers");
  const bool is_versioned = version.first >= kMajor;
  // A capsule of before 1.0 cannot say that its memory is read-only: it shares memory only if asked.
  const Copying copying = copy ? (*copy ? Copying::Always : Copying::Never)
                               : (is_versioned ? Copying::IfNeeded : Copying::Always);
  auto values = values_of(self, copying);
  if (!values)
    throw nb::buffer_error(
        "these values are handed out only as a copy, because they are in memory of a device or on "
        "a mesh: leave out copy=False");
  const DType dtype = strong(self.dtype());
  const uint64_t flags = values->is_copy ? kIsCopied : kReadOnly;
  auto exported = std::make_unique<Exported>(self, std::move(*values));
  if (is_versioned)
    return capsule_of<VersionedManaged>(
        std::move(exported), dtype, kVersionedName,
        [](PyObject* capsule) { release_unused<VersionedManaged>(capsule, kVersionedName); },
        flags);
  return capsule_of<Managed>(
      std::move(exported), dtype, kName,
      [](PyObject* capsule) { release_unused<Managed>(capsule, kName); }, flags);
}

}  // namespace

HostArray array_of_capsule(nb::handle capsule) {
  const char* const name = PyCapsule_GetName(capsule.ptr());
  const std::string_view known = name ? name : "";
  if (!name) PyErr_Clear();
  if (known == kVersionedName) {
    auto* const managed = take<VersionedManaged>(capsule, kVersionedName, kUsedVersionedName);
    nb::object keeper = keeper_of(managed);
    if (managed->major != kMajor)
      throw nb::buffer_error(("DLPack " + std::to_string(managed->major) + "." +
                              std::to_string(managed->minor) + " is unknown; 1.x is read")
                                 .c_str());
    return array_of(managed->tensor, std::move(keeper));
  }
  if (known == kName) {
    auto* const managed = take<Managed>(capsule, kName, kUsedName);
    nb::object keeper = keeper_of(managed);
    return array_of(managed->tensor, std::move(keeper));
  }
  throw nb::buffer_error(known == kUsedName || known == kUsedVersionedName
                             ? "this DLPack capsule has been used: a capsule is read once"
                             : "this capsule holds no DLPack tensor");
}

HostArray array_of_dlpack(nb::handle object, Copying copying) {
  std::pair<int, int> device;
  if (!nb::try_cast(object.attr("__dlpack_device__")(), device))
    throw nb::buffer_error("__dlpack_device__() returned no pair of integers");
  const nb::object capsule = call_dlpack(object, device.first, copying);
  if (!PyCapsule_CheckExact(capsule.ptr()))
    throw nb::buffer_error("__dlpack__() returned no capsule");
  return array_of_capsule(capsule);
}

void bind_dlpack(nb::class_<Tensor>& tensor) {
  tensor.def(
      "__dlpack__", export_tensor, nb::kw_only(), "stream"_a = nb::none(),
      "max_version"_a = nb::none(), "dl_device"_a = nb::none(), "copy"_a = nb::none(),
      nb::sig("def __dlpack__(self, *, stream: None = None, max_version: tuple[int, int] | None = "
              "None, dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any"),
      "A DLPack capsule of the values in host memory, which are computed. They are read-only, and "
      "shared with the tensor where the host can read its device's memory; a reader of before "
      "DLPack 1.0 gets a copy, or with copy=False the memory itself, which it must not write to. "
      "Errors: BufferError for another device, and for copy=False where only a copy can be given.");
  tensor.def(
      "__dlpack_device__", [](const Tensor&) { return nb::make_tuple(kCpu, 0); },
      nb::sig("def __dlpack_device__(self) -> tuple[int, int]"),
      "(1, 0), the host: values of other devices are copied there.");
}

}  // namespace plugrad::python

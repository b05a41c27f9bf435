// Tensors from arrays of other libraries, and what those expect of a tensor.
#include <sstream>

#include "arguments.h"
#include "bind.h"
#include "exchange/arrays.h"
#include "exchange/dlpack.h"
#include "exchange/held_objects.h"
#include "exchange/pickles.h"
#include "place.h"

namespace plugrad::python {

namespace {

Copying copying_of(std::optional<bool> copy) {
  if (!copy) return Copying::IfNeeded;
  return *copy ? Copying::Always : Copying::Never;
}

[[noreturn]] void refuse_object(nb::handle object, const std::string& needed) {
  const std::string type = nb::cast<std::string>(nb::str(object.type()));
  throw nb::type_error((needed + ", not " + type).c_str());
}

/// In the dtype, by a copy only if it is another one.
Tensor in_dtype(const Tensor& tensor, std::optional<DType> dtype, std::optional<bool> copy) {
  if (!dtype || *dtype == tensor.dtype()) return tensor;
  if (copy && !*copy)
    throw nb::value_error("another dtype needs a copy: leave out copy=False or dtype");
  return tensor.cast(*dtype);
}

Tensor as_tensor(nb::handle object, std::optional<DType> dtype, const DeviceLike& device,
                 std::optional<bool> copy) {
  const Place place;
  Tensor* known = nullptr;
  if (nb::try_cast(object, known, false) && known) {
    const bool moves = !device.name.empty() && device.name != known->device();
    if (moves && copy && !*copy)
      throw nb::value_error("another device needs a copy: leave out copy=False or device");
    const Tensor same = moves ? known->to(device.name) : *known;
    const Tensor made = in_dtype(same, dtype, copy);
    return copy && *copy && !moves && made.dtype() == known->dtype() ? made.clone() : made;
  }
  const bool is_list = PyList_Check(object.ptr()) || PyTuple_Check(object.ptr());
  if (!is_list)
    if (auto array = array_of_object(object, copying_of(copy)))
      return in_dtype(tensor_of(std::move(*array), device.name, copying_of(copy)), dtype, copy);
  if (copy && !*copy)
    throw nb::value_error("a tensor of numbers or lists is a copy: leave out copy=False");
  return nb::cast<Tensor>(nb::type<Tensor>()(
      object, dtype, device.name.empty() ? nb::object(nb::none()) : nb::str(device.name.c_str())));
}

Tensor from_numpy(nb::handle object) {
  const Place place;
  const bool is_numpy = nb::hasattr(object, "__array_struct__");  // classes have it, too
  auto array = is_numpy ? array_of_object(object) : std::nullopt;
  if (!array) refuse_object(object, "a NumPy array is needed");
  return tensor_of(std::move(*array), {}, Copying::IfNeeded);
}

Tensor from_dlpack(nb::handle object, const DeviceLike& device, std::optional<bool> copy) {
  const Place place;
  const Copying copying = copying_of(copy);
  const std::string_view wanted = device.name == "cpu" ? "CPU" : std::string_view(device.name);
  if (PyCapsule_CheckExact(object.ptr()))
    return tensor_of(array_of_capsule(object), wanted, copying);
  Tensor* known = nullptr;
  if (nb::try_cast(object, known, false) && known) return as_tensor(object, {}, device, copy);
  if (!nb::hasattr(object, "__dlpack__") || !nb::hasattr(object, "__dlpack_device__"))
    refuse_object(object, "an object with __dlpack__ and __dlpack_device__ is needed");
  HostArray array = array_of_dlpack(object, copying);
  if (copying == Copying::Never && !array.is_plain())
    throw nb::buffer_error("only row-major memory is used without a copy: leave out copy=False");
  return tensor_of(std::move(array), wanted, copying);
}

std::string escaped(std::string_view text) {
  std::string html;
  for (const char c : text) {
    if (c == '<')
      html += "&lt;";
    else if (c == '>')
      html += "&gt;";
    else if (c == '&')
      html += "&amp;";
    else
      html += c;
  }
  return html;
}

/// "Tensor(2, 3) f32 on CPU", and whether it is lazy; runs nothing.
std::string heading(const Tensor& self) {
  std::ostringstream out;
  out << self;
  return out.str();
}

std::string html(const Tensor& self) {
  std::string text = "<div><code>" + escaped(heading(self)) + "</code>";
  if (self.is_realized()) {
    const Released released;
    text += "<pre>" + escaped(to_string(self)) + "</pre>";
  }
  return text + "</div>";
}

void bind_constructors(nb::module_& module) {
  module.def(
      "asarray", as_tensor, "x"_a, "dtype"_a = nb::none(), "device"_a = nb::none(), nb::kw_only(),
      "copy"_a.none() = nb::none(),
      nb::sig("def asarray(x: Any, dtype: DTypeLike | None = None, device: str | None = None, *, "
              "copy: bool | None = None) -> Tensor"),
      "The tensor of anything that Tensor() takes. Row-major arrays of the same dtype in host "
      "memory are used in place, unless copy=True: do not write to them while the tensor lives, "
      "since such writes may or may not be seen. Errors: as Tensor(); ValueError for copy=False "
      "where a copy is needed.");
  module.def(
      "from_numpy", from_numpy, "array"_a,
      nb::sig("def from_numpy(array: numpy.ndarray) -> Tensor"),
      "The tensor of a NumPy array, whose memory it uses in place where the array is row-major "
      "and in native byte order; other arrays are copied. Do not write to the array while the "
      "tensor lives. Errors: TypeError for other objects and for dtypes that plugrad lacks.");
  module.def(
      "from_dlpack", from_dlpack, "x"_a, nb::kw_only(), "device"_a = nb::none(),
      "copy"_a.none() = nb::none(),
      nb::sig("def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) "
              "-> Tensor"),
      "The tensor of an array of PyTorch, JAX, NumPy or another library with DLPack, whose memory "
      "it uses in place where that is row-major and readable by the host; other arrays are "
      "copied. Errors: BufferError for used capsules, unknown devices, and copy=False where a "
      "copy is needed; TypeError for dtypes that plugrad lacks and for objects without DLPack.");
}

}  // namespace

void bind_exchange(nb::module_& module, nb::class_<Tensor>& tensor) {
  bind_held_objects();
  bind_constructors(module);
  bind_dlpack(tensor);
  bind_pickles(module, tensor);
  tensor.def("_repr_html_", html, nb::sig("def _repr_html_(self) -> str"),
             "Shape, dtype and device, and the values of a tensor that has been computed.");
  tensor.def(
      "_repr_pretty_",
      [](const Tensor& self, nb::handle printer, bool) {
        std::string text = heading(self);
        if (self.is_realized()) {
          const Released released;
          text += "\n" + to_string(self);
        }
        printer.attr("text")(text);
      },
      nb::sig("def _repr_pretty_(self, printer: Any, cycle: bool) -> None"));
  // NumPy's operators leave array + tensor to the tensor.
  tensor.attr("__array_ufunc__") = nb::none();
  tensor.attr("__array_priority__") = 1000;
}

}  // namespace plugrad::python

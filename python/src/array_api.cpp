// What the Python array API standard asks of an array, apart from its operators.
#include "arguments.h"
#include "bind.h"
#include "place.h"

namespace plugrad::python {

void bind_array_api(nb::class_<Tensor>& tensor) {
  tensor.def_prop_ro(
      "mT",
      [](const Tensor& self) {
        const Place place;
        return self.transpose();
      },
      "The tensor with its last two axes swapped. Errors: ValueError below two axes.");
  tensor.def_prop_ro(
      "size",
      [](const Tensor& self) {
        const nb::object size = nb::module_::import_("plugrad._size").attr("Size");
        return size(self.numel(), self.shape());
      },
      nb::sig("def size(self) -> Size"),
      "The number of elements; called with an axis, as x.size(0), the number along the axis.");
  tensor.def(
      "to_device",
      [](const Tensor& self, std::string_view device, nb::handle stream) {
        if (!stream.is_none())
          throw nb::value_error(
              "[to_device] devices of plugrad order their work: leave out stream");
        const Place place;
        return self.to(device);
      },
      "device"_a, nb::kw_only(), "stream"_a = nb::none(),
      nb::sig("def to_device(self, device: str, /, *, stream: None = None) -> Tensor"),
      "The tensor on another device, as to(). Errors: ValueError for an unknown device.");
  tensor.def(
      "__array_namespace__",
      [](nb::handle, nb::handle version) {
        return nb::module_::import_("plugrad.array_api").attr("_info").attr("namespace")(version);
      },
      nb::kw_only(), "api_version"_a = nb::none(),
      nb::sig("def __array_namespace__(self, *, api_version: str | None = None) -> Any"),
      "The module plugrad.array_api, which has the functions of the Python array API standard. "
      "Errors: ValueError for a version of the standard that it does not have.");
}

}  // namespace plugrad::python

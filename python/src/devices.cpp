// Devices: the default one and plugins.
#include "arguments.h"
#include "bind.h"
#include "docs.h"

namespace plugrad::python {

void bind_devices(nb::module_& module) {
  module.def("default_device", &Device::default_device, doc("Device::default_device"));
  module.def("set_default_device", &Device::set_default_device, "name"_a,
             doc("Device::set_default_device"));
  module.def("add_plugin", &add_plugin, "path"_a, doc("add_plugin"));
}

}  // namespace plugrad::python

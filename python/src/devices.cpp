// Devices: the default one and plugins; and the processes of a program: plugrad.distributed.
#include "arguments.h"
#include "bind.h"
#include "docs.h"
#include "plugrad/distributed.h"

namespace plugrad::python {

namespace {

void bind_distributed(nb::module_& module) {
  nb::module_ made = module.def_submodule("_distributed", "The processes of a program.");
  made.def(
      "init",
      [] {
        const Released released;
        distributed::init();
      },
      doc("distributed::init"));
  made.def("is_initialized", &distributed::is_initialized, doc("distributed::is_initialized"));
  made.def("rank", &distributed::rank, doc("distributed::rank"));
  made.def("size", &distributed::size, doc("distributed::size"));
  made.def(
      "barrier",
      [] {
        const Released released;
        distributed::barrier();
      },
      doc("distributed::barrier"));
}

}  // namespace

void bind_devices(nb::module_& module) {
  bind_distributed(module);
  module.def("default_device", &Device::default_device, doc("Device::default_device"));
  module.def("set_default_device", &Device::set_default_device, "name"_a,
             doc("Device::set_default_device"));
  module.def("add_plugin", &add_plugin, "path"_a, doc("add_plugin"));
}

}  // namespace plugrad::python

// The extension module plugrad._plugrad.
#include "bind.h"
#include "place.h"

NB_MODULE(_plugrad, module) {
  using namespace plugrad::python;
  nb::set_leak_warnings(false);  // tensors and dtypes in globals live until the process ends
  module.doc() = "plugrad's C++ functions. Import plugrad instead.";
  bind_errors();
  bind_interpreter(module);
  bind_places();
  bind_dtypes(module);
  bind_devices(module);
  bind_sharding(module);
  bind_tensor(module);
  bind_functions(module);
  bind_layers(module);
  bind_optimisers(module);
  bind_data(module);
  bind_onnx(module);
  bind_state(module);
  bind_copies();
  bind_progress(module);
  bind_callbacks(module);
  bind_jit(module);
  bind_function_classes(module);
  bind_uops(module);
  bind_kernels(module);
  bind_scopes(module);
}

// Converts a module's tensors to another dtype or device.
#include "base/check.h"
#include "jit/trace.h"
#include "nn/become.h"
#include "plugrad/nn/state.h"
#include "tensor/handles.h"
#include "tensor/record.h"

namespace plugrad::nn {

void become(std::string_view function, const Tensor& tensor, const Tensor& changed) {
  tensor::Recorder r(function);
  engine::TensorState& state = *tensor::state_of(tensor);
  Id node = r.use(changed);
  node = r.graph().add(Op::Detach, r.dtype(node), {node});
  node = r.graph().add(Op::Contiguous, r.dtype(node), {node}, tensor::new_identity());
  r.session().make_value(state);
  r.session().assign(state, node);
  state.device = tensor::state_of(changed)->device;
  state.recorded = tensor::state_of(changed)->recorded;
  state.grad = nullptr;
}

void require_outside_jit(std::string_view function) {
  require(!jit_detail::JitTrace::active(),
          "[{}] inside a jitted function a replay would not do it again; convert the module before "
          "the call",
          function);
}

namespace {

template <class Change>
void change_all(const StateDict& state, const Change& change) {
  require_outside_jit("to");
  std::vector<Tensor> changed;
  for (const auto& [name, tensor] : state) {
    const Tensor value = change(tensor);
    if (value.dtype() == tensor.dtype() && value.device() == tensor.device()) continue;
    become("to", tensor, value);
    changed.push_back(tensor);
  }
  Tensor::realize(changed);
}

}  // namespace

void convert_state(const StateDict& state, DType dtype) {
  require_type(is_float(dtype), "[to] {} is no float; a module's floats become other floats",
               name_of(dtype));
  change_all(state, [&](const Tensor& tensor) {
    return is_float(tensor.dtype()) ? tensor.cast(dtype) : tensor;
  });
}

void move_state(const StateDict& state, std::string_view device) {
  change_all(state, [&](const Tensor& tensor) { return tensor.to(device); });
}

}  // namespace plugrad::nn

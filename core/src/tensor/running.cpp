#include "tensor/running.h"

namespace plugrad::tensor {

bool runs_on(DType dtype) {
  return dtype == DType::F32 || dtype == DType::I32 || dtype == DType::F64 || dtype == DType::I64;
}

Tensor run_scan(Op op, const Tensor& x, const Tensor& before) {
  const codegen::ScanForm form{op, x.dtype(), x.size(0), x.size(1), x.size(2), before.defined()};
  const auto writer = [form](std::string_view name, const pgr_device_caps& caps) {
    return codegen::write_scan(form, name, caps);
  };
  std::vector<Tensor> inputs = {x.detach()};
  if (before.defined()) inputs.push_back(before.detach());
  return run_written(codegen::name_of(form), writer, inputs, {x.shape(), x.dtype()});
}

}  // namespace plugrad::tensor

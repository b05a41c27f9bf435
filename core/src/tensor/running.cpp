#include "tensor/running.h"

#include "plugrad/function.h"
#include "plugrad/functional.h"
#include "tensor/index.h"

namespace plugrad::tensor {

namespace {

/// i32 and in range of it: a place outside of all rows is -1.
Tensor narrow_places(const Tensor& places, int64_t rows) {
  if (places.dtype() == DType::I32) return places;
  return where((places >= 0) & (places < rows), places, -1).cast(DType::I32);
}

/// Whether one set of places serves several outer elements.
bool is_shared(const Tensor& x, const Tensor& places) {
  return places.size(0) == 1 && x.size(0) != 1;
}

Tensor scattered(Op op, const Tensor& x, const Tensor& places, const Tensor& values) {
  const codegen::ScatterForm form{
      op, x.dtype(), x.size(0), x.size(1), places.size(1), x.size(2), is_shared(x, places)};
  const auto writer = [form](std::string_view name, const pgr_device_caps& caps) {
    return codegen::write_scatter(form, name, caps);
  };
  return run_written(codegen::name_of(form), writer, {x, places, values}, {x.shape(), x.dtype()});
}

/// Rows of x at places, out of range 0; x as in combine_at.
Tensor rows_at(const Tensor& x, const Tensor& places) {
  return with_scattered_gradient(x, places, [](const std::vector<Tensor>& in) {
    const Tensor hit = in[1].unsqueeze(-1) == Tensor::arange(in[0].size(1));
    return where(hit.unsqueeze(-1), in[0].unsqueeze(1), 0).sum(2, false, in[0].dtype());
  });
}

}  // namespace

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

Tensor combine_at(Op op, const Tensor& x, const Tensor& places, const Tensor& values) {
  const Tensor where_to = narrow_places(places, x.size(1));
  const CustomFunction function{
      "scatter",
      [op](FunctionContext&, const std::vector<Tensor>& in) {
        return std::vector{scattered(op, in[0], in[1], in[2])};
      },
      [](const FunctionContext& context, const std::vector<Tensor>& gradients) {
        const Tensor& g = gradients[0];
        return std::vector{g, Tensor(),
                           context.needs_gradient(2) ? rows_at(g, context.inputs()[1]) : Tensor()};
      }};
  if (op != Op::Add || !is_float(x.dtype()))
    return scattered(op, x.detach(), where_to.detach(), values.detach());
  return function({x, where_to, values})[0];
}

Tensor with_scattered_gradient(const Tensor& x, const Tensor& places, const Formula& read) {
  if (!is_float(x.dtype())) return read({x, places});
  const CustomFunction function{
      "gather",
      [read](FunctionContext&, const std::vector<Tensor>& in) { return std::vector{read(in)}; },
      [](const FunctionContext& context, const std::vector<Tensor>& gradients) {
        const Tensor& from = context.inputs()[0];
        const DType own = from.dtype(), wide = own == DType::F64 ? own : DType::F32;
        const Tensor zero = Tensor::zeros(from.shape(), wide, from.device());
        return std::vector{
            combine_at(Op::Add, zero, context.inputs()[1], gradients[0].cast(wide)).cast(own),
            Tensor()};
      }};
  return function({x, places})[0];
}

}  // namespace plugrad::tensor

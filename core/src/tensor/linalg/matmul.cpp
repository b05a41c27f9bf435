// Turns a matrix product into a product of expanded operands and a sum, which become one kernel.
#include "plugrad/functional.h"
#include "tensor/compute_dtype.h"
#include "tensor/lazy_text.h"
#include "tensor/record.h"
#include "tensor/recording/remembered.h"

namespace plugrad {

namespace {

[[noreturn]] void fail_inner(const Tensor& a, const Tensor& b) {
  std::string hint = "the last axis of the left and the second last of the right must agree";
  const int64_t k = a.size(-1);
  if (b.ndim() >= 2 && b.size(-1) == k)
    hint = "did you mean matmul(x, w.transpose())?";
  else if (a.ndim() >= 2 && a.size(-2) == b.size(b.ndim() >= 2 ? -2 : 0))
    hint = "did you mean matmul(x.transpose(), w)?";
  fail(ErrorKind::User, "[{}] inner sizes differ: {} x {}; {}", tensor::called("matmul"),
       tensor::shown_shape(a), tensor::shown_shape(b), hint);
}

Tensor product(const Tensor& left, const Tensor& right, std::optional<DType> dtype) {
  require(left.defined() && right.defined(), "[{}] a tensor is undefined; assign it a value first",
          tensor::called("matmul"));
  require(left.ndim() > 0 && right.ndim() > 0, "[{}] {} x {}: numbers have no inner axis; use *",
          tensor::called("matmul"), tensor::lazy_text(left), tensor::lazy_text(right));
  const DType common = tensor::dtype_or("matmul", dtype, promote(left.dtype(), right.dtype()));
  require_type(common != DType::Bool, "[{}] takes numbers, not bool; cast it",
               tensor::called("matmul"));
  const bool row = left.ndim() == 1, column = right.ndim() == 1;
  Tensor a = row ? left.unsqueeze(0) : left, b = column ? right.unsqueeze(1) : right;
  if (a.size(-1) != b.size(-2)) fail_inner(left, right);
  // f32 holds products of halves exactly and accumulates them; products of small integers must not
  // wrap.
  const DType sum_dtype = tensor::is_half(common) ? DType::F32
                          : dtype                 ? common
                                                  : tensor::narrow_sum_dtype(common);
  a = a.cast(sum_dtype).unsqueeze(-2);                    // (…, n, 1, k)
  b = b.cast(sum_dtype).transpose(-2, -1).unsqueeze(-3);  // (…, 1, m, k)
  Tensor y = (a * b).sum(-1, false, sum_dtype);
  if (tensor::is_half(common) || dtype) y = y.cast(common);
  if (row) y = y.squeeze(-2);
  return column ? y.squeeze(-1) : y;
}

}  // namespace

Tensor Tensor::matmul(const Tensor& other, std::optional<DType> dtype) const {
  const tensor::NamedFunction named("matmul");
  const Tensor* const operands[] = {this, &other};
  const int64_t options[] = {dtype ? static_cast<int64_t>(*dtype) : -1};
  return tensor::remembered("matmul", options, operands, tensor::Operands::Any,
                            [&] { return product(*this, other, dtype); });
}

Tensor Tensor::dot(const Tensor& other) const {
  const tensor::NamedFunction named("dot");
  return matmul(other);
}

Tensor Tensor::linear(const Tensor& weight, const Tensor& bias) const {
  const tensor::NamedFunction named("linear");
  const Tensor y = matmul(weight);
  return bias.defined() ? y + bias : y;
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  return a.matmul(b);
}
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return x.linear(weight, bias);
}

}  // namespace plugrad

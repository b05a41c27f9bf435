// Matrix products, windows, attention, losses, gradients.
#include "programs/operations.h"

namespace plugrad::programs {
namespace {

// Braces, not parentheses, around several draws: their order must be that of writing.

using Result = std::vector<Tensor>;

bool is_matrix(const Tensor& t) {
  return t.ndim() == 2 && t.dtype() != DType::Bool;
}
bool is_image(const Tensor& t) {
  return t.ndim() >= 2 && is_float(t.dtype());
}

// A variable as a batch of images.
Tensor image(Args& a) {
  const Tensor& x = a.tensor(is_image);
  const Shape s = x.shape();
  if (s.size() == 2) return x.reshape({1, 1, s[0], s[1]});
  if (s.size() == 3) return x.reshape({1, s[0], s[1], s[2]});
  require_fit(s.size() == 4);
  return x;
}

// Small weights, read from a variable's first values.
Tensor weights(Args& a, const Tensor& like, const Shape& shape) {
  const Tensor& from = a.real();
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  const Tensor flat = from.flatten();
  require_fit(flat.numel() > 0);
  const Tensor enough = flat.repeat({count / flat.numel() + 1}).shrink({{0, count}});
  return enough.reshape(shape).cast(like.dtype());
}

Result convolution(Args& a) {
  const Tensor x = image(a);
  const int64_t channels = x.size(1), groups = channels % 2 == 0 && a.chance(30) ? 2 : 1;
  const Tensor w =
      weights(a, x, Shape{groups * a.pick(1, 2), channels / groups, a.pick(1, 3), a.pick(1, 3)});
  ConvOptions options;
  options.stride = Pair{a.pick(1, 2), a.pick(1, 2)};
  options.padding = Padding{a.pick(0, 1), a.pick(0, 2), a.pick(0, 1), a.pick(0, 1)};
  options.dilation = a.pick(1, 2);
  options.groups = groups;
  return {conv2d(x, w, {}, options)};
}

Result pool(Args& a) {
  const Tensor x = image(a);
  PoolOptions options;
  if (a.chance(60)) options.stride = Pair{a.pick(1, 2), a.pick(1, 3)};
  options.padding = a.pick(0, 1);
  options.ceil_mode = a.chance(30);
  const Pair kernel{a.pick(2, 3), a.pick(2, 3)};
  if (a.chance(50)) return {x.max_pool2d(kernel, options)};
  options.count_include_pad = a.chance(50);
  return {x.avg_pool2d(kernel, options)};
}

Result attention(Args& a) {
  const Tensor& x = a.tensor(is_image);
  return {scaled_dot_product_attention(x, x * 0.5, x.flip({-1}), {}, a.chance(50))};
}

Result matmul_any(Args& a) {
  const Tensor& x =
      a.tensor([](const Tensor& t) { return t.ndim() > 0 && t.dtype() != DType::Bool; });
  const Tensor& y =
      a.tensor([](const Tensor& t) { return t.ndim() > 0 && t.dtype() != DType::Bool; });
  return {x.matmul(y)};
}

Result crossentropy(Args& a) {
  const Tensor& x = a.tensor(is_image);
  const Tensor labels = x.detach().cast(DType::I32).sum(-1) % std::max<int64_t>(x.size(-1), 1);
  CrossEntropyOptions options;
  options.label_smoothing = a.chance(30) ? 0.25 : 0.0;
  if (a.chance(30)) options.ignore_index = 1;
  options.reduction = a.chance(50) ? Reduction::None : Reduction::Sum;
  return {sparse_categorical_crossentropy(x, labels, options)};
}

// Gradients of a scalar computed from a variable, for leaves that the variable depends on.
Result gradients(Args& a) {
  const Tensor& x = a.real();
  World& world = a.world();
  const Variable first = a.leaf_variable();
  std::vector<Tensor> targets = {*world.slots.at(first).tensor};
  if (a.chance(30)) {
    const Variable second = a.leaf_variable();
    require_fit(second != first);
    targets.push_back(*world.slots.at(second).tensor);
  }
  const Tensor loss = a.chance(50) ? x.sum() : (x * x).sum() * 0.5;
  require_fit(loss.dtype() != DType::F8E4M3);
  return gradient(loss, targets);
}

// clang-format off: a table
const Operation kNetwork[] = {
    {"matmul", "matmul", matmul_any},
    {"matmul", "x @ x.T", [](Args& a) -> Result { const Tensor& x = a.tensor(is_matrix); return {x.matmul(x.transpose())}; }},
    {"matmul", "by expand and sum", [](Args& a) -> Result {
       const Tensor& x = a.tensor(is_matrix); const Tensor& y = a.tensor(is_matrix); return {(x.unsqueeze(2) * y.unsqueeze(0)).sum(1)}; }},
    {"network", "conv2d", convolution},
    {"network", "pool", pool},
    {"network", "attention", attention},
    {"network", "crossentropy", crossentropy},
    {"network", "mse_loss", [](Args& a) -> Result { const Tensor& x = a.real(); return {mse_loss(x, a.like(x))}; }},
    {"network", "binary_crossentropy_logits", [](Args& a) -> Result {
       const Tensor& x = a.real(); return {binary_crossentropy_logits(x, (a.like(x) > 0).cast(x.dtype()), Reduction::None)}; }},
    {"gradient", "gradient", gradients},
};
// clang-format on

}  // namespace

std::span<const Operation> network_operations() {
  return kNetwork;
}

}  // namespace plugrad::programs

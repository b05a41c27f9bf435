// User-defined operations: composed of others, with a custom gradient, or as a kernel.
#include <plugrad/plugrad.h>

#include <cmath>
#include <iostream>
using namespace plugrad;

// Composed operations fuse like built-in ones and are differentiable without further code.
Tensor my_gelu(const Tensor& x) {
  return x * 0.5 * (1 + (x / std::sqrt(2.0)).erf());
}
Tensor my_rms_norm(const Tensor& x, const Tensor& weight) {
  return x * (x.square().mean(-1, true) + 1e-6).rsqrt() * weight;
}
Tensor my_swiglu(const Tensor& x, const Tensor& gate, const Tensor& up) {
  return x.matmul(gate).silu() * x.matmul(up);
}

void show(const char* name, const Tensor& result) {
  const std::vector<Kernel> kernels = result.schedule();
  std::cout << name << ": " << kernels.size() << " kernel" << (kernels.size() == 1 ? "" : "s");
  for (const Kernel& kernel : kernels) std::cout << " " << kernel.name();
  std::cout << "\n";
}

// round() has derivative 0; the custom gradient is the identity's (straight-through estimator).
const CustomFunction round_through{
    "round_through",
    [](FunctionContext&, const std::vector<Tensor>& x) { return std::vector{x[0].round()}; },
    [](const FunctionContext&, const std::vector<Tensor>& gradients) { return gradients; }};

// out[i] = a[i]² + b[i], for every device: loops over loads and stores, which plugrad schedules.
UserKernel square_plus(int64_t n) {
  using ir::UOp;
  const UOp i = UOp::range(n, 0);
  const UOp out = UOp::param(0, DType::F32, n, true);
  const UOp a = UOp::param(1, DType::F32, n, false).load(i);
  const UOp b = UOp::param(2, DType::F32, n, false).load(i);
  return {.name = "square_plus",
          .ast = UOp::sink({out.store(i, a * a + b)}),
          .backward = [](const FunctionContext& call, const std::vector<Tensor>& g) {
            return std::vector{g[0] * 2 * call.inputs()[0], g[0]};
          }};
}

// The same kernel in C, for the CPU: one workgroup per element.
constexpr char kSource[] = R"(
void square_plus(void *const *buffers, const unsigned long *scalars,
                 unsigned long begin, unsigned long end) {
  float *restrict out = buffers[0];
  const float *a = buffers[1], *b = buffers[2];
  for (unsigned long i = begin; i < end; ++i) out[i] = a[i] * a[i] + b[i];
})";

int main() {
  const Tensor x = Tensor::randn({32, 64}).realize(), weight = Tensor::ones({64}).realize();
  const Tensor gate = Tensor::randn({64, 64}).realize(), up = Tensor::randn({64, 64}).realize();
  show("gelu", my_gelu(x));
  show("rms_norm", my_rms_norm(x, weight));
  show("swiglu", my_swiglu(x, gate, up));

  const Tensor t = Tensor::from({0.4f, 1.6f}).requires_grad_();
  const Tensor rounded = round_through({t})[0];
  const std::vector<float> through = gradient((rounded * 3).sum(), {t})[0].to_vector<float>();
  std::cout << rounded.to_vector<float>()[1] << " with slope " << through[1] << "\n";  // 2, 3

  const Tensor a = Tensor::from({1.f, 2.f, 3.f}).requires_grad_(),
               b = Tensor::from({1.f, 1.f, 1.f});
  UserKernel kernel = square_plus(3);
  const Tensor y = kernel({a, b}, {{{3}}})[0];
  const std::vector<float> slope = gradient(y.sum(), {a})[0].to_vector<float>();
  show("the kernel", y);
  std::cout << y.to_vector<float>()[2] << " with slope " << slope[2] << "\n";  // 10, 6

  kernel.sources = {{"CPU", kSource}};
  kernel.groups = {3, 1, 1};
  std::cout << kernel({a, b}, {{{3}}})[0].to_vector<float>()[1] << "\n";  // 5
}

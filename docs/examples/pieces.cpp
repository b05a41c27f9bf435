// Code shown by the pages about jit, variable sizes, optimisations, user kernels and devices.
#include <plugrad/plugrad.h>

#include <iostream>
#include <string>
#include <utility>
#include <vector>
using namespace plugrad;

namespace {

void jit_page() {
  Tensor::manual_seed(1);
  nn::Linear net(4, 3);
  optim::SGD opt(nn::parameters(net), {.lr = 0.1});
  std::vector<std::pair<Tensor, Tensor>> batches;
  for (int i = 0; i < 4; ++i)
    batches.emplace_back(Tensor::randn({8, 4}).realize(), Tensor::randint({8}, 0, 3).realize());
  auto step = jit([&](const Tensor& x, const Tensor& y) {
    opt.zero_grad();
    Tensor loss = sparse_categorical_crossentropy(net(x), y);
    loss.backward();
    opt.step();
    return loss;
  });
  for (auto [x, y] : batches) step(x, y);
  std::cout << "jit: " << step.recordings() << " recording\n";
}

void variable_sizes_page() {
  nn::Linear model(256, 8);
  std::vector<Tensor> sentences;
  for (int64_t n : {3, 37, 5}) sentences.push_back(Tensor::randn({n, 256}).realize());
  const Variable length("length", 1, 512);
  auto step = jit([&](const Tensor& x) { return model(x); });  // x: (length, 256)
  for (const Tensor& sentence : sentences) step(length.fit(sentence, 0));
  std::cout << "variable sizes: " << step.recordings() << " recording\n";
}

void optimisations_page() {
  const Tensor a = Tensor::randn({64, 64}).realize(), y = matmul(a, a);
  const std::string planned = y.kernelize()[0].name(), list = y.schedule()[0].optimisations();
  const OptimisationScope lists(planned + ": " + list);  // kernels made from here on
  std::cout << "optimisations: " << (y.schedule()[0].optimisations() == list) << "\n";
}

void user_kernel_page() {
  using ir::UOp;
  const int64_t rows = 2, width = 3;
  const UOp out = UOp::param(0, DType::F32, rows, true);
  const UOp in = UOp::param(1, DType::F32, rows * width, false);
  const UOp i = UOp::range(rows, 0), k = UOp::range(width, 1, true);
  const UOp value = in.load(i * width + k);
  const UOp sum = (value * value).reduce("add", {k});
  UserKernel squares{.name = "sum_of_squares", .ast = UOp::sink({out.store(i, sum)})};
  const Tensor x = Tensor::from<float>({{1, 2, 3}, {4, 5, 6}});
  std::cout << "user kernel: " << to_string(squares({x}, {{{rows}}})[0]) << "\n";
}

void devices_page() {
  try {
    Tensor a = Tensor::rand({1024, 1024}, DType::F32, "OPENCL");
    Tensor b = a.to("VULKAN").exp().to("CPU");  // runs nothing yet: reading b runs all
    std::cout << "devices: " << (b.min().item<float>() >= 1) << "\n";
  } catch (const Error& error) {
    std::cout << "devices: " << error.what() << "\n";  // where one of the two is not here
  }
}

}  // namespace

int main() {
  jit_page();
  variable_sizes_page();
  optimisations_page();
  user_kernel_page();
  devices_page();
}

// A small U-Net that removes noise from images: two levels down, two levels up, and skip
// connections. Trained with SGD, evaluated with BatchNorm's running statistics.
#include <plugrad/plugrad.h>

#include "formula.h"
#include "recorded.h"
using namespace plugrad;

constexpr int64_t kBatch = 4, kSize = 24;
constexpr int kSteps = 12;

struct ConvPair {
  ConvPair(int64_t in, int64_t out)
      : conv1(in, out, 3, {.padding = 1}, false), norm1(out), conv2(out, out, 3, {.padding = 1}) {}
  nn::Conv2d conv1;
  nn::BatchNorm norm1;
  nn::Conv2d conv2;
  PLUGRAD_FIELDS(conv1, norm1, conv2)

  Tensor operator()(const Tensor& x) { return relu(conv2(relu(norm1(conv1(x))))); }
};

struct UNet {
  ConvPair down1{1, 8}, down2{8, 16}, bottom{16, 32};
  nn::ConvTranspose2d up2{32, 16, 2, {.stride = 2}};
  ConvPair join2{32, 16};
  nn::ConvTranspose2d up1{16, 8, 2, {.stride = 2}};
  ConvPair join1{16, 8};
  nn::Conv2d out{8, 1, 1};
  PLUGRAD_FIELDS(down1, down2, bottom, up2, join2, up1, join1, out)

  // Shape: (n, 1, h, w) -> (n, 1, h, w), where h and w are multiples of 4.
  Tensor operator()(const Tensor& x) {
    const Tensor a = down1(x);
    const Tensor b = down2(max_pool2d(a));
    const Tensor c = bottom(max_pool2d(b));
    const Tensor d = join2(cat({up2(c), b}, 1));
    return out(join1(cat({up1(d), a}, 1)));
  }
};

// Trains from the same weights each time. `use_jit`: the steps are recorded and replayed.
void train(bool use_jit, programs::Recorded& recorded) {
  const std::string kind = use_jit ? "jitted" : "not jitted";
  UNet net;
  programs::set_parameters(net);
  const Tensor clean = programs::noise({kBatch, 1, kSize, kSize}, 1);
  optim::SGD opt(nn::parameters(net), {.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-4});
  const auto step = [&](const Tensor& noisy) {
    opt.zero_grad();
    const Tensor loss = mse_loss(net(noisy), clean);
    loss.backward();
    opt.step();
    return loss;
  };
  auto jitted = jit(step);

  std::vector<double> losses;
  programs::StepTimes times;
  for (int i = 0; i < kSteps; ++i) {
    const Tensor noisy = clean + programs::noise(clean.shape(), 10 + i, 0.3);
    losses.push_back((use_jit ? jitted(noisy) : step(noisy)).item<double>());
    times.step_done();
    if (i == 0)  // gradients are there until the next zero_grad()
      recorded.compare(kind + ", gradients of step 1", "gradients",
                       programs::gradient_norms(opt.parameters()), 1e-4);
  }
  times.print(kind);
  recorded.compare(kind + ", losses", "losses", losses, 1e-5);

  const nn::TrainingScope evaluation(false);
  const double loss = mse_loss(net(clean), clean).item<double>();
  recorded.compare(kind + ", loss of the evaluation", "evaluation", {loss}, 1e-4);
}

int main(int argc, char** argv) {
  if (argc != 2) return std::cerr << "usage: unet RECORDED.txt\n", 2;
  programs::Recorded recorded(argv[1]);
  train(false, recorded);
  train(true, recorded);
  return recorded.failures();
}

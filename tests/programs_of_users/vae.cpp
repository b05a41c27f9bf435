// A variational autoencoder whose loss contains the norm of its own input gradient, so that
// training needs second-order gradients. Trained with Adam; the random numbers of the latent code
// are an argument of the step.
#include <plugrad/plugrad.h>

#include "formula.h"
#include "recorded.h"
using namespace plugrad;

constexpr int64_t kBatch = 16, kPixels = 64, kHidden = 48, kCode = 6;
constexpr int kSteps = 20;

struct Vae {
  nn::Linear into{kPixels, kHidden}, mean{kHidden, kCode}, log_variance{kHidden, kCode};
  nn::Linear from_code{kCode, kHidden}, out{kHidden, kPixels};
  PLUGRAD_FIELDS(into, mean, log_variance, from_code, out)

  Tensor decode(const Tensor& code) const { return out(silu(from_code(code))); }
};

struct Losses {
  Tensor reconstruction, divergence, penalty;  // each one number
};

// `x` in [0, 1] of shape (n, kPixels), `random` standard normal of shape (n, kCode).
Losses losses_of(const Vae& net, const Tensor& x, const Tensor& random) {
  // A separate leaf: the penalty needs the gradient of the reconstruction with respect to the
  // input.
  const Tensor input = x.detach().requires_grad_();
  const Tensor hidden = tanh(net.into(input));
  const Tensor mean = net.mean(hidden), log_variance = net.log_variance(hidden);
  const Tensor code = mean + (log_variance * 0.5).exp() * random;
  const Tensor logits = net.decode(code);
  const auto samples = static_cast<double>(x.size(0));
  const Tensor reconstruction = binary_crossentropy_logits(logits, x, Reduction::Sum) / samples;
  const Tensor divergence =
      (mean.square() + log_variance.exp() - 1.0 - log_variance).sum() * (0.5 / samples);
  const Tensor slope = gradient(reconstruction * samples, {input})[0];
  const Tensor penalty = ((slope.square().sum(1) + 1e-6).sqrt() - 1.0).square().mean();
  return {reconstruction, divergence, penalty};
}

void train(bool use_jit, programs::Recorded& recorded) {
  const std::string kind = use_jit ? "jitted" : "not jitted";
  Vae net;
  programs::set_parameters(net);
  optim::Adam opt(nn::parameters(net), {.lr = 3e-3});
  const auto step = [&](const Tensor& x, const Tensor& random) {
    opt.zero_grad();
    const Losses losses = losses_of(net, x, random);
    (losses.reconstruction + losses.divergence + losses.penalty * 10.0).backward();
    opt.step();
    return std::vector{losses.reconstruction, losses.divergence, losses.penalty};
  };
  auto jitted = jit(step);

  std::vector<std::vector<double>> parts(3);
  programs::StepTimes times;
  for (int i = 0; i < kSteps; ++i) {
    const Tensor x = programs::noise({kBatch, kPixels}, 10 + i, 0.5, 0.5);
    const Tensor random = programs::noise({kBatch, kCode}, 50 + i, std::sqrt(3.0));
    const std::vector<Tensor> losses = use_jit ? jitted(x, random) : step(x, random);
    for (size_t part = 0; part < 3; ++part) parts[part].push_back(losses[part].item<double>());
    times.step_done();
    if (i == 0)
      recorded.compare(kind + ", gradients of step 1", "gradients",
                       programs::gradient_norms(opt.parameters()), 1e-4);
  }
  times.print(kind);
  recorded.compare(kind + ", reconstruction", "reconstruction", parts[0], 1e-5);
  recorded.compare(kind + ", divergence", "divergence", parts[1], 1e-5);
  recorded.compare(kind + ", gradient penalty", "penalty", parts[2], 1e-4);
}

int main(int argc, char** argv) {
  if (argc != 2) return std::cerr << "usage: vae RECORDED.txt\n", 2;
  programs::Recorded recorded(argv[1]);
  train(false, recorded);
  train(true, recorded);
  return recorded.failures();
}

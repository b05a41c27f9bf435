// A vision transformer: an image becomes a sequence of patches, blocks of attention process them
// with a class token, and the class token's last vector is classified. Trained with AdamW and a
// learning rate with warm-up.
#include <plugrad/plugrad.h>

#include "formula.h"
#include "recorded.h"
using namespace plugrad;

constexpr int64_t kBatch = 8, kSize = 16, kPatch = 4, kWidth = 32, kHeads = 4, kClasses = 10;
constexpr int64_t kPatches = (kSize / kPatch) * (kSize / kPatch);
constexpr int kSteps = 12;

struct Block {
  nn::LayerNorm norm1{{kWidth}};
  nn::MultiHeadAttention attention{kWidth, kHeads};
  nn::LayerNorm norm2{{kWidth}};
  nn::Linear up{kWidth, 4 * kWidth}, down{4 * kWidth, kWidth};
  PLUGRAD_FIELDS(norm1, attention, norm2, up, down)

  Tensor operator()(const Tensor& x) const {
    const Tensor h = x + attention(norm1(x));
    return h + down(gelu(up(norm2(h)), false));
  }
};

struct ViT {
  nn::Conv2d patches{3, kWidth, kPatch, {.stride = kPatch}};
  Tensor class_token = Tensor::zeros({1, 1, kWidth}).requires_grad_();
  Tensor positions = Tensor::zeros({1, kPatches + 1, kWidth}).requires_grad_();
  std::vector<Block> blocks = std::vector<Block>(2);
  nn::LayerNorm norm{{kWidth}};
  nn::Linear head{kWidth, kClasses};
  PLUGRAD_FIELDS(patches, class_token, positions, blocks, norm, head)

  // Shape: (n, 3, kSize, kSize) -> (n, kClasses).
  Tensor operator()(const Tensor& images) const {
    const Tensor rows = patches(images).rearrange("n c h w -> n (h w) c");
    const Tensor tokens = class_token.expand({images.size(0), 1, kWidth});
    Tensor x = cat({tokens, rows}, 1) + positions;
    for (const Block& block : blocks) x = block(x);
    return head(norm(x[{Slice(), 0}]));
  }
};

void train(bool use_jit, programs::Recorded& recorded) {
  const std::string kind = use_jit ? "jitted" : "not jitted";
  ViT net;
  programs::set_parameters(net);
  optim::AdamW opt(nn::parameters(net), {.lr = 1e-3, .weight_decay = 0.05});
  const auto step = [&](const Tensor& images, const Tensor& classes) {
    opt.zero_grad();
    const Tensor loss = cross_entropy(net(images), classes, {.label_smoothing = 0.1});
    loss.backward();
    opt.step();
    return loss;
  };
  auto jitted = jit(step);

  std::vector<double> losses;
  programs::StepTimes times;
  for (int i = 0; i < kSteps; ++i) {
    opt.set_learning_rate(1e-3 * std::min(i + 1, 4));
    const Tensor images = programs::noise({kBatch, 3, kSize, kSize}, 10 + i);
    const Tensor classes = programs::integers({kBatch}, 50 + i, kClasses);
    losses.push_back((use_jit ? jitted(images, classes) : step(images, classes)).item<double>());
    times.step_done();
    if (i == 0)
      recorded.compare(kind + ", gradients of step 1", "gradients",
                       programs::gradient_norms(opt.parameters()), 1e-4);
  }
  times.print(kind);
  recorded.compare(kind + ", losses", "losses", losses, 1e-5);

  const Tensor scores = net(programs::noise({kBatch, 3, kSize, kSize}, 99));
  recorded.compare(kind + ", scores of new images", "scores", scores.to_vector<double>(), 1e-3,
                   0.1);
}

int main(int argc, char** argv) {
  if (argc != 2) return std::cerr << "usage: vit RECORDED.txt\n", 2;
  programs::Recorded recorded(argv[1]);
  train(false, recorded);
  train(true, recorded);
  return recorded.failures();
}

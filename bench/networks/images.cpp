// ResNet-18 and 50, MobileNetV2 and a U-Net.
#include "bench/networks/networks.h"
#include "bench/networks/resnet18.h"
#include "plugrad/functional.h"

namespace plugrad::bench {
namespace {

struct Bottleneck {
  Bottleneck(int64_t in, int64_t width, int64_t stride)
      : conv1(in, width, 1, {}, false),
        conv2(width, width, 3, {.stride = stride, .padding = 1}, false),
        conv3(width, 4 * width, 1, {}, false),
        norm1(width),
        norm2(width),
        norm3(4 * width) {
    if (in == 4 * width) return;
    around.emplace(in, 4 * width, 1, ConvOptions{.stride = stride}, false);
    around_norm.emplace(4 * width);
  }
  nn::Conv2d conv1, conv2, conv3;
  nn::BatchNorm norm1, norm2, norm3;
  std::optional<nn::Conv2d> around;
  std::optional<nn::BatchNorm> around_norm;
  PLUGRAD_FIELDS(conv1, conv2, conv3, norm1, norm2, norm3, around, around_norm)

  Tensor operator()(const Tensor& x) {
    const Tensor h = norm3(conv3(relu(norm2(conv2(relu(norm1(conv1(x))))))));
    return relu(h + (around ? (*around_norm)((*around)(x)) : x));
  }
};

struct ResNet50 {
  ResNet50() {
    constexpr int kBlocks[] = {3, 4, 6, 3};
    int64_t in = 64, width = 64;
    for (const int count : kBlocks) {
      for (int i = 0; i < count; ++i, in = 4 * width)
        blocks.emplace_back(in, width, i == 0 && width > 64 ? 2 : 1);
      width *= 2;
    }
  }
  nn::Conv2d first{3, 64, 7, {.stride = 2, .padding = 3}, false};
  nn::BatchNorm norm{64};
  std::vector<Bottleneck> blocks;
  nn::Linear out{2048, 1000};
  PLUGRAD_FIELDS(first, norm, blocks, out)

  Tensor operator()(const Tensor& x) {
    Tensor h = relu(norm(first(x))).max_pool2d(3, {.stride = 2, .padding = 1});
    for (Bottleneck& block : blocks) h = block(h);
    return out(h.mean({2, 3}));
  }
};

struct InvertedResidual {
  InvertedResidual(int64_t in, int64_t out, int64_t stride, int64_t factor)
      : middle(in * factor, in * factor, 3, {.stride = stride, .padding = 1, .groups = in * factor},
               false),
        project(in * factor, out, 1, {}, false),
        middle_norm(in * factor),
        project_norm(out),
        is_residual(stride == 1 && in == out) {
    if (factor == 1) return;
    expand.emplace(in, in * factor, 1, ConvOptions{}, false);
    expand_norm.emplace(in * factor);
  }
  std::optional<nn::Conv2d> expand;
  std::optional<nn::BatchNorm> expand_norm;
  nn::Conv2d middle, project;
  nn::BatchNorm middle_norm, project_norm;
  bool is_residual;
  PLUGRAD_FIELDS(expand, expand_norm, middle, project, middle_norm, project_norm)

  Tensor operator()(const Tensor& x) {
    Tensor h = expand ? (*expand_norm)((*expand)(x)).relu6() : x;
    h = project_norm(project(middle_norm(middle(h)).relu6()));
    return is_residual ? x + h : h;
  }
};

struct MobileNetV2 {
  MobileNetV2() {
    struct Stage {
      int64_t factor, out;
      int count;
      int64_t stride;
    };
    constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                 {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    int64_t in = 32;
    for (const Stage& s : kStages)
      for (int i = 0; i < s.count; ++i, in = s.out)
        blocks.emplace_back(in, s.out, i == 0 ? s.stride : 1, s.factor);
  }
  nn::Conv2d first{3, 32, 3, {.stride = 2, .padding = 1}, false}, last{320, 1280, 1, {}, false};
  nn::BatchNorm first_norm{32}, last_norm{1280};
  std::vector<InvertedResidual> blocks;
  nn::Linear out{1280, 1000};
  PLUGRAD_FIELDS(first, last, first_norm, last_norm, blocks, out)

  Tensor operator()(const Tensor& x) {
    Tensor h = first_norm(first(x)).relu6();
    for (InvertedResidual& block : blocks) h = block(h);
    return out(last_norm(last(h)).relu6().mean({2, 3}));
  }
};

// Two convolutions, each with group normalisation.
struct DoubleConv {
  DoubleConv(int64_t in, int64_t out)
      : conv1(in, out, 3, {.padding = 1}, false),
        conv2(out, out, 3, {.padding = 1}, false),
        norm1(8, out),
        norm2(8, out) {}
  nn::Conv2d conv1, conv2;
  nn::GroupNorm norm1, norm2;
  PLUGRAD_FIELDS(conv1, conv2, norm1, norm2)

  Tensor operator()(const Tensor& x) const { return relu(norm2(conv2(relu(norm1(conv1(x)))))); }
};

struct WideUNet {
  static constexpr int64_t kWidth = 32;
  static constexpr int kLevels = 4;

  WideUNet() {
    int64_t in = 3, width = kWidth;
    for (int level = 0; level < kLevels; ++level, in = width, width *= 2)
      down.emplace_back(in, width);
    bottom.emplace_back(in, width);
    for (; width > kWidth; width /= 2) {
      enlarge.emplace_back(width, width / 2, 2, ConvTransposeOptions{.stride = 2});
      up.emplace_back(width, width / 2);
    }
  }
  std::vector<DoubleConv> down, bottom, up;
  std::vector<nn::ConvTranspose2d> enlarge;
  nn::Conv2d out{kWidth, 1, 1};
  PLUGRAD_FIELDS(down, bottom, up, enlarge, out)

  Tensor operator()(const Tensor& x) const {
    std::vector<Tensor> around;
    Tensor h = x;
    for (const DoubleConv& level : down) {
      around.push_back(level(h));
      h = around.back().max_pool2d(2);
    }
    h = bottom[0](h);
    for (size_t i = 0; i < up.size(); ++i) {
      h = up[i](cat({enlarge[i](h), around.back()}, 1));
      around.pop_back();
    }
    return out(h);
  }
};

template <class Net>
Network images(int64_t batch, int64_t side) {
  return network_of(std::make_shared<Net>(), {Tensor::randn({batch, 3, side, side})},
                    [](Net& net, const std::vector<Tensor>& data) { return net(data[0]); });
}

}  // namespace

Network make_image_network(const std::string& name, int64_t batch) {
  if (name == "resnet18") return images<ResNet18>(batch, 224);
  if (name == "resnet50") return images<ResNet50>(batch, 224);
  if (name == "mobilenet_v2") return images<MobileNetV2>(batch, 224);
  return images<WideUNet>(batch, 256);
}

}  // namespace plugrad::bench

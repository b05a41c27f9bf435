// Bad arguments of convolutions, pooling, resizing, normalisation, attention and losses.
#include "unit/tensor/expect.h"

namespace plugrad {
namespace {

using testing::HasSubstr;

TEST(NetworkErrors, ConvolutionsThatFitNothing) {
  const Tensor x = Tensor::zeros({1, 4, 8, 8}), w = Tensor::zeros({6, 4, 3, 3});
  EXPECT_EQ(error_of([&] { conv2d(x, Tensor::zeros({6, 4, 9, 3})); }),
            "[conv2d] windows of (9, 3) with dilation (1, 1) do not fit an image of (1, 4, 8, 8), "
            "padded to (1, 4, 8, 8)");
  EXPECT_THAT(error_of([&] { conv2d(x, w, {}, {.dilation = 4}); }),
              HasSubstr("[conv2d] windows of (3, 3) with dilation (4, 4) do not fit"));
  EXPECT_THAT(error_of([&] { conv2d(x, w, {}, {.stride = 2, .padding = -3}); }),
              HasSubstr("padded to (1, 4, 2, 2)"));
  EXPECT_THAT(error_of([&] { conv2d(x, w, {}, {.padding = {-9, 0}}); }),
              HasSubstr("[pad] (-9, -9) removes more than axis 2 of (1, 4, 8, 8) has"));
  EXPECT_EQ(error_of([&] { conv2d(x, w, {}, {.groups = 3}); }),
            "[conv2d] image (1, 4, 8, 8) and weight (6, 4, 3, 3) do not fit 3 groups: the weight "
            "must be (out, 4 / groups, …) and out a multiple of groups");
  EXPECT_THAT(error_of([&] { conv2d(x, w, {}, {.groups = 0}); }), HasSubstr("do not fit 0 groups"));
  EXPECT_EQ(error_of([&] { conv1d(x, w); }), "[conv1d] image (1, 4, 8, 8) does not have 3 axes");
  EXPECT_EQ(error_of([&] { conv2d(x, Tensor::zeros({6, 4, 3})); }),
            "[conv2d] image (1, 4, 8, 8) and weight (6, 4, 3) must have the same number of axes, "
            "three at least");
  EXPECT_THAT(error_of([&] { conv(Tensor::zeros({2, 3}), Tensor::zeros({4, 3})); }),
              HasSubstr("three at least"));
  EXPECT_THAT(error_of([&] { conv2d(x, w, Tensor::zeros({4})); }),
              HasSubstr("[conv2d] bias (4,) does not have one value for each of 6 channels"));
  EXPECT_THAT(error_of([&] { conv2d(x, Tensor()); }), HasSubstr("[conv2d] a tensor is undefined"));
  EXPECT_EQ(error_of([&] { conv2d(x < 0, w < 0); }), "[conv2d] takes numbers, not bool; cast it");
}

TEST(NetworkErrors, ChannelsThatAreTheLastAxis) {
  const Tensor x = Tensor::zeros({2, 8, 9, 3}), w = Tensor::zeros({6, 3, 3, 3});
  const char* const advice =
      "; channels are axis 1, and x.permute(0, 3, 1, 2) moves the last axis there";
  EXPECT_EQ(
      error_of([&] { conv2d(x, w); }),
      "[conv2d] image (2, 8, 9, 3) and weight (6, 3, 3, 3) do not fit 1 groups: the weight must "
      "be (out, 8 / groups, …) and out a multiple of groups" +
          std::string(advice));
  const auto advised = testing::EndsWith(advice);
  EXPECT_THAT(error_of([&] { conv_transpose2d(x, Tensor::zeros({3, 6, 3, 3})); }), advised);
  EXPECT_THAT(error_of([&] { nn::Conv2d(3, 6, 3)(x); }),
              testing::AllOf(testing::StartsWith("[Conv2d] image"), advised));
  EXPECT_THAT(error_of([&] { nn::BatchNorm(3)(x); }),
              testing::AllOf(testing::StartsWith("[BatchNorm] x is"), advised));
  EXPECT_THAT(error_of([&] { nn::GroupNorm(1, 3)(x); }), advised);
  EXPECT_THAT(error_of([&] { nn::InstanceNorm(3)(x); }), advised);
  EXPECT_THAT(error_of([&] { nn::Conv1d(3, 6, 3)(Tensor::zeros({2, 8, 3})); }),
              testing::EndsWith("x.permute(0, 2, 1) moves the last axis there"));
  EXPECT_THAT(error_of([&] { nn::Conv2d(4, 6, 3)(x); }), testing::Not(HasSubstr("permute")));
}

TEST(NetworkErrors, SettingsOfWindows) {
  const Tensor x = Tensor::zeros({1, 4, 8, 8}), w = Tensor::zeros({6, 4, 3, 3});
  EXPECT_EQ(error_of([&] { conv2d(x, w, {}, {.stride = 0}); }),
            "[conv2d] stride (0, 0) must be 1 or more");
  EXPECT_EQ(error_of([&] { conv2d(x, w, {}, {.stride = {1, 2, 3}}); }),
            "[conv2d] stride (1, 2, 3) has 3 entries; 2 axes take one, or one each");
  EXPECT_EQ(error_of([&] { conv2d(x, w, {}, {.padding = {1, 2, 3}}); }),
            "[conv2d] padding (1, 2, 3) has 3 entries; 2 axes take one, one each, or begin and end "
            "of each");
  EXPECT_EQ(error_of([&] { conv2d(x, w, {}, {.padding = {{1, 2}, {3, 4}, {5, 6}}}); }),
            "[conv2d] padding has 3 pairs for 2 axes");
  EXPECT_EQ(error_of([&] { conv2d(x, w, {}, {.padding = "some"}); }),
            "[conv2d] there is no padding \"some\"; \"same\" and \"valid\" are known");
  EXPECT_EQ(error_of([&] { conv2d(x, w, {}, {.stride = 2, .padding = "same"}); }),
            "[conv2d] padding \"same\" keeps sizes with stride 1 alone, and stride is (2, 2)");
}

TEST(NetworkErrors, TransposedConvolutions) {
  const Tensor x = Tensor::zeros({1, 4, 3, 3}), w = Tensor::zeros({4, 2, 3, 3});
  EXPECT_THAT(error_of([&] { conv_transpose2d(x, Tensor::zeros({2, 4, 3, 3})); }),
              HasSubstr("the weight must be (4, out / groups, …), and 4 a multiple of groups"));
  EXPECT_EQ(error_of([&] { conv_transpose2d(x, w, {}, {.stride = 2, .output_padding = 2}); }),
            "[conv_transpose2d] output_padding (2, 2) must be below stride (2, 2) or dilation (1, "
            "1)");
  EXPECT_THAT(error_of([&] { conv_transpose2d(x, w, {}, {.padding = 3}); }),
              HasSubstr("nothing is left of axis 2: 5 elements less padding of 3 and 3"));
  EXPECT_THAT(error_of([&] { conv_transpose2d(Tensor::zeros({1, 4, 0, 3}), w); }),
              HasSubstr("[conv_transpose2d] image (1, 4, 0, 3) has no elements along an axis"));
}

TEST(NetworkErrors, PoolingAndUnpooling) {
  const Tensor x = Tensor::zeros({1, 3, 5, 5});
  EXPECT_THAT(error_of([&] { max_pool2d(x, 6); }),
              HasSubstr("[max_pool2d] windows of (6, 6) with dilation (1, 1) do not fit"));
  EXPECT_THAT(error_of([&] { avg_pool2d(x, 6, {.stride = 1, .ceil_mode = true}); }),
              HasSubstr("[avg_pool2d] windows of (6, 6)"));
  EXPECT_THAT(error_of([&] { max_pool2d(x, 2, {.padding = 2}); }),
              HasSubstr("padding of 2 and 2 is not smaller than a window of 2"));
  EXPECT_EQ(error_of([&] { max_pool3d(Tensor::zeros({5, 5}), 2); }),
            "[max_pool3d] shape (5, 5) has fewer than 3 axes");
  EXPECT_EQ(error_of([&] { max_pool2d(x, {2, 2, 2}); }),
            "[max_pool2d] kernel (2, 2, 2) has 3 entries; 2 axes take one, or one each");
  const Tensor y = Tensor::zeros({2, 2});
  EXPECT_EQ(error_of([&] { max_unpool2d(y, Tensor::from({{0, 2}, {8, 16}})); }),
            "[max_unpool2d] index 16 (element 3) is out of range for size 16: allowed are 0 to 15");
  EXPECT_THAT(error_of([&] { max_unpool2d(y, Tensor::from({{0, 2}, {8, -1}})); }),
              HasSubstr("index -1 (element 3) is out of range"));
  EXPECT_EQ(error_of([&] { max_unpool2d(y, y); }), "[max_unpool2d] indices are f32, not integers");
  EXPECT_EQ(error_of([&] { max_unpool2d(y, Tensor::from({1, 2})); }),
            "[max_unpool2d] indices (2,) and elements (2, 2) differ in shape");
  EXPECT_THAT(error_of([&] {
                max_unpool2d(y, Tensor::from({{0, 2}, {8, 10}}), 2, {.output_size = {9, 4}});
              }),
              HasSubstr("[max_unpool2d] output_size (9, 4) is not near (4, 4)"));
}

TEST(NetworkErrors, Interpolation) {
  const Tensor x = Tensor::zeros({1, 3, 5, 5});
  EXPECT_EQ(error_of([&] { interpolate(x, {}); }), "[interpolate] give either size or scale");
  EXPECT_EQ(error_of([&] { interpolate(x, {.size = {2, 2}, .scale = {2}}); }),
            "[interpolate] give either size or scale");
  EXPECT_EQ(error_of([&] { interpolate(x, {.size = {0, 2}}); }),
            "[interpolate] an axis of 5 cannot become 0; sizes must be positive");
  EXPECT_EQ(error_of([&] { interpolate(x, {.scale = {-1.0}}); }),
            "[interpolate] scale -1 is not positive");
  EXPECT_EQ(error_of([&] { interpolate(x, {.scale = {0.1}}); }),
            "[interpolate] an axis of 5 cannot become 0; sizes must be positive");
  EXPECT_EQ(error_of([&] { interpolate(x, {.size = {1, 2, 3, 4, 5}}); }),
            "[interpolate] 5 sizes for shape (1, 3, 5, 5)");
  EXPECT_EQ(error_of([&] { interpolate(x, {.size = {2, 2}, .align_corners = true}); }),
            "[interpolate] align_corners means nothing to Nearest");
}

TEST(NetworkErrors, Attention) {
  const auto attend = [](const Shape& q, const Shape& k, const Shape& v, const Tensor& mask = {},
                         bool causal = false, bool shared = false) {
    return error_of([&] {
      scaled_dot_product_attention(Tensor::zeros(q), Tensor::zeros(k), Tensor::zeros(v), mask,
                                   causal, 0.0, shared);
    });
  };
  EXPECT_THAT(attend({4}, {4}, {4}), HasSubstr("need two axes at least"));
  EXPECT_THAT(attend({2, 4}, {3, 5}, {3, 5}),
              HasSubstr("queries (2, 4) and keys (3, 5) differ in their last axis"));
  EXPECT_THAT(attend({2, 4}, {3, 4}, {2, 4}),
              HasSubstr("keys (3, 4) and values (2, 4) differ in number"));
  EXPECT_THAT(attend({2, 4}, {3, 4}, {3, 4}, Tensor::zeros({3, 2})),
              HasSubstr("mask (3, 2) does not broadcast to scores (2, 3): (…, queries, keys)"));
  EXPECT_THAT(attend({2, 4}, {3, 4}, {3, 4}, Tensor::zeros({1, 2, 3})),
              HasSubstr("mask (1, 2, 3) does not broadcast"));
  EXPECT_THAT(attend({2, 4}, {3, 4}, {3, 4}, Tensor::zeros({2, 3}, DType::I32)),
              HasSubstr("the mask is i32, neither bool nor a float"));
  EXPECT_THAT(attend({2, 4}, {2, 4}, {2, 4}, Tensor::zeros({2, 2}), true),
              HasSubstr("give a mask or is_causal, not both"));
  EXPECT_THAT(attend({6, 2, 4}, {4, 3, 4}, {4, 3, 4}, {}, false, true),
              HasSubstr("6 heads of queries are no multiple of 4 of (4, 3, 4)"));
  EXPECT_THAT(attend({6, 2, 4}, {3, 3, 4}, {3, 3, 4}), HasSubstr("do not broadcast"));
}

TEST(NetworkErrors, Normalisation) {
  const Tensor x = Tensor::zeros({2, 6, 4});
  EXPECT_EQ(error_of([&] { groupnorm(x, 4); }),
            "[groupnorm] 6 channels of (2, 6, 4) are no multiple of 4 groups");
  EXPECT_EQ(error_of([&] { groupnorm(x, 3, Tensor::zeros({3})); }),
            "[groupnorm] weight (3,) does not have one value for each of 6 of (2, 6, 4)");
  EXPECT_EQ(error_of([&] { instancenorm(Tensor::zeros({2, 6})); }),
            "[instancenorm] shape (2, 6) has no axes after that of channels");
  EXPECT_THAT(error_of([&] { batchnorm(x, {}, {}, Tensor::zeros({4}), Tensor::zeros({6})); }),
              HasSubstr("[batchnorm] mean (4,) does not have one value for each of 6"));
  EXPECT_THAT(error_of([&] { batchnorm(x, {}, {}, {}, {}); }), HasSubstr("must be given"));
  EXPECT_THAT(error_of([&] { x.dropout(1.5); }), HasSubstr("not in [0, 1]"));
}

TEST(NetworkErrors, Losses) {
  const Tensor logits = Tensor::zeros({4, 3, 5});
  EXPECT_EQ(error_of([&] { cross_entropy(logits, Tensor::zeros({4, 3})); }),
            "[cross_entropy] logits (4, 3, 5) and probabilities (4, 3) differ");
  EXPECT_EQ(error_of([&] { cross_entropy(logits, Tensor::zeros({4, 3}, DType::I32)); }),
            "[cross_entropy] labels (4, 3) do not fit logits (4, 3, 5): expected (4, 5)");
  EXPECT_EQ(error_of([&] { cross_entropy(logits, Tensor::full({4, 5}, 3)); }),
            "[cross_entropy] label 3 (element 0) is out of range for size 3: allowed are 0 to 2");
  const Tensor bytes = Tensor::from(std::vector<uint8_t>{2, 255, 0, 1}).reshape({2, 2});
  EXPECT_EQ(error_of([&] { embedding(Tensor::zeros({3, 1}), bytes.cast(DType::I64)); }),
            "[embedding] index 255 (element 1) is out of range for size 3: allowed are 0 to 2");
  EXPECT_EQ(error_of([&] { nll_loss(Tensor::zeros({2, 3}), Tensor::from({2, -100})); }),
            "[nll_loss] label -100 (element 1) is out of range for size 3: allowed are 0 to 2");
  nll_loss(Tensor::zeros({2, 3}), Tensor::from({2, -100}), {.ignore_index = -100});
  EXPECT_EQ(error_of([&] { nll_loss(Tensor::zeros({2, 3}), Tensor::from({1.f, 2.f})); }),
            "[nll_loss] labels are f32, not integers; cast them");
  EXPECT_EQ(error_of([&] {
              nll_loss(Tensor::zeros({2, 3}), Tensor::from({1, 2}), {.weight = Tensor::ones({2})});
            }),
            "[nll_loss] weight (2,) does not have one value for each of 3 classes");
  EXPECT_THAT(error_of([&] { cross_entropy(logits, logits, {.label_smoothing = 1.5}); }),
              HasSubstr("label_smoothing is 1.5, not in [0, 1]"));
  EXPECT_THAT(error_of([&] { cross_entropy(logits, logits, {.ignore_index = 1}); }),
              HasSubstr("ignore_index is for labels"));
  EXPECT_THAT(error_of([&] { binary_crossentropy(logits, logits, {.pos_weight = logits}); }),
              HasSubstr("pos_weight is for logits alone"));
  EXPECT_THAT(error_of([&] { huber_loss(logits, logits, 0.0); }), HasSubstr("not positive"));
  EXPECT_THAT(error_of([&] { smooth_l1_loss(logits, logits, -1.0); }), HasSubstr("negative"));
  EXPECT_THAT(error_of([&] { kl_div(logits, Tensor::zeros({4})); }), HasSubstr("differ"));
}

}  // namespace
}  // namespace plugrad

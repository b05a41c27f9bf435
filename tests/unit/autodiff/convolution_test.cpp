#include "autodiff/convolution.h"

#include <gmock/gmock.h>

#include "graph_fixture.h"

namespace plugrad::autodiff {
namespace {

using testing::ElementsAre;
using ConvolutionTest = GraphFixture;

std::vector<double> upto(int64_t count) {
  std::vector<double> list(static_cast<size_t>(count));
  for (size_t i = 0; i < list.size(); ++i) list[i] = static_cast<double>(i);
  return list;
}

TEST_F(ConvolutionTest, AWindowIsStrideTimesPlacePlusDilationTimesStep) {
  const Id image = buffer({1, 9}, upto(9));
  const Windows windows{.kernel = {1, 3}, .stride = {1, 2}, .dilation = {1, 2}};
  const Id view = window_view(context, image, windows);  // (1, 3, 1, 3)
  EXPECT_THAT(shapes[view], ElementsAre(1, 3, 1, 3));
  EXPECT_THAT(values(view), ElementsAre(0, 2, 4, 2, 4, 6, 4, 6, 8));
}

TEST_F(ConvolutionTest, EveryWindowOfEveryKindReadsItsPlace) {
  for (int64_t size = 1; size <= 8; ++size)
    for (int64_t kernel = 1; kernel <= 4; ++kernel)
      for (int64_t stride = 1; stride <= 4; ++stride)
        for (int64_t dilation = 1; dilation <= 3; ++dilation) {
          const Windows w{{1, kernel}, {1, stride}, {1, dilation}};
          const int64_t count = size < dilation * (kernel - 1) + 1 ? 0 : w.count(1, size);
          if (count < 1) continue;
          const std::vector<double> view =
              values(window_view(context, buffer({1, size}, upto(size)), w));
          ASSERT_EQ(static_cast<int64_t>(view.size()), count * kernel);
          for (int64_t o = 0; o < count; ++o)
            for (int64_t k = 0; k < kernel; ++k)
              ASSERT_EQ(view[static_cast<size_t>(o * kernel + k)],
                        static_cast<double>(o * stride + k * dilation))
                  << size << ' ' << kernel << ' ' << stride << ' ' << dilation;
        }
}

struct Sizes {
  std::vector<int64_t> image, weight;
  int64_t groups = 1;
  List stride{1, 1}, dilation{1, 1};
};

const Sizes kSizes[] = {
    {{2, 3, 8, 8}, {4, 3, 3, 3}},
    {{2, 4, 9, 8}, {6, 2, 3, 2}, 2, {2, 1}, {1, 2}},
    {{1, 1, 5, 5}, {1, 1, 5, 5}},
    {{2, 3, 4, 4}, {5, 3, 1, 1}},
    {{1, 2, 6, 4}, {3, 2, 2, 2}, 1, {2, 2}},
    {{1, 2, 6, 6}, {2, 2, 2, 2}, 1, {3, 3}},
    {{1, 2, 1, 7}, {4, 2, 1, 3}},
    {{1, 3, 7, 7}, {3, 1, 3, 3}, 3, {2, 2}, {2, 2}},
    {{4, 1, 1, 1}, {1, 1, 1, 1}},
    {{1, 2, 5, 7}, {4, 2, 1, 3}, 1, {1, 1}, {3, 2}},
    {{2, 3, 8}, {4, 3, 3}, 1, {1}, {1}},
    {{2, 4, 9}, {6, 2, 2}, 2, {3}, {2}},
    {{1, 2, 8}, {2, 2, 4}, 1, {4}, {1}},
    {{1, 2, 5, 6, 7}, {4, 2, 3, 2, 1}, 1, {1, 1, 1}, {1, 1, 1}},
    {{2, 4, 7, 8, 6}, {4, 2, 2, 3, 2}, 2, {2, 1, 3}, {1, 2, 2}},
    {{1, 1, 4, 4, 4}, {2, 1, 2, 2, 2}, 1, {2, 2, 2}, {1, 1, 1}},
};

TEST_F(ConvolutionTest, IsFoundAgain) {
  for (const Sizes& s : kSizes) {
    const Id image = buffer(s.image, upto(element_count(s.image)));
    const Id weight = buffer(s.weight, upto(element_count(s.weight)));
    const Id node = build_convolution(context, {image, weight, s.groups, s.stride, s.dilation});
    const std::optional<Convolution> found = match_convolution(context, node);
    ASSERT_TRUE(found) << testing::PrintToString(s.weight);
    EXPECT_EQ(found->image, image);
    EXPECT_EQ(found->weight, weight);
    EXPECT_EQ(found->groups, s.groups);
  }
}

TEST_F(ConvolutionTest, IsFoundWithThePaddingThatIsInNoProduct) {
  for (const Sizes& s : kSizes) {
    const Id image = buffer(s.image, upto(element_count(s.image)));
    const Id weight = buffer(s.weight, upto(element_count(s.weight)));
    List padding(2 * s.stride.size());
    for (size_t i = 0; i < padding.size(); ++i) padding[i] = static_cast<int64_t>((i + 2) % 3);
    const Convolution padded{image, weight, s.groups, s.stride, s.dilation, padding};
    const auto found = match_convolution(context, build_convolution(context, padded));
    ASSERT_TRUE(found) << testing::PrintToString(s.weight);
    EXPECT_EQ(found->image, image);
    EXPECT_EQ(found->weight, weight);
    EXPECT_EQ(found->padding, padding);
  }
}

TEST_F(ConvolutionTest, IsFoundBelowPaddingAndMovement) {
  const Id source = buffer({1, 2, 36}, upto(72)), weight = buffer({9, 2, 2}, upto(36));
  const Id image = move(Op::Pad, move(Op::Reshape, source, {1, 2, 6, 6}), {0, 0, 0, 0, 1, 1, 1, 1});
  const Id kernel = move(Op::Permute, move(Op::Reshape, weight, {3, 3, 2, 2}), {2, 3, 0, 1});
  const auto found =
      match_convolution(context, build_convolution(context, {image, kernel, 1, {1, 1}, {1, 1}}));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->image, image);
  EXPECT_EQ(found->weight, kernel);
}

TEST_F(ConvolutionTest, OtherSumsOfProductsAreNone) {
  const Id a = buffer({2, 1, 2, 2, 2, 1, 1, 1}, upto(16)),
           b = buffer({2, 1, 2, 2, 2, 1, 1, 1}, upto(16));
  EXPECT_FALSE(match_convolution(context, reduce(Op::Add, g.binary(Op::Mul, a, b), {5, 6, 7})));
  EXPECT_FALSE(match_convolution(context, reduce(Op::Add, a, {5, 6, 7})));
  EXPECT_FALSE(match_convolution(context, a));
}

size_t count_ops(const Graph& g, Id root, Op op) {
  size_t count = 0;
  Reachable reachable;
  for (Id id : reachable.from(g, std::span(&root, 1))) count += g[id].op == op;
  return count;
}

TEST_F(ConvolutionTest, TheDataGradientIsAConvolutionAndBothAreOneSum) {
  const Id image = buffer({2, 3, 8, 8}, upto(384)), weight = buffer({4, 3, 3, 3}, upto(108));
  const Id dy = buffer({2, 1, 4, 6, 6, 1, 1, 1}, upto(288));
  const Id y =
      g.binary(Op::Mul, build_convolution(context, {image, weight, 1, {1, 1}, {1, 1}}), dy);
  const Id targets[] = {image, weight};
  const std::vector<Id> found = gradient(context, y, number(1), targets);
  const Id sum = g[found[0]].src[0];  // below the reshape to the image
  const auto back = match_convolution(context, sum);
  ASSERT_TRUE(back);
  EXPECT_THAT(shapes[back->image], ElementsAre(2, 4, 6, 6));
  EXPECT_THAT(back->padding, ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(shapes[back->weight], ElementsAre(3, 4, 3, 3));
  EXPECT_EQ(count_ops(g, found[0], Op::Reduce), 1u);
  EXPECT_EQ(count_ops(g, found[0], Op::Contiguous), 0u);
  EXPECT_EQ(count_ops(g, found[1], Op::Reduce), 1u);
  EXPECT_EQ(count_ops(g, found[1], Op::Pad), 0u);
}

TEST_F(ConvolutionTest, AStrideOfTheDataGradientIsOutChannelsNotZeros) {
  const Id image = buffer({1, 3, 8, 9}, upto(216)), weight = buffer({4, 3, 4, 3}, upto(144));
  const Convolution strided{image, weight, 1, {2, 3}, {1, 1}};
  const Id node = build_convolution(context, strided);
  const Id dy = buffer(List(shapes[node].begin(), shapes[node].end()), upto(36));
  const Id flow = convolution_gradient(context, strided, node, dy, true, false).image;
  EXPECT_THAT(shapes[flow], ElementsAre(1, 3, 8, 9));
  Id sum = flow;
  while (g[sum].op != Op::Reduce) sum = g[sum].src[0];
  const auto back = match_convolution(context, sum);
  ASSERT_TRUE(back);
  EXPECT_THAT(back->stride, ElementsAre(1, 1));
  EXPECT_THAT(shapes[back->image], ElementsAre(1, 4, 3, 3));
  EXPECT_THAT(back->padding, ElementsAre(1, 1, 0, 0));          // only the edges
  EXPECT_THAT(shapes[back->weight], ElementsAre(18, 4, 2, 1));  // 3 channels of 2 x 3 remainders
}

TEST_F(ConvolutionTest, RestsOfAStrideHaveTheirOwnElementsOfTheKernelAlone) {
  const Id image = buffer({1, 2, 8, 8}, upto(128)), weight = buffer({4, 2, 3, 3}, upto(72));
  const Convolution strided{image, weight, 1, {2, 2}, {1, 1}, {1, 1, 1, 1}};
  const Id node = build_convolution(context, strided);
  const Id dy = buffer(List(shapes[node].begin(), shapes[node].end()), upto(64));
  const Id flow = convolution_gradient(context, strided, node, dy, true, false).image;
  EXPECT_THAT(shapes[flow], ElementsAre(1, 2, 8, 8));
  Id sum = flow;
  while (g[sum].op != Op::Reduce) sum = g[sum].src[0];
  const auto back = match_convolution(context, sum);
  ASSERT_TRUE(back);
  EXPECT_NE(back->present, kNoId);
  EXPECT_THAT(shapes[back->weight], ElementsAre(8, 4, 2, 2));  // 2 x 2 remainders of 2 channels
  EXPECT_THAT(back->padding, ElementsAre(0, 1, 0, 1));
}

TEST_F(ConvolutionTest, TheDataGradientOfAPaddedImageIsThatOfTheImage) {
  const Id image = buffer({2, 3, 8, 8}, upto(384)), weight = buffer({4, 3, 3, 3}, upto(108));
  const Convolution padded{image, weight, 1, {1, 1}, {1, 1}, {1, 1, 0, 2}};
  const Id node = build_convolution(context, padded);
  const Id dy = buffer(List(shapes[node].begin(), shapes[node].end()), upto(2 * 4 * 8 * 8));
  const Id flow = convolution_gradient(context, padded, node, dy, true, false).image;
  EXPECT_THAT(shapes[flow], ElementsAre(2, 3, 8, 8));
  EXPECT_EQ(count_ops(g, flow, Op::Contiguous), 0u);
  const auto back = match_convolution(context, g[flow].src[0]);
  ASSERT_TRUE(back);
  EXPECT_THAT(back->padding, ElementsAre(1, 1, 2, 0));
}

}  // namespace
}  // namespace plugrad::autodiff

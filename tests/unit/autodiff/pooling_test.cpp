#include "autodiff/pooling.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "graph_fixture.h"

namespace plugrad::autodiff {
namespace {

using testing::ElementsAre;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

/// The form of one axis, used for both axes of an image.
struct Form {
  int64_t size, kernel, stride, dilation, before, after;
};

struct PoolingTest : GraphFixture {
  List both(int64_t n) { return {n, n}; }

  Id padded(Id x, const Form& f) {
    if (f.before == 0 && f.after == 0) return x;
    const List pads = {0, 0, f.before, f.after, f.before, f.after};
    const Id one = move(Op::Reshape, g.constant(DType::Bool, int64_t{1}), {1, 1, 1});
    const Id inside = move(Op::Expand, one, List(shapes[x].begin(), shapes[x].end()));
    return g.where(move(Op::Pad, inside, pads), move(Op::Pad, x, pads), number(-kInf));
  }
  Id pooled(Id x, const Form& f) {
    const Windows windows{both(f.kernel), both(f.stride), both(f.dilation)};
    return reduce(Op::Max, window_view(context, padded(x, f), windows), {3, 4});
  }
};

/// The gradient of one image, accumulated window by window.
std::vector<double> by_windows(const Form& f, const std::vector<double>& x,
                               const std::vector<double>& dy) {
  const int64_t span = f.dilation * (f.kernel - 1) + 1;
  const int64_t count = (f.size + f.before + f.after - span) / f.stride + 1;
  std::vector<double> dx(x.size(), 0);
  for (int64_t oh = 0; oh < count; ++oh)
    for (int64_t ow = 0; ow < count; ++ow) {
      std::vector<std::pair<int64_t, double>> window;  // -1 in the padding
      for (int64_t kh = 0; kh < f.kernel; ++kh)
        for (int64_t kw = 0; kw < f.kernel; ++kw) {
          const int64_t h = oh * f.stride + kh * f.dilation - f.before,
                        w = ow * f.stride + kw * f.dilation - f.before;
          const bool inside = h >= 0 && h < f.size && w >= 0 && w < f.size;
          window.emplace_back(inside ? h * f.size + w : -1, inside ? x[h * f.size + w] : -kInf);
        }
      double largest = -kInf, equal = 0;
      for (const auto& [place, value] : window)
        largest = std::isnan(value) || std::isnan(largest) ? kNaN : std::max(largest, value);
      for (const auto& [place, value] : window) equal += value == largest;
      const double share = dy[oh * count + ow] / equal;
      for (const auto& [place, value] : window)
        if (place >= 0) dx[place] += value == largest ? share : share * 0.0;
    }
  return dx;
}

constexpr Form kForms[] = {
    {8, 2, 2, 1, 0, 0}, {9, 2, 2, 1, 0, 0}, {9, 3, 2, 1, 1, 1}, {8, 3, 2, 1, 1, 1},
    {8, 3, 2, 1, 0, 1}, {7, 5, 1, 1, 2, 2}, {9, 2, 3, 1, 0, 0}, {9, 3, 3, 1, 1, 1},
    {9, 3, 1, 2, 2, 2}, {9, 3, 1, 3, 1, 0}, {9, 3, 2, 2, 1, 1}, {7, 5, 3, 1, 2, 1},
    {5, 2, 1, 1, 3, 3}, {9, 1, 2, 1, 0, 0}, {6, 4, 2, 1, 3, 3}, {5, 5, 5, 1, 0, 0},
};

// Few different values, so that many are equal.
TEST_F(PoolingTest, EveryFormGivesWhatItsWindowsGive) {
  for (size_t n = 0; n < std::size(kForms); ++n) {
    const Form& f = kForms[n];
    std::vector<double> x, dy;
    for (int64_t i = 0; i < f.size * f.size; ++i) x.push_back(static_cast<double>(i * 7 % 5) - 2);
    x[3] = -0.0;
    x[f.size + 1] = -kInf;
    const Id image = buffer({1, f.size, f.size}, x), y = pooled(image, f);
    for (int64_t i = 0; i < element_count(shapes[y]); ++i)
      dy.push_back(static_cast<double>(i % 4) + 1);
    const Id seeds = buffer(List(shapes[y].begin(), shapes[y].end()), dy);
    const Id flow = derivative(g.binary(Op::Mul, y, seeds), image);
    const std::vector<double> found = values(flow), expected = by_windows(f, x, dy);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], 1e-12) << "form " << n << ", element " << i;
  }
}

TEST_F(PoolingTest, ANaNReachesItsWindowsAlone) {
  for (const Form& f : kForms) {
    std::vector<double> x(f.size * f.size, 1.0);
    x[f.size + 2] = kNaN;
    x[f.size * f.size - 1] = kInf;
    const Id image = buffer({1, f.size, f.size}, x), y = pooled(image, f);
    const std::vector<double> found = values(derivative(y, image)),
                              expected = by_windows(
                                  f, x, std::vector<double>(element_count(shapes[y]), 1));
    for (size_t i = 0; i < expected.size(); ++i)
      if (std::isnan(expected[i]))
        EXPECT_TRUE(std::isnan(found[i])) << i;
      else
        EXPECT_NEAR(found[i], expected[i], 1e-12) << i;
  }
}

TEST_F(PoolingTest, AnElementReadsTheWindowsItCanLieIn) {
  const Id image = buffer({1, 8, 8}, std::vector<double>(64, 1.0));
  const Id node = pooled(image, {8, 3, 2, 1, 1, 1});
  const auto found = match_max_pooling(context, node, [](Id) { return true; });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->image, image);
  EXPECT_THAT(found->windows.stride, ElementsAre(2, 2));
  EXPECT_THAT(found->padding, ElementsAre(1, 1, 1, 1));
  Id sum = max_pooling_gradient(context, *found, node, node);
  while (g[sum].op != Op::Reduce) sum = g[sum].src[0];
  const Id term = g[sum].src[0];
  EXPECT_THAT(shapes[term], ElementsAre(1, 4, 2, 4, 2, 2, 2));  // 2 x 2 windows, not 4 x 4 views
}

TEST_F(PoolingTest, NodesBetweenThatAreTargetsGetTheirGradient) {
  const Form form{4, 2, 1, 1, 1, 1};
  const Id image = buffer({1, 4, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2});
  const Id view = g[pooled(image, form)].src[0], outer = padded(image, form);
  for (Id target : {view, outer}) {
    const Id y = pooled(image, form);
    const Id found = derivative(y, target);
    ASSERT_NE(found, kNoId);
    double sum = 0;
    for (double v : values(found)) sum += v;
    EXPECT_DOUBLE_EQ(sum, static_cast<double>(element_count(shapes[y])));
  }
}

TEST_F(PoolingTest, OtherMaximaAreNone) {
  const auto any = [](Id) { return true; };
  const Id image = buffer({1, 6, 6}, std::vector<double>(36, 1.0));
  const Id view = window_view(context, image, {{2, 2}, {2, 2}, {1, 1}});
  EXPECT_TRUE(match_max_pooling(context, reduce(Op::Max, view, {3, 4}), any));
  EXPECT_FALSE(match_max_pooling(context, reduce(Op::Max, view, {3}), any));
  EXPECT_FALSE(match_max_pooling(context, reduce(Op::Add, view, {3, 4}), any));
  EXPECT_FALSE(match_max_pooling(context, reduce(Op::Max, image, {1, 2}), any));
  const Id turned = move(Op::Permute, view, {0, 1, 2, 4, 3});
  EXPECT_FALSE(match_max_pooling(context, reduce(Op::Max, turned, {3, 4}), any));
  // With stride and dilation, the windows of an element are not contiguous.
  const Id apart = pooled(image, {6, 2, 2, 2, 0, 0});
  EXPECT_FALSE(match_max_pooling(context, apart, any));
}

}  // namespace
}  // namespace plugrad::autodiff

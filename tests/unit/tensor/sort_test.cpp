// Sorting along axes that use the sorting network, with gradients; cost of sorting and scanning.
#include <algorithm>
#include <numeric>

#include "expect.h"

namespace plugrad {
namespace {

/// Sizes that would take seconds in the evaluator or the interpreter are used only on fast devices.
int64_t many() {
  const bool fast =
      std::getenv("PLUGRAD_TEST_RUNS") != nullptr && Device::default_device() == "CPU";
  return fast ? 100000 : 1500;
}

/// Integers with many ties, unordered.
std::vector<double> scattered(int64_t count) {
  std::vector<double> list(static_cast<size_t>(count));
  for (size_t i = 0; i < list.size(); ++i)
    list[i] = static_cast<double>((i * 2654435761u >> 7) % (list.size() / 2));
  return list;
}

std::vector<double> stable_order(const std::vector<double>& list) {
  std::vector<double> order(list.size());
  std::iota(order.begin(), order.end(), 0.0);
  std::ranges::stable_sort(order, {}, [&](double i) { return list[static_cast<size_t>(i)]; });
  return order;
}

TEST(Sort, LongAxesAreSortedStably) {
  const std::vector<double> list = scattered(many());
  std::vector<double> sorted = list;
  std::ranges::sort(sorted);
  for (const DType dtype : {DType::F32, DType::F64, DType::I64}) {
    const auto [values_of, places] = Tensor::from(list).cast(dtype).sort();
    EXPECT_EQ(values(places), stable_order(list)) << name_of(dtype);
    EXPECT_EQ(values(values_of), sorted) << name_of(dtype);
  }
}

TEST(Sort, ShortAxesWithTiesNaNAndZeros) {
  const Tensor x = Tensor::from<double>({2.0, NAN, -0.0, 2.0, 0.0, -INFINITY, NAN, 1.0});
  expect_values(x.argsort(), {5, 2, 4, 7, 0, 3, 1, 6}, 0, 0);
  expect_values(x.argsort(0, true), {1, 6, 0, 3, 7, 2, 4, 5}, 0, 0);
  expect_values(x.topk(3, 0, false).first, {-INFINITY, 0, 0}, 0, 0);
  expect_values(Tensor::from({true, false, true}).argsort(), {1, 0, 2});
  expect_values(Tensor::from<uint8_t>({3, 255, 0}).argsort(-1, true), {1, 0, 2});
}

// The first few of a long axis: among equals those with lower indices, NaN as the largest.
TEST(Sort, TheFirstFewOfALongAxis) {
  std::vector<double> list = scattered(700);
  list[5] = list[650] = NAN;
  list[9] = INFINITY;
  list[11] = list[12] = -INFINITY;
  list[13] = 0.0;
  list[14] = -0.0;
  const Tensor x = Tensor::from(list).cast(DType::F32);
  const std::vector<double> ascending = values(x.argsort()),
                            descending = values(x.argsort(0, true));
  EXPECT_EQ(descending[0], 5);
  EXPECT_EQ(descending[1], 650);
  EXPECT_EQ(descending[2], 9);
  for (const int64_t k : {1, 7, 30, 100}) {  // by passes and sorted
    const auto first = [&](const std::vector<double>& order) {
      return std::vector<double>(order.begin(), order.begin() + k);
    };
    EXPECT_EQ(values(x.topk(k).second), first(descending)) << k;
    EXPECT_EQ(values(x.topk(k, 0, false).second), first(ascending)) << k;
  }
  EXPECT_EQ(values(Tensor::full({300}, 4.0).topk(4).second), (std::vector<double>{0, 1, 2, 3}));
}

// Both halves of 64-bit keys matter.
TEST(Sort, WideKeys) {
  std::vector<int64_t> list(600);
  for (size_t i = 0; i < list.size(); ++i)
    list[i] = static_cast<int64_t>(i * 0x9E3779B97F4A7C15u) >> (i % 3 == 0 ? 30 : 0);
  list[7] = INT64_MIN;
  list[8] = INT64_MAX;
  const Tensor places = Tensor::from(list).argsort();
  std::vector<double> order(list.size());
  std::iota(order.begin(), order.end(), 0.0);
  std::ranges::stable_sort(order, {}, [&](double i) { return list[static_cast<size_t>(i)]; });
  EXPECT_EQ(values(places), order);
}

TEST(Sort, GradientsGoBackWhereValuesCameFrom) {
  const std::vector<double> list = scattered(700), order = stable_order(list);
  const Tensor x = Tensor::from(list).requires_grad_();
  const Tensor weights = Tensor::arange(700).cast(DType::F64);
  const Tensor y = x.sort().first;
  const Tensor first = gradient((y * y * weights).sum(), {x})[0];
  std::vector<double> expected(700), second(700);
  for (size_t i = 0; i < 700; ++i) {
    const auto at = static_cast<size_t>(order[i]);
    expected[at] = 2 * list[at] * static_cast<double>(i);
    second[at] = 2 * static_cast<double>(i);
  }
  expect_near(values(first), expected, 0, 0);
  expect_near(values(gradient(first.sum(), {x})[0]), second, 0, 0);
  const std::vector<double> top = values(gradient(x.topk(3).first.sum(), {x})[0]);
  EXPECT_EQ(std::accumulate(top.begin(), top.end(), 0.0), 3);
}

TEST(Sort, RunsFewKernels) {
  const auto kernels = [](const Tensor& t) { return t.schedule().size(); };
  const auto stored = [](int64_t n) { return Tensor::arange(n).cast(DType::F32).sin().realize(); };
  EXPECT_LE(kernels(stored(200).argsort()), 3u);
  EXPECT_LE(kernels(stored(4096).argsort()), 32u);
  EXPECT_LE(kernels(stored(64).cumsum(0)), 3u);
  EXPECT_LE(kernels(stored(4096).cumsum(0)), 5u);
  EXPECT_LE(kernels(stored(100000).cumsum(0)), 9u);
}

TEST(Sort, RefusesWhatIsNotThere) {
  const Tensor x = Tensor::zeros({2, 3});
  EXPECT_EQ(error_of([&] { x.sort(2); }),
            "[sort] axis 2 is out of range for 2 axes: allowed are -2 to 1");
  EXPECT_EQ(error_of([&] { x.argsort(-3); }),
            "[argsort] axis -3 is out of range for 2 axes: allowed are -2 to 1");
  EXPECT_EQ(error_of([&] { x.topk(4); }), "[topk] 4 elements of axis 1 of (2, 3)");
  EXPECT_EQ(error_of([&] { x.topk(-1, 0); }), "[topk] -1 elements of axis 0 of (2, 3)");
  EXPECT_EQ(error_of([&] { x.cumsum(2); }),
            "[cumsum] axis 2 is out of range for 2 axes: allowed are -2 to 1");
  EXPECT_EQ(error_of([&] { x.cumprod(0, DType::Bool); }),
            "[cumprod] bool is no dtype to add up in");
  EXPECT_EQ(error_of([&] { x.cummax(5); }),
            "[cummax] axis 5 is out of range for 2 axes: allowed are -2 to 1");
  EXPECT_EQ(error_of([&] { x.sum()[0].logcumsumexp(1); }, ErrorKind::User).substr(0, 7), "[index]");
}

TEST(Scan, RunningExtremesTakeTheLastOfEqualsAndKeepNaN) {
  const auto [largest, at] = Tensor::from<double>({1.0, 1.0, 0.0, NAN, 7.0, NAN}).cummax(0);
  expect_values(largest, {1, 1, 1, NAN, NAN, NAN}, 0, 0);
  expect_values(at, {0, 1, 1, 3, 3, 5}, 0, 0);
  const auto [least, place] = Tensor::from({5, INT32_MIN, INT32_MAX, INT32_MIN}).cummin(0);
  expect_values(least, {5, INT32_MIN, INT32_MIN, INT32_MIN}, 0, 0);
  expect_values(place, {0, 1, 1, 3}, 0, 0);
  expect_values(Tensor::from({2, 0, 3, 4}).cumprod(0), {2, 0, 0, 0});
  expect_values(Tensor::from({-1000.0, 1000.0, 1000.0}).logcumsumexp(0),
                {-1000, 1000, 1000 + std::log(2.0)}, 0, 1e-12);
}

TEST(Scan, LongAxesAgreeWithAddingOneByOne) {
  const int64_t n = many();
  std::vector<double> list(static_cast<size_t>(n)), sums(list.size()), tops(list.size()),
      places(list.size());
  for (size_t i = 0; i < list.size(); ++i)
    list[i] = std::sin(static_cast<double>(i) * 0.7) + static_cast<double>(i % 1000) / 1000;
  for (size_t i = 0; i < list.size(); ++i) {
    const bool is_new = i == 0 || list[i] >= tops[i - 1];
    sums[i] = list[i] + (i == 0 ? 0 : sums[i - 1]);
    tops[i] = is_new ? list[i] : tops[i - 1];
    places[i] = is_new ? static_cast<double>(i) : places[i - 1];
  }
  const Tensor x = Tensor::from(list);
  expect_near(values(x.cumsum(0)), sums, 1e-9, 1e-12);
  const auto [largest, at] = x.cummax(0);
  EXPECT_EQ(values(largest), tops);
  EXPECT_EQ(values(at), places);
}

}  // namespace
}  // namespace plugrad

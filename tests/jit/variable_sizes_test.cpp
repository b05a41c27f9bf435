// Axes of variable sizes: the same values as fixed sizes, from one plan and one recording for all
// sizes, on the device of the run.
#include <array>
#include <cmath>
#include <limits>
#include <thread>
#include <utility>

#include "devices/at_hand.h"
#include "jit/variable_cases.h"

using namespace plugrad;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

// clang-format off
std::vector<Case> cases() {
  const Tensor w = numbers({6, 4}, 5), b = numbers({6}, 6), front = numbers({2, 6}, 7);
  return {
      {"elementwise", [=](const Tensor& x) { return (x * 2 + b).relu(); }},
      {"sum 0", [=](const Tensor& x) { return x.sum(0); }},
      {"sum 1", [=](const Tensor& x) { return x.sum(1); }},
      {"sum", [=](const Tensor& x) { return x.sum(); }},
      {"mean 0", [=](const Tensor& x) { return x.mean(0); }},
      {"mean", [=](const Tensor& x) { return x.mean(); }},
      {"max 0", [=](const Tensor& x) { return x.max(0); }},
      {"min", [=](const Tensor& x) { return x.min(); }},
      {"prod 0", [=](const Tensor& x) { return x.prod(0); }},
      {"any", [=](const Tensor& x) { return (x > 2.9).any(0).cast(DType::F32); }},
      {"all", [=](const Tensor& x) { return (x > -2.9).all(0).cast(DType::F32); }},
      {"integers",
       [=](const Tensor& x) { return x.cast(DType::I32).max(0) + x.cast(DType::I32).sum(0); }},
      {"argmax", [=](const Tensor& x) { return x.argmax(0); }},
      {"var of the population", [=](const Tensor& x) { return x.var(0, false, 0); }},
      {"std", [=](const Tensor& x) { return x.std({}, false, 1); }},
      {"softmax 0", [=](const Tensor& x) { return x.softmax(0); }},
      {"softmax 1", [=](const Tensor& x) { return x.softmax(1); }},
      {"log_softmax", [=](const Tensor& x) { return x.log_softmax(0); }},
      {"logsumexp", [=](const Tensor& x) { return x.logsumexp(0); }},
      {"layernorm", [=](const Tensor& x) { return x.layernorm(1); }},
      {"layernorm of the axis", [=](const Tensor& x) { return x.layernorm(0); }},
      {"rows of a product", [=](const Tensor& x) { return x.matmul(w); }},
      {"columns of a product",
       [=](const Tensor& x) { return w.transpose().matmul(x.transpose()); }},
      {"inner size of a product", [=](const Tensor& x) { return x.transpose().matmul(x * 2); }},
      {"square of rows",
       [=](const Tensor& x) { return x.matmul(x.transpose()).softmax(-1).matmul(x); }},
      {"batch of products",
       [=](const Tensor& x) { return x.reshape({-1, 2, 3}).matmul(w[{Slice(0, 3)}]); }},
      {"attention", [=](const Tensor& x) { return scaled_dot_product_attention(x, x + 1, x * 2); }},
      {"causal attention",
       [=](const Tensor& x) { return scaled_dot_product_attention(x, x, x, {}, true); }},
      {"reshape", [=](const Tensor& x) { return x.unflatten(1, {3, 2}).transpose(0, 1).sum(1); }},
      {"flatten", [=](const Tensor& x) { return x.flatten() * 3; }},
      {"flatten and back",
       [=](const Tensor& x) { return x.flatten().softmax(0).reshape({-1, 3, 2}); }},
      {"pad before and behind", [=](const Tensor& x) { return x.pad({{2, 3}, {1, 0}}); }},
      {"pad with a value", [=](const Tensor& x) { return x.pad({{1, 2}, {0, 0}}, 7.5); }},
      {"cat along", [=](const Tensor& x) { return cat({front, x}, 0).sum(0); }},
      {"cat beside", [=](const Tensor& x) { return cat({x, x + 1}, 1); }},
      {"first place", [=](const Tensor& x) { return x[0]; }},
      {"dropout off, triangle", [=](const Tensor& x) { return x.dropout(0.5, false).tril(); }},
      {"like", [=](const Tensor& x) { return x.ones_like().sum(0) + x.zeros_like(); }},
      {"a sum of sums", [=](const Tensor& x) { return where(x.unsqueeze(1) > b.reshape({6, 1}), x.unsqueeze(1), 0.5).sum(-1).sum(0); }},
      // New memory is often 0, which a sum does not show.
      {"a product of sums",
       [=](const Tensor& x) { return where(x.unsqueeze(1) > b.reshape({6, 1}), x.unsqueeze(1), 0.5).sum(-1).prod(0); }},
      {"a maximum of sums",
       [=](const Tensor& x) { return (where(x.unsqueeze(1) > b.reshape({6, 1}), x.unsqueeze(1), 0.5) - 100).sum(-1).max(0); }},
      {"a product of products", [=](const Tensor& x) { return x.matmul(w).prod(0); }},
      {"padded sums", [=](const Tensor& x) { return x.matmul(w).pad({{1, 3}, {0, 0}}).matmul(w.transpose()); }},
      {"cumsum", [=](const Tensor& x) { return x.cumsum(0); }},
      {"cumsum beside", [=](const Tensor& x) { return x.cumsum(1).sum(0); }},
      {"long cumsum beside", [=](const Tensor& x) { return x.repeat({1, 50}).cumsum(1); }},
      {"long logcumsumexp beside", [=](const Tensor& x) { return (x.repeat({1, 50}) * 0.125).logcumsumexp(1); }},
      {"cumprod", [=](const Tensor& x) { return (x * 0.3).cumprod(0); }},
      {"cummax", [=](const Tensor& x) { return x.cummax(0).first; }},
      {"place of cummin", [=](const Tensor& x) { return x.cummin(0).second; }},
      {"logcumsumexp", [=](const Tensor& x) { return x.logcumsumexp(0); }},
      {"contiguous", [=](const Tensor& x) { return (x.transpose().contiguous() + 1).sum(1); }},
      {"embedding",
       [=](const Tensor& x) { return front.index_select(0, (x.sum(1) > 0).cast(DType::I32)); }},
  };
}
// clang-format on

TEST(VariableSizes, GiveWhatTensorsOfThoseSizesGive) {
  const OnDevice reference("REFERENCE");
  for (const Case& each : cases())
    for (int64_t n : {int64_t{1}, int64_t{2}, int64_t{7}, kMost}) {
      const Tensor x = numbers({n, 6}, static_cast<int>(n));
      const std::string what = each.name + " of " + std::to_string(n);
      expect_near(each.function(length().fit(x, 0)), each.function(x), what);
      expect_near(each.function(fit_in_nans(x, 0)), each.function(x), what + " in NaNs");
    }
}

TEST(VariableSizes, OneRecordingServesAllSizes) {
  const OnDevice reference("REFERENCE");
  std::vector<int64_t> all;
  for (int64_t n = 1; n <= kMost; ++n) all.push_back(n);
  for (const Case& each : cases()) expect_one_recording(each, all);
}

TEST(VariableSizes, OneRecordingServesSizesOnTheDefaultDevice) {
  for (const Case& each : cases()) expect_one_recording(each, {1, kMost});
}

// Loops of tiles, groups and work-items that end at sizes, which are 0 as well.
class SizesOnDevice : public testing::TestWithParam<std::string> {};

TEST_P(SizesOnDevice, LoopsEndAtTwoSizesAndAtNone) {
  const OnDevice device(GetParam().c_str());
  const Variable rows("rows", 0, 70), terms("terms", 0, 50);
  const auto step = jit([](const Tensor& x, const Tensor& y) {
    const Tensor product = x.matmul(y);  // (rows, terms) by (terms, 24)
    return std::vector<Tensor>{
        product, product.relu().softmax(1) + 1, product.sum(0), x.max(1), y.sum(0), x.exp().sum()};
  });
  const auto expected = [](const Tensor& x, const Tensor& y) {
    const Tensor product = x.matmul(y);
    return std::vector<Tensor>{
        product, product.relu().softmax(1) + 1, product.sum(0), x.max(1), y.sum(0), x.exp().sum()};
  };
  for (const auto& [n, m] :
       {std::pair<int64_t, int64_t>{3, 5}, {70, 50}, {64, 17}, {1, 49}, {33, 0}, {0, 9}}) {
    const Tensor x = numbers({n, m}, 1), y = numbers({m, 24}, 2);
    // Both share one count, because they have the inner size in common.
    const Tensor inner = terms.bind(m), outer = rows.bind(n);
    const Tensor wide = numbers({70, 50}, 3), tall = numbers({50, 24}, 4);
    const Tensor a = rows.limit(terms.limit(wide, 1, inner), 0, outer),
                 b = terms.limit(tall, 0, inner);
    const std::vector<Tensor> got = step(a, b);
    const std::vector<Tensor> want =
        expected(wide.shrink({{0, n}, {0, m}}), tall.shrink({{0, m}, {0, 24}}));
    for (size_t i = 0; i < want.size(); ++i)
      expect_near(got[i], want[i],
                  std::to_string(i) + " of " + std::to_string(n) + " by " + std::to_string(m));
  }
  EXPECT_EQ(step.recordings(), 1u);
}

INSTANTIATE_TEST_SUITE_P(All, SizesOnDevice, testing::ValuesIn(devices_at_hand()),
                         [](const auto& each) { return test_name(each.param); });

TEST(VariableSizes, GradientsAreThoseOfTheElements) {
  const Tensor w = numbers({6, 4}, 1).requires_grad_(), b = numbers({4}, 2).requires_grad_();
  const auto gradients_of = [&](const Tensor& x) {
    const Tensor h = (x.matmul(w) + b).layernorm(-1);
    const Tensor y = scaled_dot_product_attention(h, h, h).log_softmax(0);
    return gradient((y * y).mean() + h.max(0).sum() + h.exp().prod(0).log().mean(), {w, b, x});
  };
  for (int64_t n : {int64_t{1}, int64_t{6}, kMost}) {
    const Tensor x = numbers({n, 6}, static_cast<int>(n));
    const std::vector<Tensor> expected = gradients_of(x);
    for (const Tensor& in : {length().fit(x, 0), fit_in_nans(x, 0)}) {
      const std::vector<Tensor> got = gradients_of(in);
      for (size_t i = 0; i < 3; ++i)
        expect_near(got[i], expected[i],
                    "gradient " + std::to_string(i) + " at " + std::to_string(n));
    }
  }
}

TEST(VariableSizes, ScansHaveTheirGradients) {
  for (int64_t n : {int64_t{1}, int64_t{6}, kMost}) {
    const auto gradient_of = [&](const Tensor& x) {
      const Tensor weight = numbers({1, 6}, 3);
      return gradient(
          (x.cumsum(0) * weight * x).sum() + (x * 0.3).cumprod(0).mean() + x.logcumsumexp(0).sum(),
          {x})[0];
    };
    const Tensor x = numbers({n, 6}, static_cast<int>(n));
    expect_near(gradient_of(fit_in_nans(x, 0)), gradient_of(x), std::to_string(n));
  }
}

// An axis beyond the size up to which fixed sizes use a masked reduction.
TEST(VariableSizes, ScansOfLongAxes) {
  const Variable places("places", 0, 150);
  const Tensor room = numbers({2, 150}, 4);
  const auto step = jit([](const Tensor& x) { return x.cumsum(1); });
  for (int64_t n : {150, 3, 65, 0, 1, 149})
    expect_near(step(places.limit(room, 1, places.bind(n))),
                room.shrink({{0, 2}, {0, n}}).cumsum(1), std::to_string(n));
  EXPECT_EQ(step.recordings(), 1u);
}

TEST(VariableSizes, WhatIsBehindHasNoGradient) {
  const Tensor room = numbers({kMost, 2});
  const Tensor part = length().limit(room, 0, 4);
  // Memory of this size, which the gradient gets, is not 0.
  for (int i = 0; i < 4; ++i) (room * 0 + NAN).realize().to_bytes();
  const std::vector<float> g = floats(gradient((part * part).sum(), {room})[0]), x = floats(room);
  for (size_t i = 0; i < g.size(); ++i) EXPECT_FLOAT_EQ(g[i], i < 8 ? 2 * x[i] : 0) << i;
}

TEST(VariableSizes, TrainWithBatchesOfAllSizesInOneRecording) {
  const auto train = [](bool fits) {
    Tensor w = numbers({6, 3}, 4).requires_grad_();
    optim::SGD opt({w}, {.lr = 0.1});
    auto step = jit([&](const Tensor& x) {
      opt.zero_grad();
      Tensor loss = x.matmul(w).square().mean();
      loss.backward();
      opt.step();
      return loss;
    });
    std::vector<float> losses;
    for (const int64_t n : std::vector<int64_t>{4, 4, 1, 9, kMost, 2}) {
      const Tensor x = numbers({n, 6}, static_cast<int>(n));
      losses.push_back(step(fits ? length().fit(x, 0) : x).item<float>());
    }
    for (float v : floats(w)) losses.push_back(v);
    if (fits) {
      EXPECT_EQ(step.recordings(), 1u);
    }
    return losses;
  };
  EXPECT_THAT(train(true), testing::Pointwise(testing::FloatNear(1e-5f), train(false)));
}

// A key-value cache that grows by one position per call.
TEST(VariableSizes, ADecodersCacheGrowsInOneRecording) {
  constexpr int64_t kWidth = 4;
  const Tensor wk = numbers({kWidth, kWidth}, 1), wv = numbers({kWidth, kWidth}, 2);
  Tensor keys = Tensor::zeros({kMost, kWidth}).contiguous().realize();
  Tensor values = Tensor::zeros({kMost, kWidth}).contiguous().realize();
  auto decode = jit([&](const Tensor& x, const Tensor& count) {
    const Tensor here = Tensor::arange(kMost).reshape({kMost, 1}) == count - 1;
    keys.assign(where(here, x.matmul(wk), keys));
    values.assign(where(here, x.matmul(wv), values));
    return scaled_dot_product_attention(x, length().limit(keys, 0, count),
                                        length().limit(values, 0, count));
  });
  const Tensor all = numbers({kMost, kWidth}, 3);
  for (int64_t n = 1; n <= kMost; ++n) {
    const Tensor seen = all.slice(0, {0, n}), x = all.slice(0, {n - 1, n});
    expect_near(decode(x, length().bind(n)),
                scaled_dot_product_attention(x, seen.matmul(wk), seen.matmul(wv)),
                "index " + std::to_string(n));
  }
  EXPECT_EQ(decode.recordings(), 1u);
}

TEST(VariableSizes, ResultsOfAReplayMeetItsArguments) {
  auto step = jit([](const Tensor& x) { return std::pair(x * 2, x.pad({{1, 0}, {0, 0}})); });
  for (int64_t n : {3, 4, 5, 2}) {
    const Tensor x = length().fit(numbers({n, 2}), 0);
    const auto [twice, longer] = step(x);
    expect_near(twice - x, numbers({n, 2}), "twice");
    expect_near(longer + step(x).second.zeros_like().sum(), numbers({n, 2}).pad({{1, 0}, {0, 0}}),
                "longer");
  }
}

TEST(VariableSizes, AnswersAboutThemselves) {
  const Tensor x = length().fit(numbers({3, 2}), 0);
  EXPECT_THAT(x.shape(), ElementsAre(kMost, 2));
  EXPECT_THAT((x + 1).bound_shape(), ElementsAre(3, 2));
  std::ostringstream text;
  text << x;
  EXPECT_THAT(text.str(), HasSubstr("(3≤11, 2)"));
  EXPECT_EQ(to_string(length().fit(Tensor::from<int32_t>({7, 8}), 0)), "[7, 8]");
}

TEST(VariableSizes, RefuseWhatCannotBeDecided) {
  const Tensor x = length().fit(numbers({3, 6}), 0), y = length().fit(numbers({4, 6}), 0);
  EXPECT_THAT(message_of([&] { x + y; }), testing::AllOf(HasSubstr("(of (3≤11, 6) and (4≤11, 6))"),
                                                         HasSubstr("different sizes")));
  EXPECT_THAT(message_of([&] { x + numbers({kMost, 6}); }), HasSubstr("does not vary"));
  EXPECT_THAT(
      message_of([&] { x + numbers({3, 6}); }),
      HasSubstr("[add] shapes (3≤11, 6) and (3, 6) do not broadcast: sizes must be equal or "
                "1, counted from the last axis; a variable size (≤) equals only that of "
                "the same binding"));
  EXPECT_THAT(message_of([&] { matmul(numbers({2, 3}), x); }), HasSubstr("(2, 3) x (3≤11, 6)"));
  EXPECT_THAT(message_of([&] { mse_loss(x, numbers({3, 6})); }), HasSubstr("(3≤11, 6) and (3, 6)"));
  EXPECT_THAT(message_of([&] { stack({x, numbers({3, 6})}); }), HasSubstr("(3≤11, 6) and (3, 6)"));
  EXPECT_THAT(message_of([&] { cat({x, numbers({3, 5})}); }), HasSubstr("(3≤11, 6) and (3, 5)"));
  EXPECT_THAT(message_of([&] { x.expand({3, 6}); }), HasSubstr("(3≤11, 6) does not expand to"));
  const Variable other("other", 1, kMost);
  EXPECT_THAT(message_of([&] { x + other.fit(numbers({3, 6}), 0); }),
              HasSubstr("another variable"));
  EXPECT_THAT(message_of([&] { x.transpose().reshape({-1}); }),
              HasSubstr("neither split nor joined"));
  EXPECT_THAT(message_of([&] { x.slice(0, {0, 2}); }), HasSubstr("beyond the variable size"));
  EXPECT_THAT(
      message_of([&] { x[-2]; }),
      HasSubstr("[index] -2 may be out of range for axis 0 of (3≤11, 6), whose size may be 1"));
  EXPECT_THAT(message_of([&] { x.topk(2, 0); }),
              HasSubstr("[topk] 2 elements of axis 0 of (3≤11, 6), whose size may be 1"));
  EXPECT_THAT(message_of([&] { max_pool1d(x.transpose(), 2); }),
              HasSubstr("do not fit an axis whose variable size may be 1"));
  EXPECT_THAT(message_of([&] { x.gather(1, Tensor::from<int32_t>({{0}, {1}})); }),
              HasSubstr("[gather] (2, 1) may reach beyond (3≤11, 6) along axis 0"));
  EXPECT_THAT(message_of([&] { x.expand({2, -1, -1}).flatten(0, 1); }),
              HasSubstr("neither split nor joined"));
  Tensor fixed = numbers({kMost, 6});
  EXPECT_THAT(message_of([&] { fixed.assign(x); }),
              HasSubstr("[assign] a value of (3≤11, 6) into a tensor of (11, 6)"));
  EXPECT_THAT(
      message_of([&] { fixed[Slice()] = x; }),
      HasSubstr("[setitem] axis 0 of (3≤11, 6) has a variable size, and the elements that are"));
  EXPECT_THAT(message_of([&] { x.item<float>(); }),
              HasSubstr("[item] a tensor of shape (3≤11, 6) has up to 66 elements"));
}

TEST(VariableSizes, RefuseSizesOutsideOfTheirBounds) {
  EXPECT_THAT(message_of([] { length().fit(numbers({12, 2}), 0); }),
              HasSubstr("length is 12; it is bound to 1 to 11"));
  EXPECT_THAT(message_of([] { length().bind(0); }), HasSubstr("length is 0"));
  EXPECT_THAT(message_of([] { length().limit(numbers({4, 2}), 0, 3); }),
              HasSubstr("has 4 elements"));
  EXPECT_THAT(message_of([] { length().limit(numbers({kMost, 2}), 0, Tensor(3.5)); }),
              HasSubstr("i32 and of shape ()"));
  const Tensor beyond = length().limit(numbers({kMost, 2}), 0, length().bind(9) + 5);
  EXPECT_THAT(message_of([&] { beyond.to_vector<float>(); }), HasSubstr("which is 14"));
  EXPECT_THAT(message_of([] { Variable("v", -1, 4).limit(numbers({4, 2}), 0, 3); }),
              HasSubstr("0 or more"));
}

// The only consumer of the rows behind the count is a sum along another axis, which ignores them.
TEST(VariableSizes, EveryKernelOfAProductsSoftmaxReadsTheCount) {
  const Tensor x = length().fit(numbers({5, 6}), 0), w = numbers({6, 4}, 1).realize();
  const std::vector<Kernel> kernels = matmul(x, w).softmax(1).kernelize();
  ASSERT_GE(kernels.size(), 2u);
  for (const Kernel& kernel : kernels)
    EXPECT_THAT(kernel.ast(), HasSubstr("bounded bool")) << kernel.name();
}

TEST(VariableSizes, AConstantSizeOfWhatNoKernelLoads) {
  const Tensor five = Tensor::full({}, 5, DType::I32);
  const Tensor twice = length().limit(Tensor::arange(kMost), 0, five) * 2;
  EXPECT_EQ(twice.sum().item<int32_t>(), 20);
  EXPECT_THAT(twice.to_vector<int32_t>(), testing::ElementsAre(0, 2, 4, 6, 8));
}

// No axis shows the size any more: the sum uses the nearest size, and reading the sum reports it.
TEST(VariableSizes, ASizeThatAKernelComputesIsCheckedWhenItsResultsAreRead) {
  const Tensor x = numbers({kMost, 2}).realize();
  const auto sum = [&](const Tensor& size) { return length().limit(x, 0, size).sum(); };
  EXPECT_NEAR(sum(length().bind(4) + 5).item<float>(), x.slice(0, {0, 9}).sum().item<float>(),
              1e-4);
  EXPECT_THAT(message_of([&] { sum(length().bind(9) + 5).item<float>(); }),
              HasSubstr("which is 14: it lies outside of its bounds, 1 to 11"));
  EXPECT_THAT(message_of([&] { sum(length().bind(3) - 3).item<float>(); }),
              HasSubstr("which is 0"));
  EXPECT_THAT(message_of([&] { sum(Tensor::full({}, 12, DType::I32)); }),
              HasSubstr("length is 12"));
  const Tensor twelve = Tensor::from<int32_t>({12}, Shape{});
  EXPECT_THAT(message_of([&] { sum(twelve).item<float>(); }), HasSubstr("which is 12"));
}

// Every reader of a dependent value gets the error, on any thread, any number of times and through
// any plan; other readers do not.
TEST(VariableSizes, ASizeOutsideOfItsBoundsIsToldToAllReadersOfWhatDependsOnIt) {
  const Tensor x = numbers({kMost, 2}).realize();
  Tensor late = length().limit(x, 0, length().bind(11) + 1).sum();
  Tensor beside = x + 1;
  const std::vector<Tensor> both = {late, beside};
  Tensor::realize(both);
  Tensor of_both = (late * 2).realize() + beside;
  of_both.realize();
  const auto is_told = [&](const Tensor& t) { return message_of([&] { t.to_vector<float>(); }); };
  EXPECT_EQ(is_told(beside), "no error");
  std::array<std::string, 4> told;
  std::vector<std::thread> threads;
  for (std::string& text : told) threads.emplace_back([&] { text = is_told(late); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(told, testing::Each(HasSubstr("which is 12")));
  EXPECT_THAT(is_told(of_both), HasSubstr("which is 12"));
  EXPECT_THAT(is_told(of_both + 1), HasSubstr("which is 12"));
  EXPECT_EQ(is_told(x), "no error");
  EXPECT_EQ(is_told(beside * 3), "no error");
  late.assign(Tensor::full({}, 2.0));
  EXPECT_EQ(is_told(late), "no error");
}

// After many steps without a reader, the first read reports the error.
TEST(VariableSizes, ASizeOutsideOfItsBoundsIsToldAfterManyStepsToo) {
  const Tensor x = numbers({kMost, 2}).realize();
  Tensor total = Tensor::zeros({}).contiguous().realize(),
         place = Tensor::from<int32_t>({14}, Shape{}).realize();
  auto step = jit([&] {
    total.assign(total + length().limit(x, 0, place).sum());
    place.assign(place % kMost + 1);  // 14 first, and then within
  });
  for (int i = 0; i < 600; ++i) step();
  EXPECT_THAT(message_of([&] { total.item<float>(); }), HasSubstr("which is 14"));
  EXPECT_EQ(place.item<int32_t>(), (14 % kMost + 599) % kMost + 1);
}

TEST(VariableSizes, ASizeOfAReplayIsCheckedWhenItsResultsAreRead) {
  const Tensor x = numbers({kMost, 2}).realize();
  Tensor place = Tensor::from<int32_t>({1}, Shape{}).realize();
  auto step = jit([&] {
    place.assign(place + 2);
    return length().limit(x, 0, place).sum();
  });
  for (int64_t n = 3; n <= kMost; n += 2)
    EXPECT_NEAR(step().item<float>(), x.slice(0, {0, n}).sum().item<float>(), 1e-4) << n;
  EXPECT_EQ(step.recordings(), 1u);
  EXPECT_THAT(message_of([&] { step().item<float>(); }), HasSubstr("which is 13"));
}

TEST(VariableSizes, OtherSizesInCommonAreOtherRecordings) {
  auto sum = jit([](const Tensor& x, const Tensor& y) { return (x.sum(0) + y.sum(0)).sum(); });
  const auto x = [](int64_t n) { return length().fit(numbers({n, 2}), 0); };
  for (int i = 0; i < 3; ++i) sum(x(3), x(3));
  EXPECT_EQ(sum.recordings(), 1u);
  for (int i = 0; i < 3; ++i) sum(x(3), x(4));
  EXPECT_EQ(sum.recordings(), 2u);
  auto add = jit([](const Tensor& a, const Tensor& b) { return a + b; });
  for (int64_t n : {2, 3, 4}) add(x(n), x(n));
  EXPECT_THAT(message_of([&] { add(x(3), x(4)); }), HasSubstr("different sizes"));
}

TEST(VariableSizes, OutliveRenumberingAndBeingRealised) {
  const Tensor x = length().fit(numbers({5, 3}), 0);
  const Tensor y = (x * 2).realize();
  engine::Session::current().collect();
  expect_near(y.sum(0), numbers({5, 3}).sum(0) * 2, "sum");
  expect_near(y - x, numbers({5, 3}), "difference");
}

}  // namespace

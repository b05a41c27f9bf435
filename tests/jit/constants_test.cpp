// Prepared constants on every available device: values that depend on captured tensors alone are
// computed once, and again after an assignment to such a tensor. Their memory is counted and freed.
#include "base/settings.h"
#include "devices/at_hand.h"
#include "jit/jit_test.h"
#include "plugrad/nn.h"
#include "runtime/registry.h"

using namespace plugrad;
using testing::ElementsAre;

namespace {

engine::Statistics statistics() {
  return engine::Session::current().statistics();
}

// Twice the tensor, in a separate kernel, whose consumers read it in another order.
Tensor doubled(const Tensor& w) {
  return (w * 2).contiguous().flip(0);
}

class JitConstants : public testing::TestWithParam<std::string> {
 protected:
  Tensor ones(double value, int64_t size = 4) const {
    return Tensor::full({size}, value, DType::F32, GetParam()).contiguous().realize();
  }
  Tensor list(const std::vector<float>& values) const {
    return Tensor::from(values, {static_cast<int64_t>(values.size())}, GetParam()).realize();
  }
  /// Kernels of each of four replays of a function that was called twice.
  template <class Call>
  std::vector<uint64_t> replays(const Call& call) const {
    call();
    call();
    std::vector<uint64_t> counts;
    for (int i = 0; i < 4; ++i) counts.push_back(kernels_of(call));
    return counts;
  }
};

TEST_P(JitConstants, AreComputedByTheFirstReplay) {
  const Tensor w = list({1, 2, 3, 4}), x = list({1, 1, 1, 1});
  auto f = jit([&](const Tensor& a) { return a + doubled(w); });
  EXPECT_THAT(replays([&] { f(x); }), ElementsAre(2, 1, 1, 1));
  EXPECT_THAT(floats(f(x)), ElementsAre(9, 7, 5, 3));
}

TEST_P(JitConstants, ShareNoKernelWithWhatVaries) {
  const Tensor w = list({1, 2, 3, 4}), x = list({1, 1, 1, 1});
  auto f = jit([&](const Tensor& a) { return a + (w * 2).contiguous(); });
  EXPECT_THAT(replays([&] { f(x); }), ElementsAre(2, 1, 1, 1));
  EXPECT_THAT(floats(f(x)), ElementsAre(3, 5, 7, 9));
}

TEST_P(JitConstants, ElementsThatOnlyMoveNeedNoKernelWhereTheHostSharesTheMemory) {
  Tensor w = list({1, 2, 3, 4});
  const Tensor x = list({1, 10, 100, 1000});
  auto f = jit([&](const Tensor& a) { return a * w.flip(0).contiguous(); });
  const bool is_shared =
      runtime::Registry::instance().find_device(GetParam()).caps().unified_memory != 0;
  EXPECT_THAT(replays([&] { f(x); }), ElementsAre(is_shared ? 1 : 2, 1, 1, 1));
  EXPECT_THAT(floats(f(x)), ElementsAre(4, 30, 200, 1000));
  w.assign(list({5, 6, 7, 8}));
  EXPECT_THAT(floats(f(x)), ElementsAre(8, 70, 600, 5000));
}

TEST_P(JitConstants, FollowWhatIsAssigned) {
  Tensor w = list({1, 2, 3, 4});
  const Tensor x = list({10, 20, 30, 40});
  auto f = jit([&](const Tensor& a) { return a + doubled(w); });
  for (int i = 0; i < 3; ++i) EXPECT_THAT(floats(f(x)), ElementsAre(18, 26, 34, 42));
  w.assign(list({5, 6, 7, 8}));
  EXPECT_THAT(floats(f(x)), ElementsAre(26, 34, 42, 50));
  w.assign(w.flip(0) + 1);  // lazy
  EXPECT_THAT(floats(f(x)), ElementsAre(22, 34, 46, 58));
  w[{Slice(1, 3)}] = list({0, 1});
  EXPECT_THAT(floats(f(x)), ElementsAre(22, 22, 30, 58));
  EXPECT_EQ(kernels_of([&] { f(x); }), 1u);
  w.assign(3);
  EXPECT_THAT(floats(f(x)), ElementsAre(16, 26, 36, 46));
}

TEST_P(JitConstants, AViewOfWhatIsAssignedIsComputedAnew) {
  Tensor w = list({1, 2, 3, 4});
  const Tensor view = w.flip(0), x = list({10, 20, 30, 40});
  auto f = jit([&](const Tensor& a) { return a + doubled(view); });
  for (int i = 0; i < 3; ++i) EXPECT_THAT(floats(f(x)), ElementsAre(12, 24, 36, 48));
  w.assign(list({0, 0, 0, 1}));
  EXPECT_THAT(floats(f(x)), ElementsAre(10, 20, 30, 42));
}

TEST_P(JitConstants, OnlyThoseOfTheAssignedTensorAreComputedAnew) {
  Tensor a = list({1, 2, 3, 4}), b = list({5, 6, 7, 8});
  const Tensor x = list({10, 20, 30, 40});
  auto f = jit([&](const Tensor& in) {
    return (in + doubled(a)) * (b.exp2().contiguous().flip(0) * 2 + 1).contiguous().flip(0);
  });
  const auto call = [&] { f(x); };
  const std::vector<uint64_t> counts = replays(call);
  ASSERT_EQ(counts[0], counts[1] + 3);
  a.assign(list({1, 1, 1, 1}));
  EXPECT_EQ(kernels_of(call), counts[1] + 1);
  b.assign(list({0, 0, 1, 1}));
  EXPECT_EQ(kernels_of(call), counts[1] + 2);
  EXPECT_EQ(kernels_of(call), counts[1]);
  EXPECT_THAT(floats(f(x)), ElementsAre(36, 66, 160, 210));
}

// Large enough for the step to renew the weight in its own memory.
TEST_P(JitConstants, FollowAnOptimiserInAnotherFunction) {
  const auto run = [&](bool is_jitted) {
    Tensor w =
        (Tensor::arange(160 * 160).reshape({160, 160}).cast(DType::F32).to(GetParam()) * 1e-4)
            .contiguous()
            .realize()
            .requires_grad_();
    optim::Adam opt({w}, {.lr = 0.01});
    const Tensor x = Tensor::full({3, 160}, 0.125, DType::F32, GetParam()).contiguous().realize();
    const auto step = [&] {
      opt.zero_grad();
      matmul(x, w).square().mean().backward();
      opt.step();
    };
    const auto f = [&](const Tensor& in) {
      return matmul(in, w.detach().transpose().contiguous()).sum(1);
    };
    const auto fast_step = jit(step);
    const auto fast = jit(f);
    std::vector<float> seen;
    for (int i = 0; i < 8; ++i) {
      const Tensor y = is_jitted ? fast(x) : f(x);
      seen.push_back(floats(y)[0]);
      if (i % 2 == 1) is_jitted ? fast_step() : step();
    }
    return seen;
  };
  const std::vector<float> got = run(true);
  EXPECT_THAT(got, testing::Pointwise(testing::FloatNear(2e-3f), run(false)));
  EXPECT_GT(got[1] - got[2], 0.1f);
}

TEST_P(JitConstants, FollowWhatIsLoaded) {
  nn::Linear layer(4, 2);
  layer.weight = layer.weight.detach().to(GetParam()).contiguous().realize();
  const Tensor x = ones(1).reshape({1, 4});
  auto f = jit(
      [&](const Tensor& in) { return matmul(in, layer.weight.detach().transpose().contiguous()); });
  for (int i = 0; i < 4; ++i) f(x);
  nn::StateDict state = nn::state_dict(layer);
  for (auto& [name, tensor] : state) tensor = Tensor::full(tensor.shape(), 2.0);
  nn::load_state_dict(layer, state);
  EXPECT_THAT(floats(f(x)), ElementsAre(8, 8));
}

TEST_P(JitConstants, WhatTheFunctionAssignsIsNone) {
  Tensor w = list({1, 2, 3, 4});
  const Tensor x = list({10, 20, 30, 40});
  auto f = jit([&](const Tensor& a) {  // separate loops: no kernel writes both
    Tensor y = a + (w * 2).reshape({4, 1}).expand({4, 3}).contiguous().sum(1);
    w.assign(w + 1);
    return y;
  });
  for (int i = 0; i < 6; ++i)
    EXPECT_THAT(floats(f(x)), ElementsAre(16 + 6 * i, 32 + 6 * i, 48 + 6 * i, 64 + 6 * i));
  EXPECT_EQ(statistics().constant_bytes, 0u);
}

TEST_P(JitConstants, ArgumentsAndRandomNumbersAreNone) {
  const Tensor w = list({1, 2, 3, 4}), x = list({10, 20, 30, 40});
  auto f = jit([&](const Tensor& a) {
    return std::pair(w + doubled(a), w + Tensor::rand({4}, DType::F32, GetParam()).contiguous());
  });
  std::vector<float> before;
  for (int i = 0; i < 5; ++i) {
    const Tensor a = (x * i).contiguous().realize();
    const auto [sum, random] = f(a);
    EXPECT_THAT(floats(sum), ElementsAre(1 + 80 * i, 2 + 60 * i, 3 + 40 * i, 4 + 20 * i));
    EXPECT_NE(floats(random), before);
    before = floats(random);
  }
  EXPECT_EQ(statistics().constant_bytes, 0u);
}

TEST_P(JitConstants, ResultsAreEachCallsOwn) {
  Tensor w = list({1, 2, 3, 4});
  auto f = jit([&] { return (w * 2).contiguous(); });
  std::vector<Tensor> kept;
  for (int i = 0; i < 5; ++i) {
    kept.push_back(f());
    kept.back() += 1;
    w.assign(w + 1);
  }
  for (int i = 0; i < 5; ++i)
    EXPECT_THAT(floats(kept[static_cast<size_t>(i)]),
                ElementsAre(3 + 2 * i, 5 + 2 * i, 7 + 2 * i, 9 + 2 * i));
}

TEST_P(JitConstants, TwoRecordingsOfOneTensorBothFollow) {
  Tensor w = list({1, 2});
  auto f = jit([&](const Tensor& a) { return a * (w + 1).contiguous().flip(0); });
  auto g = jit([&](const Tensor& a) { return a - (w + 1).contiguous().flip(0); });
  const Tensor x = list({10, 20}), rows = Tensor::full({3, 2}, 1.0, DType::F32, GetParam());
  const auto check = [&](float first, float second) {
    EXPECT_THAT(floats(f(x)), ElementsAre(10 * first, 20 * second));
    EXPECT_THAT(floats(f(rows)), ElementsAre(first, second, first, second, first, second));
    EXPECT_THAT(floats(g(x)), ElementsAre(10 - first, 20 - second));
  };
  for (int i = 0; i < 4; ++i) check(3, 2);
  w.assign(w * 3);
  for (int i = 0; i < 2; ++i) check(7, 4);
}

TEST_P(JitConstants, MemoryIsCountedAndReleasedWithTheRecording) {
  const Tensor w = ones(1, 1000), x = ones(2, 1000);
  ASSERT_EQ(statistics().constant_bytes, 0u);
  {
    auto f = jit([&](const Tensor& a) { return a + doubled(w); });
    for (int i = 0; i < 4; ++i) f(x);
    EXPECT_EQ(statistics().constant_bytes, 4000u);
  }
  EXPECT_EQ(statistics().constant_bytes, 0u);
}

TEST_P(JitConstants, AreSharedByRecordingsThatComputeTheSame) {
  Tensor w = ones(1, 1000);
  auto f = jit([&](const Tensor& a) { return a + doubled(w); });
  const Tensor x = ones(2, 1000), rows = ones(5, 3000).reshape({3, 1000});
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(floats(f(x))[7], 4.0f);
    EXPECT_EQ(floats(f(rows))[2007], 7.0f);
  }
  EXPECT_EQ(statistics().constant_bytes, 4000u);
  w.assign(w + 1);
  EXPECT_EQ(kernels_of([&] { f(x); }), 3u);  // the assigned value, twice that, the sum
  EXPECT_EQ(kernels_of([&] { f(rows); }), 1u);
  EXPECT_EQ(floats(f(rows))[2007], 9.0f);
}

TEST_P(JitConstants, TablesMuchLargerThanWhatTheyAreMadeOfAreNotKept) {
  const Tensor w = ones(2, 600);
  const auto kept = [&](int64_t rows) {
    auto f = jit([&](const Tensor& a) {
      return a +
             (w + Tensor::arange(rows).reshape({rows, 1}).cast(DType::F32)).contiguous().flip(0);
    });
    const Tensor x = ones(1, 600);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(f(x)[{rows - 1}][{7}].item<float>(), 3.0f);
    return statistics().constant_bytes;
  };
  EXPECT_EQ(kept(400), 400u * 600 * 4);
  EXPECT_EQ(kept(500), 0u);  // 1.14 MiB of 2.3 KiB
}

TEST_P(JitConstants, AreGivenUpWhereMemoryLacks) {
  constexpr int64_t kSize = 1 << 18;
  const Tensor w = ones(1, kSize), x = ones(2, kSize);
  auto f = jit([&](const Tensor& a) { return a + doubled(w); });
  for (int i = 0; i < 4; ++i) f(x);
  ASSERT_EQ(statistics().constant_bytes, 4u * kSize);
  engine::Session::current().collect();
  const uint64_t used =
      runtime::Registry::instance().find_device(GetParam()).memory_stats().used_bytes;
  const SettingScope tight([&](Settings& s) { s.memory_limit_bytes = used + 2 * kSize; });
  EXPECT_EQ(f(x)[{5}].item<float>(), 4.0f);
  EXPECT_EQ(statistics().constant_bytes, 0u);
  EXPECT_EQ(f(x)[{5}].item<float>(), 4.0f);
}

TEST_P(JitConstants, KernelsOfAVariableSizeAreRunAgain) {
  const Tensor w = list({1, 2, 3, 4});
  const Variable n("n", 1, 4);
  auto f = jit([&](const Tensor& count) { return (n.limit(w, 0, count) * 2).contiguous().sum(); });
  for (const int64_t count : {4, 4, 2, 3, 1}) {
    const int expected[] = {2, 6, 12, 20};
    EXPECT_EQ(f(n.bind(count, GetParam())).item<int>(), expected[count - 1]) << count;
  }
}

TEST(JitConstantCopies, AreMadeOnce) {
  const std::vector<std::string> devices = devices_at_hand();
  Tensor w = Tensor::from<float>({1, 2}, devices[0]).realize();
  const Tensor x = Tensor::from<float>({10, 20}, devices[1]).realize();
  auto f = jit([&](const Tensor& a) { return a + w.to(devices[1]); });
  const auto copies = [&] {
    const uint64_t before = statistics().copies;
    f(x);
    return statistics().copies - before;
  };
  std::vector<uint64_t> counts;
  for (int i = 0; i < 5; ++i) counts.push_back(copies());
  EXPECT_THAT(counts, ElementsAre(1, 1, 1, 0, 0));
  w.assign(w * 5);
  EXPECT_THAT(floats(f(x)), ElementsAre(15, 30));
}

INSTANTIATE_TEST_SUITE_P(All, JitConstants, testing::ValuesIn(devices_at_hand()),
                         [](const auto& each) { return test_name(each.param); });

}  // namespace

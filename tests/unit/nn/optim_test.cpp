// Optimisers against trajectories of PyTorch 2.13: four steps on a weighted square distance.
#include "plugrad/optim.h"

#include <gmock/gmock.h>

#include "engine/session.h"
#include "near.h"
#include "scratch_folder.h"

using namespace plugrad;
using testing::HasSubstr;

namespace {

Tensor start() {
  return Tensor::from<float>({1.0f, -2.0f, 0.5f}).requires_grad_();
}

Tensor loss_of(const Tensor& p) {
  Tensor distance = p - Tensor::from<float>({0.3f, 0.1f, -0.2f});
  return (distance * distance * Tensor::from<float>({1, 2, 3})).sum();
}

template <class Optimizer, class Options>
Tensor after_four_steps(const Options& options) {
  Tensor p = start();
  Optimizer opt({p}, options);
  for (int step = 0; step < 4; ++step) {
    opt.zero_grad();
    loss_of(p).backward();
    opt.step();
  }
  return p;
}

}  // namespace

TEST(Master, AddsStepsThatAHalfWouldLose) {
  const auto after = [](DType dtype, bool master, const Tensor& assigned = {}) {
    Tensor p = Tensor::full({2}, 1.0).cast(dtype).realize().requires_grad_();
    optim::SGD opt({p}, {.lr = 1e-4, .master = master});
    for (int step = 0; step < 50; ++step) {
      if (assigned.defined() && step == 25) p.assign(assigned.cast(dtype));
      opt.zero_grad();
      p.sum().backward();
      opt.step();
    }
    return p.cast(DType::F32).to_vector<float>();
  };
  EXPECT_EQ(after(DType::BF16, true), std::vector<float>(2, 0.99609375f)) << "0.995 in bf16";
  EXPECT_EQ(after(DType::F16, true), std::vector<float>(2, 0.9951171875f));
  EXPECT_EQ(after(DType::BF16, false), std::vector<float>(2, 1.0f));
  // An assignment from outside takes effect: the next step begins with its value.
  EXPECT_EQ(after(DType::F16, true, Tensor::from<float>({0.5f, 1})),
            (std::vector<float>{0.49755859375f, 0.99755859375f}));
}

TEST(Master, IsAPartOfTheSavedStateWhereThereIsAHalf) {
  const Tensor half = start().cast(DType::F16).detach().requires_grad_(), single = start();
  EXPECT_EQ(nn::state_dict(optim::SGD({half, single})).at(0).first, "master.0");
  EXPECT_TRUE(nn::state_dict(optim::SGD({single})).empty());
}

TEST(SGD, FollowsTheGradient) {
  expect_near(after_four_steps<optim::SGD>(optim::SGDOptions{.lr = 0.05}),
              {0.75927001f, -0.76016003f, -0.031930011f});
}

TEST(SGD, KeepsMomentum) {
  expect_near(after_four_steps<optim::SGD>(optim::SGDOptions{.lr = 0.05, .momentum = 0.9}),
              {0.45876002f, 0.74805993f, -0.64995998f});
}

TEST(SGD, LooksAheadWithNesterovAndDecaysWeights) {
  optim::SGDOptions options{.lr = 0.05, .momentum = 0.9, .nesterov = true, .weight_decay = 0.1};
  expect_near(after_four_steps<optim::SGD>(options), {0.33065665f, 0.80266207f, -0.49342278f});
}

TEST(Adam, FollowsItsMoments) {
  expect_near(after_four_steps<optim::Adam>(optim::AdamOptions{.lr = 0.1}),
              {0.60700166f, -1.6014143f, 0.10700168f});
}

TEST(Adam, AddsWeightDecayToTheGradientAndAdamWToTheWeight) {
  optim::AdamOptions options{.lr = 0.1, .weight_decay = 0.1};
  expect_near(after_four_steps<optim::Adam>(options), {0.6067645f, -1.6014165f, 0.1070582f});
  expect_near(after_four_steps<optim::AdamW>(options), {0.57468456f, -1.5289154f, 0.093745746f});
}

TEST(Optimizers, RepeatThePlanOfTheFirstStep) {
  Tensor p = start();
  optim::Adam opt({p}, {.lr = 0.1});
  engine::Session& session = engine::Session::current();
  uint64_t made = 0;
  for (int step = 0; step < 5; ++step) {
    opt.zero_grad();
    Tensor loss = loss_of(p);
    loss.backward();
    opt.step();
    if (step == 0) made = session.statistics().plans_made;
  }
  EXPECT_EQ(session.statistics().plans_made, made);
}

TEST(Optimizers, ALearningRateIsChangedWithoutNewKernels) {
  Tensor p = start();
  optim::SGD opt({p}, {.lr = 0.1});
  loss_of(p).backward();
  opt.step();
  uint64_t compiled = engine::Session::current().statistics().kernels_compiled;
  opt.zero_grad();
  opt.set_learning_rate(0);
  std::vector<float> before = p.to_vector<float>();
  loss_of(p).backward();
  opt.step();
  EXPECT_EQ(p.to_vector<float>(), before);
  EXPECT_EQ(engine::Session::current().statistics().kernels_compiled, compiled);
}

TEST(Optimizers, SayWhatIsWrong) {
  EXPECT_THAT(user_error([] { optim::SGD({}); }), HasSubstr("there are no parameters"));
  EXPECT_THAT(user_error([] { optim::SGD({Tensor::ones({2})}); }),
              HasSubstr("does not require gradients"));
  EXPECT_THAT(user_error([] { optim::SGD({start()}, {.lr = -1}); }),
              HasSubstr("learning rate is -1"));
  EXPECT_THAT(user_error([] { optim::SGD({start()}, {.nesterov = true}); }),
              HasSubstr("nesterov needs momentum"));
  EXPECT_THAT(user_error([] { optim::Adam({start()}, {.beta1 = 1}); }), HasSubstr("a beta is 1"));
  EXPECT_THAT(user_error([] { optim::Adam({start()}).step(); }),
              HasSubstr("call loss.backward() before step()"));
}

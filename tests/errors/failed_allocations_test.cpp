// Programs in which one allocation fails, each in turn: the error comes out, what was there before
// is unchanged, and the same work then gives the right numbers. By default a part of them, evenly
// spread; PLUGRAD_TEST_ALLOCATIONS=all runs all.
#include "errors/failed_allocations.h"

#include "plugrad/jit.h"
#include "plugrad/loss.h"
#include "plugrad/optim.h"
#include "plugrad/tensor.h"

namespace plugrad {
namespace {

// Two images of the size of MNIST's, a hidden layer, ten classes.
class Training {
 public:
  void step() {
    optimiser_.zero_grad();
    Tensor hidden = (images_.matmul(first_) + bias_).relu();
    sparse_categorical_crossentropy(hidden.matmul(second_), labels_).backward();
    optimiser_.step();
  }
  // Of the parameters, then of the optimiser.
  Floats values() const {
    Floats all;
    for (const Tensor& t : {first_, bias_, second_}) {
      const Floats one = t.to_vector<float>();
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

 private:
  static Tensor parameter(const Shape& shape) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    return Tensor::from(ramp(count, 0.002f), shape).requires_grad_();
  }
  Tensor images_ = Tensor::from(ramp(2 * 784, 0.01f), {2, 784});
  Tensor labels_ = Tensor::from<int32_t>({3, 8});
  Tensor first_ = parameter({784, 4}), bias_ = parameter({4}), second_ = parameter({4, 10});
  optim::Adam optimiser_{{first_, bias_, second_}, {.lr = 0.01}};
};

TEST_F(FailedAllocations, a_training_step_is_done_as_a_whole_or_not_at_all) {
  Floats before, after, after_two;
  const uint64_t count = [&] {
    Training training;
    before = training.values();
    const uint64_t found = count_of([&] { training.step(); });
    after = training.values();
    training.step();
    after_two = training.values();
    return found;
  }();
  ASSERT_NE(before, after);
  for_each_allocation(count, [&](uint64_t n) {
    engine::Session::current().clear_caches();
    Training training;
    const bool has_failed = fails_at(n, [&] { training.step(); });
    ASSERT_EQ(training.values(), has_failed ? before : after);
    if (has_failed) training.step();
    ASSERT_EQ(training.values(), after);
    training.step();
    ASSERT_EQ(training.values(), after_two);
  });
}

TEST_F(FailedAllocations, a_program_is_recorded_and_freed) {
  const auto program = [] {
    Tensor x = Tensor::from(ramp(48, 0.5f), {6, 8}).requires_grad_();
    Tensor y = (x.sin() * x.sum(1).reshape({6, 1})).softmax(-1);
    (y * y).sum().backward();
    Floats all = x.grad().to_vector<float>();
    for (int i = 0; i < 3; ++i) x = (x + x.flip(0) * 0.5).detach().contiguous();
    const Floats last = x.to_vector<float>();
    all.insert(all.end(), last.begin(), last.end());
    engine::Session::current().collect();
    return all;
  };
  const Floats expected = program();
  const Tensor bystander = Tensor::from(ramp(30, 1)) * 3 + 1;  // recorded, computed at the end
  const uint64_t count = count_of([&] { program(); });
  for_each_allocation(count, [&](uint64_t n) {
    engine::Session::current().clear_caches();
    fails_at(n, [&] { program(); });
    ASSERT_EQ(program(), expected);
  });
  EXPECT_EQ(bystander.to_vector<float>()[2], (ramp(30, 1)[2]) * 3 + 1);
}

// A tensor, views of it, and a view of a view that stands for itself.
struct Viewed {
  Tensor x = Tensor::from(ramp(12, 1), {3, 4}), row = x[1], low = x.slice(1, {0, 3}),
         apart = row.detach(), end = apart.slice(0, {2, 4});
  Floats values() const {
    Floats all;
    for (const Tensor& t : {x, row, low, apart, end}) {
      if (!t.defined()) continue;
      const Floats one = t.to_vector<float>();
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }
};

TEST_F(FailedAllocations, a_write_shows_in_all_views_or_in_none) {
  Viewed whole;
  const Floats before = whole.values();
  const uint64_t count = count_of([&] { whole.end += 1; });
  const Floats after = whole.values();
  ASSERT_NE(before, after);
  for_each_allocation(count, [&](uint64_t n) {
    Viewed viewed;
    const bool has_failed = fails_at(n, [&] { viewed.end += 1; });
    ASSERT_EQ(viewed.values(), has_failed ? before : after);
    if (has_failed) viewed.end += 1;
    ASSERT_EQ(viewed.values(), after);
  });
}

TEST_F(FailedAllocations, views_outlive_their_bases) {
  const auto program = [] {
    Viewed viewed;
    viewed.apart = Tensor();
    viewed.x = Tensor();
    viewed.end += 1;  // to a base that only its views hold
    viewed.low *= 2;
    engine::Session::current().collect();
    viewed.row += 3;
    return viewed.values();
  };
  const Floats expected = program();
  const uint64_t count = count_of([&] { program(); });
  for_each_allocation(count, [&](uint64_t n) {
    engine::Session::current().clear_caches();
    fails_at(n, [&] { program(); });
    ASSERT_EQ(program(), expected);
  });
}

// A function that changes two tensors, or two parts of one, and returns a third.
struct Jitted {
  explicit Jitted(bool of_views) {
    if (!of_views) return;
    state = whole.slice(0, {128, 384});
    average = whole.slice(0, {384, 640});
  }
  Tensor whole = Tensor::from(ramp(640, 0.125f));
  const Tensor turned = whole.flip(0);
  Tensor state = Tensor::from(ramp(256, 0.5f)), average = Tensor::from(ramp(256, 0.25f));
  std::function<Tensor(const Tensor&)> call = jit([this](const Tensor& x) {
    average.assign(average * 0.5 + x);
    state.assign(state - average * 0.25);
    return state.sum();
  });
  Floats values() const {
    Floats all;
    for (const Tensor& t : {state, average, whole, turned}) {
      const Floats one = t.to_vector<float>();
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }
};

class FailedAllocationsOfCalls : public FailedAllocations,
                                 public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(OfTensorsAndOfViews, FailedAllocationsOfCalls, testing::Bool());

TEST_P(FailedAllocationsOfCalls, a_jitted_function_is_recorded) {
  const Tensor x = Tensor::from(ramp(256, 0.125f));
  const auto four_calls = [&] {
    Jitted jitted(GetParam());
    Floats all;
    for (int i = 0; i < 4; ++i) all.push_back(jitted.call(x).item<float>());
    const Floats last = jitted.values();
    all.insert(all.end(), last.begin(), last.end());
    return all;
  };
  const Floats expected = four_calls();
  const uint64_t count = count_of([&] { four_calls(); });
  for_each_allocation(count, [&](uint64_t n) {
    engine::Session::current().clear_caches();
    fails_at(n, [&] { four_calls(); });
    ASSERT_EQ(four_calls(), expected);
  });
}

// A call that fails while it is recorded, and whose error the program catches, is made again.
TEST_P(FailedAllocationsOfCalls, a_recorded_call_leaves_its_tensors) {
  const Tensor x = Tensor::from(ramp(256, 0.125f));
  std::vector<Floats> after;  // each number of calls
  uint64_t count = 0;
  {
    Jitted jitted(GetParam());
    after.push_back(jitted.values());
    count = count_of([&] { jitted.call(x); });
    after.push_back(jitted.values());
    for (int i = 0; i < 3; ++i) {
      jitted.call(x);
      after.push_back(jitted.values());
    }
  }
  for_each_allocation(count, [&](uint64_t n) {
    engine::Session::current().clear_caches();
    Jitted jitted(GetParam());
    const bool has_failed = fails_at(n, [&] { jitted.call(x); });
    const Floats found = jitted.values();
    // The function itself ran to its end if only its recording failed.
    ASSERT_TRUE(found == after[0] || found == after[1]) << has_failed;
    for (size_t calls = found == after[0] ? 0 : 1; calls < 4; ++calls) {
      jitted.call(x);
      ASSERT_EQ(jitted.values(), after[calls + 1]);
    }
  });
}

TEST_P(FailedAllocationsOfCalls, a_replay_changes_all_tensors_or_none) {
  const Tensor x = Tensor::from(ramp(256, 0.125f));
  Jitted jitted(GetParam());
  for (int i = 0; i < 4; ++i) jitted.call(x);
  const Floats state = ramp(256, 0.5f), average = ramp(256, 0.25f);
  const auto set = [&] {
    jitted.state.assign(Tensor::from(state));
    jitted.average.assign(Tensor::from(average));
    return jitted.values();
  };
  const Floats before = set();
  const float result = jitted.call(x).item<float>();
  const Floats after = jitted.values();
  set();
  uint64_t count = 0;
  {
    const test::FailingNew counting;
    jitted.call(x);
    count = test::FailingNew::count();
  }
  for_each_allocation(count, [&](uint64_t n) {
    set();
    const bool has_failed = fails_at(n, [&] { jitted.call(x); });
    try {
      ASSERT_EQ(jitted.values(), has_failed ? before : after);
    } catch (const Error& e) {  // its memory was to be overwritten
      ASSERT_NE(std::string(e.what()).find("are gone"), std::string::npos) << e.what();
      ASSERT_TRUE(has_failed);
    }
    ASSERT_EQ(set(), before);
    ASSERT_EQ(jitted.call(x).item<float>(), result);
    ASSERT_EQ(jitted.values(), after);
  });
}

}  // namespace
}  // namespace plugrad

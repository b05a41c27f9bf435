// Replays that update tensors in place, on every available device and on meshes: that they do so,
// and programs that unconditional in-place updates would break. Each is compared with the same
// program without jit.
#include <cmath>

#include "devices/at_hand.h"
#include "jit/jit_test.h"
#include "runtime/registry.h"

using namespace plugrad;

namespace {

constexpr int64_t kRows = 192;                  // square, so that a transposition has the same form
constexpr uint64_t kBytes = 4 * kRows * kRows;  // 144 KiB: worth it, and half of it as well
const std::string kRowsCut = "mesh_that_cuts_rows", kWhole = "mesh_of_copies";

bool is_mesh(const std::string& param) {
  return param == kRowsCut || param == kWhole;
}

class JitInPlace : public testing::TestWithParam<std::string> {
 protected:
  Tensor numbers(int seed) const {
    std::vector<float> values;
    for (int64_t i = 0; i < kRows * kRows; ++i)
      values.push_back(static_cast<float>((i * 37 + seed * 11) % 101 - 50));
    const Tensor made = Tensor::from(values, {kRows, kRows}, device());
    if (!is_mesh(GetParam())) return made.realize();
    const Mesh mesh({{"data", 2}}, {device(), device()});
    return made.shard(mesh, {GetParam() == kRowsCut ? "data" : ""}).realize();
  }
  std::string device() const { return is_mesh(GetParam()) ? "CPU" : GetParam(); }
  /// The rise of the device's memory in use during the call, in bytes.
  template <class Call>
  uint64_t growth(const Call& call) const {
    runtime::Device& memory = runtime::Registry::instance().find_device(device());
    engine::Session::current().collect();
    memory.reset_peak();
    const uint64_t before = memory.memory_stats().used_bytes;
    call();
    return memory.memory_stats().peak_bytes - before;
  }
};

TEST_P(JitInPlace, AnUpdateNeedsNoSecondCopy) {
  Tensor w = numbers(1), m = numbers(2);
  const Tensor g = numbers(3);
  auto step = jit([&] {
    m.assign(m * 0.5 + g * 0.5);
    w.assign(w - m * 0.25);
  });
  for (int i = 0; i < 4; ++i) step();
  EXPECT_LT(growth([&] { step(); }), kBytes / 2);
  const std::vector<float> got = floats(w);
  Tensor w2 = numbers(1), m2 = numbers(2);
  for (int i = 0; i < 5; ++i) {
    m2.assign(m2 * 0.5 + g * 0.5);
    w2.assign(w2 - m2 * 0.25);
    Tensor::realize(std::vector{w2, m2});
  }
  EXPECT_THAT(got, testing::Pointwise(testing::FloatNear(1e-4f), floats(w2)));
}

TEST_P(JitInPlace, ResultsDoNotWaitInScratchWhereAnotherIsMadeOfWhatTheyReplace) {
  if (GetParam() == kRowsCut) GTEST_SKIP() << "kernels of parts have other names";
  Tensor w = numbers(1), m = numbers(2);
  const Tensor g = numbers(3).transpose();
  const auto text = [&](const char* list) {
    const OptimisationScope scope(list);
    const auto step = jit([&] {
      m.assign(m * 0.5 + g * 0.5);
      w.assign(w - m * 0.25);
    });
    return message_of([&] {
      for (int i = 0; i < 3; ++i) step();
    });
  };
  EXPECT_THAT(text("E_192_192: stage(0, 0)"), testing::HasSubstr("is not legal"));
}

TEST_P(JitInPlace, ATrainingStepHoldsParametersAndMomentsOnce) {
  Tensor w = (numbers(4) * 0.01).realize().requires_grad_();
  optim::Adam opt({w}, {.lr = 0.01});
  const Tensor x = numbers(5);
  auto step = jit([&] {
    opt.zero_grad();
    Tensor loss = (matmul(x, w) * 0.01).square().mean();
    loss.backward();
    opt.step();
    return loss;
  });
  std::vector<float> losses;
  for (int i = 0; i < 6; ++i) losses.push_back(step().item<float>());
  EXPECT_LT(growth([&] { losses.push_back(step().item<float>()); }), kBytes);
  EXPECT_LT(losses.back(), losses.front());
}

/// A program: the work of each iteration, and the observed tensors.
struct Program {
  const char* name;
  std::function<Tensor(Tensor& w, const Tensor& x)> step;  // assigns w; its result is looked at too
};

// clang-format off
std::vector<Program> programs_with_old_values() {
  return {
      {"the old value itself is a result", [](Tensor& w, const Tensor& x) {
         const Tensor old = w.detach();
         w.assign(w * 0.5 + x);
         return old;
       }},
      {"the old value is a result on its mesh", [](Tensor& w, const Tensor& x) {
         const Tensor old = w.is_sharded() ? w.shard(w.mesh(), w.shard_spec()) : w.detach();
         w.assign(w * 0.5 + x);
         return old;
       }},
      {"a slice of the old value is a result", [](Tensor& w, const Tensor& x) {
         const Tensor old = w.is_sharded() ? w.shard(w.mesh(), {"data"}) : w[{Slice(0, 4)}];
         w.assign(w * 0.5 + x);
         return old;
       }},
      {"parts of the old value are a result", [](Tensor& w, const Tensor& x) {
         const Tensor old = w.is_sharded() ? w.shards()[1] : w.detach();
         w.assign(w * 0.5 + x);
         return old;
       }},
  };
}

std::vector<Program> programs() {
  return {
      {"same element", [](Tensor& w, const Tensor& x) { w.assign(w * 0.5 + x); return x.sum(); }},
      {"transposed", [](Tensor& w, const Tensor& x) { w.assign(w.transpose() * 0.5 + x); return w.max(); }},
      {"itself and transposed", [](Tensor& w, const Tensor&) { w.assign((w + w.transpose()) * 0.5); return w.max(); }},
      {"neighbours", [](Tensor& w, const Tensor&) {
         w.assign((w + w.pad({{1, 0}, {0, 0}}).shrink({{0, kRows}, {0, kRows}})) * 0.5);
         return w.max();
       }},
      {"backwards", [](Tensor& w, const Tensor& x) { w.assign(w.flip(1) - x * 0.1); return w.max(); }},
      {"rows less their mean", [](Tensor& w, const Tensor& x) { w.assign(w - w.mean(1, true) + x * 0.1); return w.max(); }},
      {"a product", [](Tensor& w, const Tensor& x) { w.assign(matmul(w * 0.001, x) + w * 0.5); return w.max(); }},
      {"the old value is a result", [](Tensor& w, const Tensor& x) {
         const Tensor old = w * 1;
         w.assign(w * 0.5 + x);
         return old;
       }},
      {"the old value is a view", [](Tensor& w, const Tensor& x) {
         const Tensor old = w.detach();
         w.assign(w * 0.5 + x);
         return old.transpose().contiguous();
       }},
      {"read by a kernel behind", [](Tensor& w, const Tensor& x) {
         const Tensor old = w.detach();
         w.assign(w * 0.5 + x);
         return matmul(old, w * 0.001) + old.sum();
       }},
      {"every element for all terms of a sum", [](Tensor& w, const Tensor& x) {
         const Tensor terms = x[{0}][{Slice(0, 4)}] * 0.01;
         w.assign((w.unsqueeze(2) * terms).sum(2) + w * 0.5);
         return w.max();
       }},
      {"each element's maximum of products", [](Tensor& w, const Tensor& x) {
         w.assign((w.unsqueeze(2) * (x[{1}][{Slice(0, 4)}] * 0.01)).max(2));
         return w.sum();
       }},
      {"a result of another dtype", [](Tensor& w, const Tensor& x) {
         const Tensor old = w.cast(DType::F64) * 0.5;
         w.assign(w * 0.5 + x);
         return old;
       }},
      {"a result of another size", [](Tensor& w, const Tensor& x) {
         const Tensor old = w.pad({{0, kRows}, {0, 0}}) * 0.5;
         w.assign(w * 0.5 + x);
         return old;
       }},
      {"renewed twice", [](Tensor& w, const Tensor& x) {
         w.assign(w * 0.5 + x);
         w.assign(w - x * 0.25);
         return w.sum();
       }},
      {"realised between", [](Tensor& w, const Tensor& x) {
         w.assign(w * 0.5 + x);
         w.realize();
         w.assign(w - x * 0.25);
         return w.sum();
       }},
  };
}
// clang-format on

/// All values observed in eight iterations; in some, other tensors hold the old value.
std::vector<float> seen(const Program& program, Tensor w, const Tensor& x, bool jitted) {
  const auto f = [&](const Tensor& in) { return program.step(w, in); };
  const auto fast = jit(f);
  std::vector<float> values;
  const auto look = [&](const Tensor& t) {
    for (float v : floats(t.cast(DType::F32))) values.push_back(v);
  };
  for (int turn = 0; turn < 8; ++turn) {
    Tensor lazy, view, whole, part;
    if (turn == 4) lazy = w * 3 + 1;
    if (turn == 5) view = w[{Slice(1, 3)}];
    if (turn == 6) whole = w.detach();
    if (turn == 7 && w.is_sharded()) part = w.shards().back();
    look(jitted ? fast(x) : f(x));
    w.realize();
    for (const Tensor& other : {lazy, view, whole, part})
      if (other.defined()) look(other);
    look(w);
  }
  return values;
}

TEST_P(JitInPlace, NobodySeesTheDifference) {
  std::vector<Program> all = programs();
  std::ranges::copy(programs_with_old_values(), std::back_inserter(all));
  for (const Program& program : all)
    EXPECT_THAT(
        seen(program, numbers(6), numbers(7), true),
        testing::Pointwise(testing::FloatNear(1e-3f), seen(program, numbers(6), numbers(7), false)))
        << program.name;
}

// The value that a recording brings from the host is that of the tensor which it was assigned to.
TEST_P(JitInPlace, AValueOfAnotherRecordingStays) {
  Tensor w = numbers(8);
  const Tensor first = numbers(9);
  auto reset = jit([&] { w.assign(first); });
  auto step = jit([&] { w.assign(w + 1); });
  for (int i = 0; i < 5; ++i) {
    reset();
    step();
    step();
    EXPECT_EQ(w[{0}][{0}].item<float>(), first[{0}][{0}].item<float>() + 2) << i;
  }
  EXPECT_EQ(floats(first), floats(numbers(9)));
}

// Two handles, one value; arguments are assigned too.
TEST_P(JitInPlace, TwoTensorsOfOneValue) {
  Tensor a = numbers(10), b = a.clone();
  auto step = jit([&](const Tensor& x) { Tensor(x).assign(x * 0.5 + 1); });
  for (int i = 0; i < 4; ++i) {
    const std::vector<float> before = floats(b);
    step(a);
    EXPECT_EQ(floats(b), before);
    EXPECT_EQ(a[{0}][{1}].item<float>(),
              (before[1] - 2) * static_cast<float>(std::pow(0.5, i + 1)) + 2);
  }
}

std::vector<std::string> places() {
  std::vector<std::string> all = devices_at_hand();
  if (std::ranges::find(all, "CPU:0") != all.end()) all.insert(all.end(), {kRowsCut, kWhole});
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, JitInPlace, testing::ValuesIn(places()),
                         [](const auto& each) { return test_name(each.param); });

}  // namespace

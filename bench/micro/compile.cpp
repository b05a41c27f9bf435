// Measures planning and compilation.
#include "base/clock.h"
#include "bench/harness.h"
#include "bench/micro/empty_cache.h"
#include "bench/micro/micro.h"
#include "bench/networks/mnist_step.h"
#include "bench/networks/resnet18.h"
#include "engine/session.h"
#include "tensor/handles.h"

namespace plugrad::bench {
namespace {

using Body = std::function<void(benchmark::State&)>;

// Uncached kernels: their constant is the time of day.
Body compile_of_small_kernel() {
  const Tensor a = Tensor::from<float>({1, 2, 3, 4}).realize();
  const double salt =
      static_cast<double>(monotonic_ns() % 1'000'003) / 7;  // small enough to be distinct in f32
  return [a, salt, count = 0](benchmark::State& state) mutable {
    engine::Session& session = engine::Session::current();
    for (auto _ : state) {
      const uint64_t before = session.statistics().compile_ns;
      (a * (salt + count++)).realize();
      state.SetIterationTime(static_cast<double>(session.statistics().compile_ns - before) * 1e-9);
    }
  };
}

// Seconds of planning and code generation of the MNIST step.
double planning_seconds(MnistStep& step) {
  engine::Session& session = engine::Session::current();
  const engine::Statistics before = session.statistics();
  step.run_plainly();
  const engine::Statistics after = session.statistics();
  return static_cast<double>(after.schedule_ns + after.codegen_ns + after.lookup_ns -
                             before.schedule_ns - before.codegen_ns - before.lookup_ns) *
         1e-9;
}

// Uncached, or for a repeated graph shape.
Body planning(bool is_cold) {
  struct Parts {
    EmptyCache cache;
    MnistStep step{512};
  };
  const auto parts = std::make_shared<Parts>();
  if (!is_cold) parts->step.run_plainly();
  return [parts](benchmark::State& state) {
    for (auto _ : state) state.SetIterationTime(planning_seconds(parts->step));
  };
}

struct Resnet {
  nn::TrainingScope evaluation{false};
  ResNet18 net;
  Tensor x = Tensor::randn({8, 3, 224, 224}).realize();
  Resnet() { Tensor::realize(nn::parameters(net)); }
};

// ResNet-18's forward pass from the graph to source text, without compilation.
Body resnet_sources() {
  return [parts = std::make_shared<Resnet>()](benchmark::State& state) {
    for (auto _ : state) {
      const Tensor y = parts->net(parts->x);
      engine::TensorState* of_y = tensor::state_of(y).get();
      state.SetIterationTime(
          time_of([&] { engine::Session::current().sources_of(std::span(&of_y, 1)); }));
    }
  };
}

// Time to look up the plan of an equal graph.
Body resnet_lookup() {
  return [parts = std::make_shared<Resnet>()](benchmark::State& state) {
    engine::Session& session = engine::Session::current();
    for (auto _ : state) {
      const uint64_t before = session.statistics().lookup_ns;
      parts->net(parts->x).realize();
      session.collect();
      state.SetIterationTime(static_cast<double>(session.statistics().lookup_ns - before) * 1e-9);
    }
  };
}

}  // namespace

std::vector<Micro> compile_micros() {
  return {{.name = "compile of a small kernel, median",
           .unit = "ms",
           .prepare = compile_of_small_kernel,
           .repetitions = 20,
           .is_timed_by_hand = true},
          {.name = "schedule and codegen of the MNIST step, cold",
           .unit = "ms",
           .prepare = [] { return planning(true); },
           .repetitions = 1,
           .is_timed_by_hand = true,
           .is_warmed_up = false},
          {.name = "the same graph shape again",
           .unit = "ms",
           .prepare = [] { return planning(false); },
           .repetitions = 5,
           .statistic = Statistic::Best,
           .is_timed_by_hand = true,
           .is_warmed_up = false},
          {.name = "resnet18_schedule/cold",
           .unit = "ms",
           .prepare = resnet_sources,
           .repetitions = 5,
           .is_timed_by_hand = true},
          {.name = "resnet18_schedule/cached",
           .unit = "ms",
           .prepare = resnet_lookup,
           .repetitions = 5,
           .is_timed_by_hand = true}};
}

}  // namespace plugrad::bench

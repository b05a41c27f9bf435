// What the framework itself costs: nodes, rewrites, plans, a call, a compilation.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/clock.h"
#include "base/settings.h"
#include "bench/beside.h"
#include "bench/cold_calls.h"
#include "bench/dispatch.h"
#include "bench/empty_cache.h"
#include "bench/harness.h"
#include "bench/loading.h"
#include "bench/mnist_step.h"
#include "bench/resnet18.h"
#include "bench/row.h"
#include "engine/session.h"
#include "ir/range.h"
#include "plugrad/functional.h"
#include "plugrad/jit.h"
#include "symbolic/symbolic.h"

namespace plugrad::bench {
namespace {

constexpr int kNodes = 400'000, kTinyKernels = 100;
constexpr int64_t kMostRows = 4096, kRowSize = 256;
constexpr std::array<int64_t, 3> kVariableSizes = {1, kMostRows / 4, kMostRows};

std::string variable_row(int64_t size) {
  return fmt::format("variable size/bound:{}/size:{}", kMostRows, size);
}

constexpr char kResnetCold[] = "resnet18_schedule/cold",
               kResnetCached[] = "resnet18_schedule/cached";

// A chain of distinct additions: the least a node can be.
uint32_t build_nodes(Graph& graph) {
  Id x = graph.constant(DType::F32, 1.0), y = graph.constant(DType::F32, 2.0);
  for (int i = 0; i < kNodes; ++i) {
    Id next = graph.add(i % 2 ? Op::Mul : Op::Add, DType::F32, {x, y});
    y = x;
    x = next;
  }
  return x;
}

// Kernel-like expressions over four ranges: an index with something to simplify in one of sixteen,
// and floats computed of it.
std::vector<Id> build_expressions(Graph& graph, int count) {
  std::vector<Id> ranges, roots;
  for (uint32_t axis = 0; axis < 4; ++axis)
    ranges.push_back(make_range(graph, 64 + axis, axis, AxisKind::Loop));
  for (int i = 0; i < count; ++i) {
    Id v = ranges[static_cast<size_t>(i % 4)], w = ranges[static_cast<size_t>((i + 1) % 4)];
    Id scaled = graph.binary(Op::Mul, v, graph.index(i % 97 + 2));
    Id index = graph.binary(Op::Add, graph.binary(Op::Add, scaled, w), graph.index(i));
    if (i % 16 == 0)
      index = graph.binary(Op::Add, graph.binary(Op::Mul, index, graph.index(1)), graph.index(0));
    Id x =
        graph.binary(Op::Mul, graph.cast(index, DType::F32), graph.constant(DType::F32, 0.5 + i));
    Id y = graph.binary(Op::Add, x, graph.cast(w, DType::F32));
    roots.push_back(graph.binary(Op::Mul, graph.binary(Op::Max, x, y), y));
  }
  return roots;
}

void report_nodes(const Report& report) {
  Timing timing = measure([] {
    Graph graph;
    return time_of([&] { build_nodes(graph); });
  });
  report({.name = "nodes built", .value = kNodes / timing.best * 1e-6, .unit = "million/s"});
}

void report_rewriting(const Report& report) {
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    Graph graph;
    std::vector<Id> roots = build_expressions(graph, 40'000);
    Simplifier simplify(graph);
    double seconds = time_of([&] {
      for (Id root : roots) simplify(root);
    });
    best = std::max(best, static_cast<double>(simplify.rewriter().visits()) / seconds);
  }
  report(
      {.name = "node visits through the algebra table", .value = best * 1e-6, .unit = "million/s"});
}

void report_call(const Report& report) {
  Tensor a = Tensor::from<float>({1, 2, 3, 4}), b = Tensor::from<float>({5, 6, 7, 8});
  Tensor::realize(std::vector{a, b});
  Round round = [&] {
    std::vector<float> out(4);
    double seconds = time_of([&] { (a + b).copy_to(std::span<float>(out)); });
    engine::Session::current().collect();
    return seconds;
  };
  Timing timing = measure(round, {.warm_up = 200, .least = 2000});
  report({.name = "a + b of 4 floats, call to value",
          .value = timing.median * 1e6,
          .unit = "us",
          .higher_is_better = false});
}

// A chain of kernels of four floats each: none can run in the loops of the one before.
Tensor tiny_chain(Tensor x) {
  for (int i = 0; i < kTinyKernels; ++i) x = (x.flip(0) + 1.0).contiguous();
  return x;
}

void report_replay(const Report& report) {
  engine::Session& session = engine::Session::current();
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}).realize();
  const auto chain = jit(tiny_chain);
  for (int i = 0; i < 3; ++i) chain(x);
  const uint64_t before = session.statistics().kernels_launched;
  chain(x);
  const auto kernels = static_cast<double>(session.statistics().kernels_launched - before);
  const Timing timing =
      measure([&] { return time_of([&] { chain(x); }); }, {.warm_up = 200, .least = 2000});
  report({.name = fmt::format("jitted replay a kernel ({} tiny kernels)", kTinyKernels),
          .value = timing.median / kernels * 1e6,
          .unit = "us",
          .higher_is_better = false});
}

// One recording over rows of a variable number: a product, a softmax over columns and over rows,
// sums.
void report_variable_sizes(const Report& report) {
  const Variable rows("rows", 1, kMostRows);
  const Tensor w = Tensor::rand({kRowSize, kRowSize}).realize();
  const auto step = jit([&](const Tensor& x) {
    const Tensor h = x.matmul(w).softmax(1);
    return h.sum(0) + x.softmax(0).max(0);
  });
  for (size_t i = 0; i < kVariableSizes.size(); ++i) {
    const Tensor x = rows.fit(Tensor::rand({kVariableSizes[i], kRowSize}), 0);
    const auto replay = [&] { return time_of([&] { step(x).to_vector<float>(); }); };
    const Timing timing = measure(replay, {.warm_up = 3, .least = 10});
    report({.name = variable_row(kVariableSizes[i]),
            .value = timing.median * 1e3,
            .unit = "ms",
            .higher_is_better = false});
  }
}

// Kernels that no cache has seen: their constant is the time of day.
void report_compile(const Report& report) {
  engine::Session& session = engine::Session::current();
  Tensor a = Tensor::from<float>({1, 2, 3, 4}).realize();
  std::vector<double> milliseconds;
  double salt = static_cast<double>(monotonic_ns() % 1'000'003) /
                7;  // small enough that f32 tells them apart
  for (int i = 0; i < 21; ++i) {
    uint64_t before = session.statistics().compile_ns;
    (a * (salt + i)).realize();
    if (i > 0)
      milliseconds.push_back(static_cast<double>(session.statistics().compile_ns - before) * 1e-6);
  }
  std::sort(milliseconds.begin(), milliseconds.end());
  report({.name = "compile of a small kernel, median",
          .value = milliseconds[milliseconds.size() / 2],
          .unit = "ms",
          .higher_is_better = false});
}

// Planning and code generation of the MNIST step: the first time, and when the same graph shape
// comes again.
void report_planning(const Report& report) {
  engine::Session& session = engine::Session::current();
  const EmptyCache cache;
  MnistStep step(512);
  auto cost_ms = [&] {
    engine::Statistics before = session.statistics();
    step.run_plainly();
    engine::Statistics after = session.statistics();
    return static_cast<double>(after.schedule_ns + after.codegen_ns + after.lookup_ns -
                               before.schedule_ns - before.codegen_ns - before.lookup_ns) *
           1e-6;
  };
  double cold = cost_ms();
  std::vector<double> warm = {cost_ms(), cost_ms(), cost_ms(), cost_ms(), cost_ms()};
  report({.name = "schedule and codegen of the MNIST step, cold",
          .value = cold,
          .unit = "ms",
          .higher_is_better = false});
  report({.name = "the same graph shape again",
          .value = *std::min_element(warm.begin(), warm.end()),
          .unit = "ms",
          .higher_is_better = false});
}

// ResNet-18's forward pass from the graph to source text, nothing compiled; and how long the plan
// of an equal graph takes to be found.
void report_resnet(const Report& report) {
  const nn::TrainingScope evaluation(false);
  ResNet18 net;
  const Tensor x = Tensor::randn({8, 3, 224, 224}).realize();
  Tensor::realize(nn::parameters(net));
  engine::Session& session = engine::Session::current();
  const auto time_sources = [&] {
    const Tensor y = net(x);
    engine::TensorState* state = y.state().get();
    return time_of([&] { session.sources_of(std::span(&state, 1)); });
  };
  const Timing cold = measure(time_sources, {.warm_up = 1, .least = 5});
  report(
      {.name = kResnetCold, .value = cold.median * 1e3, .unit = "ms", .higher_is_better = false});
  const auto time_cached = [&] {
    const uint64_t before = session.statistics().lookup_ns;
    net(x).realize();
    session.collect();
    return static_cast<double>(session.statistics().lookup_ns - before) * 1e-9;
  };
  const Timing cached = measure(time_cached, {.warm_up = 1, .least = 5});
  report({.name = kResnetCached,
          .value = cached.median * 1e3,
          .unit = "ms",
          .higher_is_better = false});
}

}  // namespace

std::vector<Row> framework_rows() {
  return {
      reporting({"discovery/plugins:20"}, report_discovery),
      reporting({"first kernel of a process/warm cache"}, report_first_kernel),
      reporting({"nodes built"}, report_nodes),
      reporting({"node visits through the algebra table"}, report_rewriting),
      reporting({"a + b of 4 floats, call to value"}, report_call),
      reporting({"jitted replay a kernel (100 tiny kernels)"}, report_replay),
      reporting({variable_row(kVariableSizes[0]), variable_row(kVariableSizes[1]),
                 variable_row(kVariableSizes[2])},
                report_variable_sizes),
      reporting({"compile of a small kernel, median"}, report_compile),
      reporting({"launch of an empty kernel and wait",
                 "dispatch: launch of a kernel with three buffers and no groups",
                 "dispatch: copy_in of 4 bytes", "dispatch: synchronize"},
                report_dispatch),
      reporting(
          {"batch of 1.6 MB handed over while kernels run", "value read while later kernels run"},
          report_copies_beside_kernels),
      reporting({"schedule and codegen of the MNIST step, cold", "the same graph shape again"},
                report_planning),
      reporting({kResnetCold, kResnetCached}, report_resnet),
      reporting(join_rows(), report_joins),
      reporting(unrolled_rows(), report_unrolled),
  };
}

}  // namespace plugrad::bench

// Measures node creation and rewrites.
#include <vector>

#include "bench/harness.h"
#include "bench/micro/micro.h"
#include "ir/range.h"
#include "symbolic/symbolic.h"

namespace plugrad::bench {
namespace {

constexpr int kNodes = 400'000, kExpressions = 40'000;

// A chain of distinct additions: the cheapest nodes.
uint32_t build_nodes(Graph& graph) {
  Id x = graph.constant(DType::F32, 1.0), y = graph.constant(DType::F32, 2.0);
  for (int i = 0; i < kNodes; ++i) {
    Id next = graph.add(i % 2 ? Op::Mul : Op::Add, DType::F32, {x, y});
    y = x;
    x = next;
  }
  return x;
}

// Kernel-like expressions over four ranges: one index in sixteen can be simplified, and floats are
// computed from it.
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

void build_graph(benchmark::State& state) {
  for (auto _ : state) {
    Graph graph;
    state.SetIterationTime(time_of([&] { build_nodes(graph); }));
  }
  state.SetItemsProcessed(state.iterations() * kNodes);
}

void visit(benchmark::State& state) {
  uint64_t visits = 0;
  for (auto _ : state) {
    Graph graph;
    const std::vector<Id> roots = build_expressions(graph, kExpressions);
    Simplifier simplify(graph);
    state.SetIterationTime(time_of([&] {
      for (const Id root : roots) simplify(root);
    }));
    visits += simplify.rewriter().visits();
  }
  state.SetItemsProcessed(static_cast<int64_t>(visits));
}

}  // namespace

std::vector<Micro> graph_micros() {
  return {{.name = "nodes built",
           .unit = "million/s",
           .prepare = [] { return build_graph; },
           .repetitions = 20,
           .statistic = Statistic::Best,
           .is_timed_by_hand = true},
          {.name = "node visits through the algebra table",
           .unit = "million/s",
           .prepare = [] { return visit; },
           .statistic = Statistic::Best,
           .is_timed_by_hand = true}};
}

}  // namespace plugrad::bench

// A container that runs out of memory stays as it was: after each allocation of a piece of work has
// failed once, the same work on the same containers gives the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "ir/facts.h"
#include "ir/graph.h"
#include "ir/span_arena.h"
#include "ir/structural_hash.h"
#include "unit/base/failing_new.h"

namespace plugrad {
namespace {

// Calls again(); expects that work() still gives `expected`, on the same containers, after each of
// its allocations has failed in turn. `again` makes the containers anew.
template <class Result>
void fail_each(const std::function<void()>& again, const std::function<Result()>& work) {
  again();
  const Result expected = work();
  uint64_t count = 0;
  {
    again();
    const test::FailingNew counting;
    work();
    count = test::FailingNew::count();
  }
  ASSERT_GT(count, 0u);
  for (uint64_t at = 1; at <= count; ++at) {
    again();
    try {
      const test::FailingNew failing(at);
      work();
    } catch (const std::bad_alloc&) {  // or none: a vector that cannot shrink stays as it is
    }
    ASSERT_EQ(work(), expected) << "after allocation " << at << " of " << count << " had failed";
  }
}

// More than one block of nodes, sources of all lengths, and lists of all lengths.
Id build(Graph& g) {
  std::vector<Id> many;
  std::vector<int64_t> list;
  Id last = g.constant(DType::F32, 1.0);
  for (int64_t i = 0; i < 5000; ++i) {
    last = g.binary(Op::Add, g.constant(DType::F32, static_cast<double>(i)), last);
    if (i % 50 == 0) many.push_back(last);
    if (i % 500 != 0) continue;
    list.resize(static_cast<size_t>(i));
    std::iota(list.begin(), list.end(), i);
    g.add(Op::Reshape, DType::F32, {last}, g.list(list));
    g.add(Op::Sink, DType::Void, many);
  }
  return last;
}

// Every node, with its sources and its list.
std::vector<uint64_t> contents(const Graph& g) {
  std::vector<uint64_t> all;
  for (Id id = 0; id < g.size(); ++id) {
    all.push_back(static_cast<uint64_t>(g[id].op));
    const auto sources = g.sources(id);
    all.insert(all.end(), sources.begin(), sources.end());
    if (op_info(g[id].op).arg == ArgKind::List)
      for (const int64_t value : g.arg_list(id)) all.push_back(static_cast<uint64_t>(value));
    else
      all.push_back(g[id].arg);
  }
  return all;
}

TEST(FailedAllocations, a_graph_is_built_to_the_same_end) {
  Graph graph;
  fail_each<std::vector<uint64_t>>([&] { graph = Graph(); },
                                   [&] {
                                     build(graph);
                                     return contents(graph);
                                   });
}

TEST(FailedAllocations, a_trimmed_graph_grows_again) {
  Graph graph;
  fail_each<std::vector<uint64_t>>(
      [&] {
        graph = Graph();
        for (int64_t i = 0; i < 100; ++i) graph.constant(DType::I32, i);
        graph.trim();
      },
      [&] {
        build(graph);
        graph.trim();
        return contents(graph);
      });
}

TEST(FailedAllocations, runs_of_an_arena_stay_apart) {
  SpanArena<int64_t> arena;
  fail_each<std::vector<int64_t>>([&] { arena = {}; },
                                  [&] {
                                    std::vector<int64_t> run, all;
                                    for (const size_t size : {1u, 4000u, 200u, 9000u, 3u}) {
                                      run.assign(size, static_cast<int64_t>(size));
                                      const uint32_t place = arena.add(run);
                                      const int64_t* const at = arena.at(place);
                                      all.push_back(std::accumulate(at, at + size, int64_t{0}));
                                    }
                                    return all;
                                  });
}

TEST(FailedAllocations, facts_of_nodes_are_found) {
  Graph graph;
  const Id root = build(graph);
  std::unique_ptr<Shapes> shapes;
  std::unique_ptr<StructuralHash> hash;
  std::unique_ptr<Reachable> reachable;
  fail_each<std::vector<uint64_t>>(
      [&] {
        shapes = std::make_unique<Shapes>(graph);
        hash = std::make_unique<StructuralHash>(graph);
        reachable = std::make_unique<Reachable>();
      },
      [&] {
        const NodeHash node = (*hash)(root);
        const auto& reached = reachable->from(graph, std::span(&root, 1));
        const auto sum = std::accumulate(reached.begin(), reached.end(), uint64_t{0});
        return std::vector<uint64_t>{node.word[0], node.word[1], reached.size(), sum,
                                     (*shapes)[root].size()};
      });
}

}  // namespace
}  // namespace plugrad

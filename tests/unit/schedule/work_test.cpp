// Cost of planning in visited nodes: near linear in the nodes of the graph.
#include "check.h"

namespace plugrad::test {
namespace {

/// x with x[from : from + size] placed at `to`, as an assignment to a slice records it.
Id with_slice(Tensors& t, Id x, Id value, int64_t to) {
  const int64_t n = t.shape(x)[0], size = t.shape(value)[0];
  const Id index = t.iota(n);
  const Id hit = t.g.binary(Op::And, t.g.binary(Op::CmpLt, t.g.constant(DType::I32, to - 1), index),
                            t.g.binary(Op::CmpLt, index, t.g.constant(DType::I32, to + size)));
  return t.g.where(hit, t.pad(value, {to, n - to - size}), x);
}

/// n steps of x[i % slots] = x[(i + 1) % slots] + 1, by slices of `size`.
Id work_recurrence(Tensors& t, int n, int64_t slots, int64_t size) {
  Id x = t.buffer({slots * size});
  for (int i = 0; i < n; ++i) {
    const int64_t to = i % slots, from = (i + 1) % slots;
    x = with_slice(t, x, t.plus(t.shrink(x, {from * size, (from + 1) * size}), 1), to * size);
  }
  return x;
}

/// As above, with overlapping slices.
Id overlapping(Tensors& t, int n) {
  Id x = t.buffer({16});
  for (int i = 0; i < n; ++i) {
    const int64_t to = i * 5 % 12, from = (i * 7 + 3) % 12;
    x = with_slice(t, x, t.plus(t.shrink(x, {from, from + 4}), 1), to);
  }
  return x;
}

/// n steps of a cell with three states, in the form of a gradient: a chain backwards through the
/// steps and a sum over all of them.
Id unrolled_cell(Tensors& t, int n, int64_t rows = 8) {
  const Id w = t.buffer({16, 16}), v = t.buffer({16, 16});
  Id h = t.buffer({rows, 16}), g = t.buffer({rows, 16}), c = t.buffer({rows, 16});
  std::vector<Id> states;
  for (int i = 0; i < n; ++i) {
    states.push_back(h);
    const Id gate = t.contiguous(t.exp(t.matmul(h, w)));
    c = t.add(t.mul(c, gate), t.matmul(g, v));
    h = t.contiguous(t.mul(t.exp(c), gate));
    g = t.contiguous(t.relu(t.mul(c, gate)));
  }
  Id d = h, sum = w;
  for (size_t i = states.size(); i-- > 0;) {
    d = t.mul(t.matmul(d, t.transpose(v)), states[i]);
    sum = t.add(sum, t.matmul(t.transpose(states[i]), d));
  }
  return sum;
}

struct WorkChain {
  std::vector<Id> scaled;
  Id end;
};

/// n steps of y = sin(y * 0.999) + x.
WorkChain sine_chain(Tensors& t, int n) {
  const Id x = t.buffer({8});
  WorkChain chain{{}, x};
  for (int i = 0; i < n; ++i) {
    chain.scaled.push_back(t.times(chain.end, 0.999));
    chain.end = t.add(t.g.unary(Op::Sin, chain.scaled.back()), x);
  }
  return chain;
}

/// The gradient of the sum of its end with respect to x.
Id sine_chain_gradient(Tensors& t, int n) {
  const std::vector<Id> scaled = sine_chain(t, n).scaled;
  Id g = t.plus(t.times(scaled[0], 0), 1), sum = g;
  for (size_t i = scaled.size(); i-- > 0;) {
    const Id cosine = t.g.unary(Op::Sin, t.plus(scaled[i], 1.5707963267948966));
    g = t.times(t.mul(g, cosine), 0.999);
    sum = t.add(sum, g);
  }
  return sum;
}

/// One value read by n sines, which are summed.
Id fan(Tensors& t, int n) {
  const Id x = t.buffer({8});
  Id sum = x;
  for (int i = 0; i < n; ++i) sum = t.add(sum, t.g.unary(Op::Sin, t.times(x, 1 + i)));
  return sum;
}

/// The sum of n values, each computed from a separate input.
Id sum_of_inputs(Tensors& t, int n) {
  Id sum = t.buffer({8});
  for (int i = 0; i < n; ++i) sum = t.add(sum, t.g.unary(Op::Sin, t.buffer({8})));
  return sum;
}

double visits_a_node(Tensors& t, Id root, const schedule::Plan& plan) {
  Reachable reachable;
  const size_t nodes = reachable.from(t.g, std::span(&root, 1)).size();
  return static_cast<double>(plan.visits) / static_cast<double>(nodes);
}

/// Fails unless the work per node for `many` steps is about the same as for `few`.
template <class Build>
void expect_linear(Build build, int few, int many, double most_a_node) {
  for (int n : {few, many}) {
    Tensors t;
    const Id root = build(t, n);
    EXPECT_LE(visits_a_node(t, root, plan_of(t, {root})), most_a_node) << n << " steps";
  }
}

/// n values that may be overwritten and are summed, plus twice every second one, which may reuse a
/// value's memory.
std::vector<Id> replaced_values(Tensors& t, int n, schedule::Options& options) {
  constexpr int64_t kElements = 32 << 10;
  Id sum = t.buffer({kElements});
  std::vector<Id> roots;
  for (int i = 0; i < n; ++i) {
    const Id x = t.buffer({kElements});
    sum = t.add(sum, t.g.unary(Op::Sin, x));
    if (i % 2 == 0) roots.push_back(t.times(x, 2));
  }
  roots.push_back(sum);
  for (uint32_t i = 0; i < t.inputs.size(); ++i) options.replaced.push_back(i);
  return roots;
}

TEST(Work, ValuesThatAreReplaced) {
  for (int n : {100, 1'000, 3'000, 10'000}) {
    Tensors t;
    schedule::Options options;
    const auto roots = replaced_values(t, n, options);
    const auto plan = plan_of(t, roots, options);
    EXPECT_GE(plan.donations.size(), static_cast<size_t>(n) / 8);
    EXPECT_LE(static_cast<double>(plan.visits), 220.0 * n) << n << " values";
  }
}

TEST(Work, AssignmentsToElementsAreOneKernel) {
  Tensors t;
  const Id root = work_recurrence(t, 20, 4, 1);
  EXPECT_EQ(kernel_count(check(t, {root})), 1u);
}

TEST(Work, AssignmentsToElements) {
  expect_linear([](Tensors& t, int n) { return work_recurrence(t, n, 4, 1); }, 100, 10'000, 120);
}

TEST(Work, AssignmentsToSlices) {
  expect_linear([](Tensors& t, int n) { return work_recurrence(t, n, 4, 3); }, 100, 10'000, 800);
  Tensors t;
  check(t, {work_recurrence(t, 40, 4, 3)});
}

TEST(Work, AssignmentsToOverlappingSlices) {
  expect_linear([](Tensors& t, int n) { return overlapping(t, n); }, 100, 10'000, 1'800);
  Tensors t;
  check(t, {overlapping(t, 60)});
}

TEST(Work, UnrolledCells) {
  expect_linear([](Tensors& t, int n) { return unrolled_cell(t, n); }, 4, 500, 32);
  for (int n : {16, 40, 64, 128, 500}) {
    Tensors t;
    EXPECT_LE(kernel_count(plan_of(t, {unrolled_cell(t, n)})), static_cast<size_t>(5 * n));
  }
}

/// Large values, for which the scheduler compares the cost of storing with that of recomputing.
TEST(Work, SumsOverStepsOfLargeValues) {
  const auto sum = [](Tensors& t, int n) {
    const Id x = t.buffer({256, 256});
    Id y = x, total = x;
    for (int i = 0; i < n; ++i) {
      const Id shared = t.exp(t.exp(t.exp(y)));
      y = t.contiguous(t.times(shared, 0.999));
      total = t.add(total, shared);
    }
    return total;
  };
  expect_linear(sum, 50, 4'000, 700);  // at most a kernel of 1,000 instructions per value
}

/// The gradient of a matrix used in all steps: a sum over steps and rows.
TEST(Work, SumsOfProductsAreCutIntoEqualKernels) {
  const auto gradient = [](Tensors& t, int n) {
    Id sum = kNoId;
    for (int i = 0; i < n; ++i) {
      const Id a = t.expand(t.buffer({8, 4, 1}), {8, 4, 6});
      const Id b = t.expand(t.buffer({8, 1, 6}), {8, 4, 6});
      sum = sum == kNoId ? t.mul(a, b) : t.add(sum, t.mul(a, b));
    }
    return t.sum(sum, {0});
  };
  expect_linear(gradient, 40, 2'000, 60);
  Tensors t;
  const auto plan = check(t, {gradient(t, 200)});
  EXPECT_EQ(kernel_count(plan), 13u);  // six parts, one with fewer terms, and their additions
  EXPECT_LE(plan.asts.size(), 4u);
  for (const auto& ast : plan.asts) EXPECT_LE(ast->param_count, 2 * 32 + 2u);
}

TEST(Work, ChainsOfSinesAreCutIntoEqualKernels) {
  const auto chain = [](Tensors& t, int n) { return sine_chain(t, n).end; };
  expect_linear(chain, 30, 3'000, 60);
  Tensors t;
  const auto plan = check(t, {chain(t, 80)});
  EXPECT_EQ(kernel_count(plan), 10u);  // of eight steps each
  EXPECT_LE(plan.asts.size(), 3u);     // the first reads only the input, the last stores no factor
}

TEST(Work, GradientsOfChainsCompileTheSameKernels) {
  expect_linear(sine_chain_gradient, 12, 1'250, 60);
  for (int n : {100, 1'000}) {
    Tensors t;
    const auto plan = plan_of(t, {sine_chain_gradient(t, n)});
    EXPECT_LE(plan.asts.size(), 10u) << n << " steps";
    EXPECT_LE(kernel_count(plan), static_cast<size_t>(n * 5 / 4)) << n << " steps";
  }
  Tensors t;
  check(t, {sine_chain_gradient(t, 40)});
}

TEST(Work, FansAreCut) {
  expect_linear(fan, 30, 3'000, 60);
  Tensors t;
  EXPECT_EQ(kernel_count(check(t, {fan(t, 64)})), 9u);
}

TEST(Work, SumsOfManyInputs) {
  expect_linear(sum_of_inputs, 30, 3'000, 60);
  Tensors t;
  check(t, {sum_of_inputs(t, 100)});
}

}  // namespace
}  // namespace plugrad::test

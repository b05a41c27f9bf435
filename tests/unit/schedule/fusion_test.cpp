// The largest permitted number of kernels per graph: the rows of the fusion table for raw nodes.
#include <gmock/gmock.h>

#include <algorithm>

#include "check.h"
#include "ir/range.h"

namespace plugrad::test {
namespace {

size_t kernels(Tensors& t, std::vector<Id> roots) {
  return kernel_count(check(t, std::move(roots)));
}

TEST(Fusion, Elementwise) {
  Tensors t;
  const Id a = t.buffer({4, 4}), b = t.buffer({4, 4}), c = t.buffer({4, 4});
  EXPECT_EQ(kernels(t, {t.add(t.add(a, b), c)}), 1u);
  EXPECT_EQ(kernels(t, {t.relu(t.add(t.mul(a, b), c))}), 1u);
  EXPECT_EQ(kernels(t, {t.relu(t.plus(t.times(a, 2), 1))}), 1u);
  const Id d = t.plus(a, 1);
  EXPECT_EQ(kernels(t, {t.add(t.times(d, 2), t.times(d, 3))}), 1u);
}

TEST(Fusion, ReductionTakesWhatFeedsIt) {
  Tensors t;
  const Id a = t.buffer({1024}), b = t.buffer({1024});
  EXPECT_EQ(kernels(t, {t.sum(t.relu(t.add(a, b)), {0})}), 1u);
}

TEST(Fusion, ViewsOfValuesThatNothingReadsCostNothing) {
  Tensors t;
  const Id a = t.buffer({4, 6});
  EXPECT_EQ(kernels(t, {t.reshape(a, {24})}), 0u);
  EXPECT_EQ(kernels(t, {t.contiguous(a)}), 0u);
}

TEST(Fusion, MovementIntoOneKernel) {
  Tensors t;
  const Id a = t.buffer({4, 6}), b = t.buffer({2, 6});
  EXPECT_EQ(kernels(t, {t.plus(t.pad(a, {1, 1, 2, 0}), 1)}), 1u);
  EXPECT_EQ(kernels(t, {t.add(t.pad(a, {0, 2, 0, 0}), t.pad(b, {4, 0, 0, 0}))}), 1u);
  EXPECT_EQ(kernels(t, {t.contiguous(t.transpose(a))}), 1u);
}

TEST(Fusion, Reductions) {
  Tensors t;
  const Id x = t.buffer({16, 16}), y = t.buffer({16, 16});
  EXPECT_EQ(kernels(t, {t.sum(x, {1})}), 1u);
  const Id two = t.add(t.sum(x, {0}), t.sum(y, {0}));
  const auto plan = check(t, {two});
  EXPECT_EQ(kernel_count(plan), 1u);
  size_t ranges = 0;
  Reachable reachable;
  const KernelAst& ast = *plan.asts[0];
  for (Id id : reachable.from(ast.graph, std::vector<Id>{ast.sink}))
    ranges += ast.graph[id].op == Op::Range;
  EXPECT_EQ(ranges, 2u);  // both sums use the same loop
  EXPECT_EQ(kernels(t, {t.div(x, t.sum(x, {0}))}), 2u);
}

TEST(Fusion, VarianceSoftmaxLayernorm) {
  Tensors t;
  const Id x = t.buffer({32, 64}), w = t.buffer({1, 64}), b = t.buffer({1, 64});
  const Id centred = t.sub(x, t.mean(x, {1})),
           var = t.times(t.sum(t.mul(centred, centred), {1}), 1.0 / 63);
  EXPECT_EQ(kernels(t, {var}), 1u);
  EXPECT_EQ(kernels(t, {t.softmax(x)}), 1u);
  EXPECT_EQ(kernels(t, {t.log_softmax(x)}), 1u);
  const Id scale =
      t.g.unary(Op::Recip, t.g.unary(Op::Sqrt, t.plus(t.mean(t.mul(centred, centred), {1}), 1e-5)));
  EXPECT_EQ(kernels(t, {t.add(t.mul(t.mul(centred, scale), w), b)}), 1u);
}

TEST(Fusion, Argmax) {
  Tensors t;
  const Id x = t.buffer({32, 64});
  const Id is_max = t.op(Op::CmpEq, x, t.max(x, {1}));
  const Id left = t.g.binary(Op::Sub, t.g.constant(DType::I32, int64_t{64}), t.iota(64));
  const Id index = t.expand(t.reshape(left, {1, 64}), {32, 64});
  const Id best = t.max(t.g.binary(Op::Mul, t.g.cast(is_max, DType::I32), index), {1});
  EXPECT_EQ(kernels(t, {t.g.binary(Op::Sub, t.g.constant(DType::I32, int64_t{64}), best)}), 1u);
}

TEST(Fusion, MatmulWithEpilogue) {
  Tensors t;
  const Id a = t.buffer({16, 24}), b = t.buffer({24, 8}), bias = t.buffer({1, 8});
  EXPECT_EQ(kernels(t, {t.matmul(a, b)}), 1u);
  EXPECT_EQ(kernels(t, {t.relu(t.add(t.matmul(a, b), bias))}), 1u);
  const Id y = t.matmul(a, b);
  EXPECT_EQ(kernels(t, {t.mul(y, t.g.unary(Op::Recip, t.plus(t.exp(y), 1)))}), 1u);
}

// An activation and its derivative are computed in the epilogue of the product, from shared values.
TEST(Fusion, EpiloguesComputeAgainRatherThanRead) {
  Tensors t;
  const Id x = t.buffer({256, 64}), w = t.buffer({64, 256}), flow = t.buffer({256, 64});
  const Id h = t.matmul(x, w), e = t.exp(t.times(h, -1));
  const Id y = t.mul(h, t.g.unary(Op::Recip, t.plus(e, 1)));
  const Id to_h = t.mul(t.matmul(flow, w), t.mul(e, t.g.unary(Op::Recip, t.plus(e, 1))));
  const auto plan = check(t, {y, to_h});
  EXPECT_EQ(kernel_count(plan), 2u);
  const auto is_large = [](const schedule::PlannedBuffer& b) { return b.elem_count == 256 * 256; };
  EXPECT_EQ(std::ranges::count_if(plan.buffers, is_large), 3) << "h, y and the gradient alone";
}

TEST(Fusion, Convolution) {
  Tensors t;
  const Id x = t.buffer({2, 3, 8, 8}), w = t.buffer({4, 3, 3, 3}), b = t.buffer({1, 4, 1, 1});
  const Id mean = t.buffer({1, 4, 1, 1}), scale = t.buffer({1, 4, 1, 1});
  const Id y = t.add(t.conv2d(x, w), b);
  EXPECT_EQ(kernels(t, {t.relu(y)}), 1u);
  EXPECT_EQ(kernels(t, {t.relu(t.add(t.conv2d(x, w, 1), b))}), 1u);
  EXPECT_EQ(kernels(t, {t.relu(t.add(t.mul(t.sub(y, mean), scale), b))}), 1u);
}

TEST(Fusion, ConvolutionBatchnormRelu) {
  Tensors t;
  const Id x = t.buffer({2, 3, 6, 6}), w = t.buffer({4, 3, 3, 3}), gain = t.buffer({1, 4, 1, 1});
  const Id y = t.conv2d(x, w), centred = t.sub(y, t.mean(y, {0, 2, 3}));
  const Id var = t.mean(t.mul(centred, centred), {0, 2, 3});
  const Id scale = t.g.unary(Op::Recip, t.g.unary(Op::Sqrt, t.plus(var, 1e-5)));
  EXPECT_EQ(kernels(t, {t.relu(t.mul(t.mul(centred, scale), gain))}), 4u);
}

TEST(Fusion, Pooling) {
  Tensors t;
  const Id x = t.buffer({2, 3, 8, 8});
  EXPECT_EQ(kernels(t, {t.max(t.windows(x, 2, 2), {4, 5})}), 1u);
  EXPECT_EQ(kernels(t, {t.mean(t.windows(x, 2, 2), {4, 5})}), 1u);
}

TEST(Fusion, APoolsBackwardReadsWhatThePoolRead) {
  Tensors t;
  const Id x = t.buffer({8, 6, 16, 16}), scale = t.buffer({1, 6, 1, 1}),
           shift = t.buffer({1, 6, 1, 1});
  const Id w = t.buffer({6, 6}), g = t.buffer({512, 6});
  const Id y = t.add(t.mul(x, scale), shift);  // many kernels compute it rather than store it
  const Id windows = t.permute(t.reshape(y, {8, 6, 8, 2, 8, 2}), {0, 1, 2, 4, 3, 5});
  const Id top = t.max(windows, {4, 5});
  const Id is_top = t.op(Op::CmpEq, windows, top);
  const Id count = t.sum(t.g.cast(is_top, DType::F32), {4, 5});
  const Id flow = t.reshape(t.matmul(g, w), {8, 6, 8, 8, 1, 1});
  const Id share = t.expand(t.div(flow, count), {8, 6, 8, 8, 2, 2});
  const Id back = t.permute(t.g.where(is_top, share, t.number(0)), {0, 1, 2, 4, 3, 5});
  const Id all = t.reshape(back, {8, 6, 16, 16});
  // The maxima; the matmul; the sums; the gradient itself.
  const auto plan =
      check(t, {top, t.sum(all, {0, 2, 3}), t.sum(t.mul(all, x), {0, 2, 3}), t.mul(all, scale)});
  EXPECT_EQ(kernel_count(plan), 4u) << to_string(plan);
  // The compared values must be bitwise equal.
  for (const auto& step : plan.steps) {
    const auto& buffers = step.buffers;
    const bool reads_x = std::ranges::find(buffers, 0u) != buffers.end();
    EXPECT_EQ(plan.asts[step.ast]->is_exact, reads_x);
  }
}

TEST(Fusion, MatmulsAreKernelsOfTheirOwnLoops) {
  Tensors t;
  const Id x = t.buffer({2, 3, 10, 10}), w = t.buffer({4, 3, 3, 3}), y = t.buffer({2, 4, 8, 8});
  // Pooling does not inline the convolution into its windows, nor reorder the convolution's loops.
  const auto plan = check(t, {t.max(t.windows(t.relu(t.conv2d(x, w)), 2, 2), {4, 5})});
  ASSERT_EQ(kernel_count(plan), 2u);
  const Graph& g = plan.asts[plan.steps[0].ast]->graph;
  Reachable reachable;
  Dims loops;
  for (Id id : reachable.from(g, std::vector<Id>{plan.asts[plan.steps[0].ast]->sink}))
    if (g[id].op == Op::Range) loops.push_back(range_size(g, id));
  EXPECT_THAT(loops, ::testing::UnorderedElementsAre(2, 4, 8, 8, 3, 3, 3));
  // Nor do two loops of different kinds end in one value.
  const Id both =
      t.add(t.conv2d(x, w),
            t.reshape(t.sum(t.windows(t.buffer({2, 4, 16, 16}), 2, 2), {4, 5}), {2, 4, 8, 8}));
  EXPECT_EQ(kernels(t, {t.reshape(t.mul(t.reshape(both, {2, 4, 8, 8}), y), {512})}), 2u);
}

TEST(Fusion, Attention) {
  for (const bool causal : {false, true}) {
    Tensors t;
    const Id q = t.buffer({2, 4, 16, 8}), k = t.buffer({2, 4, 16, 8}), v = t.buffer({2, 4, 16, 8});
    Id scores = t.times(t.matmul(q, t.transpose(k)), 0.35);
    if (causal) {
      const Id row = t.expand(t.reshape(t.iota(16), {1, 1, 16, 1}), {2, 4, 16, 16});
      const Id column = t.expand(t.reshape(t.iota(16), {1, 1, 1, 16}), {2, 4, 16, 16});
      scores = t.g.where(t.g.binary(Op::CmpLt, row, column), t.number(-INFINITY), scores);
    }
    EXPECT_EQ(kernels(t, {t.matmul(t.softmax(scores), v)}), 4u) << causal;
  }
}

TEST(Fusion, AttentionWithoutStoredScores) {
  const auto count = [](int64_t length, uint64_t scratch_bytes) {
    Tensors t;
    const Id q = t.buffer({2, length, 4}), k = t.buffer({2, length, 4}),
             v = t.buffer({2, length, 3});
    const Id scores = t.times(t.matmul(q, t.transpose(k)), 0.5);
    return kernel_count(
        check(t, {t.matmul(t.softmax(scores), v)}, {.scratch_bytes = scratch_bytes}));
  };
  EXPECT_EQ(count(37, 1024), 1u);
  EXPECT_EQ(count(37, 0), 4u) << "no room for rows";
  EXPECT_EQ(count(37, 4 * 4 * 36), 4u) << "less than four rows";
  EXPECT_EQ(count(16, 1024), 4u) << "few scores";
}

// A convolution's rows are windows of another convolution, which would be recomputed for each tap.
TEST(Fusion, ConvolutionsAreStoredBeforeAProduct) {
  const auto count = [](uint64_t scratch_bytes) {
    Tensors t;
    const Id x = t.buffer({64, 1, 8, 8}), w1 = t.buffer({8, 1, 3, 3}), w2 = t.buffer({8, 8, 3, 3});
    const Id y = t.relu(t.conv2d(t.relu(t.conv2d(x, w1)), w2));
    const Id pooled = t.max(t.windows(y, 2, 2), {4, 5});
    const Id rows = t.reshape(pooled, {64, 8 * 2 * 2}), w3 = t.buffer({8 * 2 * 2, 10});
    return kernel_count(check(t, {t.matmul(rows, w3)}, {.scratch_bytes = scratch_bytes}));
  };
  EXPECT_EQ(count(0), 4u);
  EXPECT_EQ(count(1 << 20), 4u);
}

// One wide layer is kept in scratch: the operands of its product are stored.
TEST(Fusion, OperandsOfWideRowsAreStored) {
  Tensors t;
  Id x = t.buffer({256, 4});
  for (int layer = 0; layer < 2; ++layer)
    x = t.matmul(t.relu(t.matmul(x, t.buffer({4, 64}))), t.buffer({64, 4}));
  EXPECT_EQ(kernel_count(check(t, {x}, {.scratch_bytes = 1 << 20})), 2u);
}

// Codegen has no scratch for rows along two axes, such as tokens and their features.
TEST(Fusion, RowsOfTwoAxesAreStored) {
  Tensors t;
  const Id hidden = t.relu(t.matmul(
      t.buffer({64, 6, 2}), t.expand(t.reshape(t.buffer({2, 20}), {1, 2, 20}), {64, 2, 20})));
  const Id y = t.matmul(t.reshape(hidden, {64, 6 * 20}), t.buffer({6 * 20, 4}));
  EXPECT_EQ(kernel_count(check(t, {y}, {.scratch_bytes = 1 << 20})), 2u);
}

// Behind the condition of padding along the row, each element would compute the row's maximum.
TEST(Fusion, RowsThatArePaddedAreStored) {
  const auto count = [](const Dims& pads) {
    Tensors t;
    const Id x = t.buffer({64, 40});
    return kernels(t, {t.pad(t.sub(x, t.max(x, {1})), pads)});
  };
  EXPECT_EQ(count({0, 0, 1, 1}), 2u);
  EXPECT_EQ(count({0, 0, 0, 0}), 1u) << "no padding";
}

// The same holds for queries, keys and values computed from tokens.
TEST(Fusion, ProjectionsBeforeAttentionAreStored) {
  Tensors t;
  const Id tokens = t.buffer({64, 4});
  const auto project = [&] { return t.matmul(tokens, t.buffer({4, 4})); };
  const Id q = project(), k = project(), v = project();
  const Id product = t.matmul(t.softmax(t.matmul(q, t.transpose(k))), v);
  EXPECT_LE(kernel_count(check(t, {product}, {.scratch_bytes = 1 << 20})), 4u);
}

// Rows in scratch serve the loops of one store: every other output of the result has a separate
// kernel, even if it is as large as another product's operand.
TEST(Fusion, AnotherOutputBesideAttention) {
  const auto count = [](bool has_attention) {
    Tensors t;
    const Id q = t.buffer({4096, 4}), k = t.buffer({4096, 4}), v = t.buffer({4096, 16}),
             w = t.buffer({4, 16});
    const Id product =
        has_attention ? t.matmul(t.softmax(t.matmul(q, t.transpose(k))), v) : t.matmul(q, w);
    const std::vector<Id> roots = {product, t.relu(product)};
    return kernel_count(schedule::make_plan(t.g, roots, t.inputs, 1, {.scratch_bytes = 1 << 20}));
  };
  EXPECT_EQ(count(false), 1u);
  EXPECT_EQ(count(true), 2u);
}

// Attention weights with another consumer are stored.
TEST(Fusion, SharedWeightsOfAttention) {
  Tensors t;
  const Id q = t.buffer({64, 4}), k = t.buffer({64, 4}), v = t.buffer({64, 4});
  const Id weights = t.softmax(t.matmul(q, t.transpose(k)));
  const std::vector<Id> roots = {t.matmul(weights, v), t.matmul(t.transpose(weights), v)};
  EXPECT_GT(kernel_count(check(t, roots, {.scratch_bytes = 1 << 20})), 2u);
}

TEST(Fusion, Lookups) {
  Tensors t;
  const Id index = t.buffer({5}, DType::I32), table = t.buffer({7, 3}), a = t.buffer({4, 4});
  const Id numbers = t.expand(t.reshape(t.iota(7), {1, 7}), {5, 7});
  const Id picked = t.g.cast(
      t.g.binary(Op::CmpEq, t.expand(t.reshape(index, {5, 1}), {5, 7}), numbers), DType::F32);
  EXPECT_EQ(kernels(t, {t.matmul(picked, table)}), 1u);
  EXPECT_EQ(kernels(t, {t.sum(picked, {0})}), 1u);
  EXPECT_EQ(kernels(t, {t.g.binary(Op::Add, t.iota(10), t.g.constant(DType::I32, int64_t{1}))}),
            1u);
  const Id rows = t.expand(t.reshape(t.iota(4), {4, 1}), {4, 4}),
           columns = t.expand(t.reshape(t.iota(4), {1, 4}), {4, 4});
  EXPECT_EQ(kernels(t, {t.mul(t.g.cast(t.g.binary(Op::CmpEq, rows, columns), DType::F32), a)}), 1u);
}

TEST(Fusion, SparseCrossEntropy) {
  Tensors t;
  const Id logits = t.buffer({32, 10}), label = t.buffer({32, 1}, DType::I32);
  const Id classes = t.expand(t.reshape(t.iota(10), {1, 10}), {32, 10});
  const Id picked = t.g.cast(t.g.binary(Op::CmpEq, t.expand(label, {32, 10}), classes), DType::F32);
  const Id losses = t.sum(t.mul(t.log_softmax(logits), picked), {1});
  EXPECT_EQ(kernels(t, {t.times(t.mean(losses, {0}), -1)}), 3u);
}

TEST(Fusion, OptimizerSteps) {
  Tensors t;
  const Id p = t.buffer({20}), g = t.buffer({20}), m = t.buffer({20}), v = t.buffer({20}),
           c1 = t.buffer({}), c2 = t.buffer({});
  const Id momentum = t.add(t.times(m, 0.9), g);
  EXPECT_EQ(kernels(t, {momentum, t.sub(p, t.times(momentum, 0.1))}), 1u);
  const Id m2 = t.add(t.times(m, 0.9), t.times(g, 0.1)),
           v2 = t.add(t.times(v, 0.999), t.times(t.mul(g, g), 0.001));
  const Id b1 = t.g.binary(Op::Mul, c1, t.number(0.9)),
           b2 = t.g.binary(Op::Mul, c2, t.number(0.999));
  const Id one = t.number(1);
  const Id up = t.op(Op::FDiv, m2, t.g.binary(Op::Sub, one, b1)),
           down = t.op(Op::FDiv, v2, t.g.binary(Op::Sub, one, b2));
  const Id step = t.div(up, t.plus(t.g.unary(Op::Sqrt, t.relu(down)), 1e-8));
  EXPECT_EQ(kernels(t, {m2, v2, t.sub(p, t.times(step, 0.001))}), 1u);
  EXPECT_LE(kernels(t, {m2, v2, t.sub(p, t.times(step, 0.001)), b1, b2}), 3u);
}

TEST(Fusion, SumsOverTheSameElementsShareLoops) {
  Tensors t;
  const Id x = t.buffer({6, 4, 5}), y = t.buffer({6, 4, 5});
  const Id a = t.sum(t.mul(x, y), {0, 2}), b = t.sum(x, {0, 2}),
           c = t.max(t.reshape(x, {6, 4, 5}), {0, 2});
  EXPECT_EQ(kernels(t, {a, b, c}), 1u);
  EXPECT_EQ(kernels(t, {a, t.sum(x, {0})}), 2u);
}

TEST(Fusion, SharingMakesNoCircles) {
  // c reads a at its own index and, through b, at others: a and c cannot be one kernel.
  Tensors t;
  const Id x = t.buffer({8, 8});
  const Id a = t.plus(x, 1), b = t.sum(a, {0}), c = t.mul(a, b);
  const auto plan = check(t, {a, b, c});
  EXPECT_EQ(kernel_count(plan), 3u);
  // A chain of such: each pair could join, but not both.
  const Id d = t.contiguous(t.transpose(c)), e = t.add(d, t.contiguous(t.transpose(d)));
  check(t, {a, b, c, d, e, t.add(e, c)});
}

TEST(Fusion, ReluOfALargeConvolutionIsStoredWithIt) {
  Tensors t;
  const Id x = t.buffer({64, 4, 34, 34}), w = t.buffer({8, 4, 3, 3});
  const Id y = t.conv2d(x, w), z = t.relu(y);
  const auto plan = plan_of(t, {y, z});
  ASSERT_EQ(kernel_count(plan), 1u);
  EXPECT_EQ(plan.steps[0].buffers.size(), 4u);
}

// Long sums are split into parts; an epilogue would run after each part.
TEST(Fusion, AnOptimiserOfALongSumIsAKernelOfItsOwn) {
  const auto step = [](int64_t terms) {
    Tensors t;
    const Id g = t.matmul(t.transpose(t.buffer({terms, 256})), t.buffer({terms, 256}));
    const Id m = t.add(t.times(t.buffer({256, 256}), 0.9), t.times(g, 0.1));
    const Id v = t.add(t.times(t.buffer({256, 256}), 0.99), t.times(t.mul(g, g), 0.01));
    const Id root = t.plus(t.g.unary(Op::Sqrt, t.times(v, 3)), 1e-8);
    const Id p = t.sub(t.buffer({256, 256}), t.times(t.div(t.times(m, 2), root), 1e-3));
    return kernel_count(plan_of(t, {p, m, v}));
  };
  EXPECT_EQ(step(512), 1u);
  EXPECT_EQ(step(2048), 2u);
}

TEST(Fusion, ConvolutionGradientIsOneKernel) {
  // The gradient of overlapping windows is a sum over padded, skewed copies of a sum over output
  // channels.
  Tensors t;
  const Id dy = t.buffer({8, 4, 6}), w = t.buffer({4, 5, 3});  // (n, o, i), (o, c, k)
  const Id taps = t.sum(t.mul(t.reshape(dy, {8, 4, 1, 6, 1}), t.reshape(w, {1, 4, 5, 1, 3})),
                        {1});                                                // n 1 c i k
  const Id skewed = t.permute(t.reshape(taps, {8, 5, 6, 3}), {0, 1, 3, 2});  // n c k i
  const Id flat =
      t.shrink(t.reshape(t.pad(skewed, {0, 0, 0, 0, 0, 0, 0, 3}), {8, 5, 27}), {0, 8, 0, 5, 0, 24});
  const Id dx = t.sum(t.reshape(flat, {8, 5, 3, 8}), {2});
  const auto narrow = check(t, {dx});
  EXPECT_LE(kernel_count(narrow), 2u);
  Tensors wide;
  const Id dy2 = wide.buffer({32, 4, 6}), w2 = wide.buffer({4, 5, 3});
  const Id taps2 = wide.sum(
      wide.mul(wide.reshape(dy2, {32, 4, 1, 6, 1}), wide.reshape(w2, {1, 4, 5, 1, 3})), {1});
  const Id skewed2 = wide.permute(wide.reshape(taps2, {32, 5, 6, 3}), {0, 1, 3, 2});
  const Id flat2 = wide.shrink(
      wide.reshape(wide.pad(skewed2, {0, 0, 0, 0, 0, 0, 0, 3}), {32, 5, 27}), {0, 32, 0, 5, 0, 24});
  const auto plan = check(wide, {wide.sum(wide.reshape(flat2, {32, 5, 3, 8}), {2})});
  EXPECT_EQ(kernel_count(plan), 1u);
  const Graph& g = plan.asts[0]->graph;
  const Id value = g.sources(g.sources(plan.asts[0]->sink)[0])[2];
  EXPECT_EQ(g[value].op, Op::Reduce);
  EXPECT_EQ(g[value].src_count, 3);  // over taps and channels at once
}

}  // namespace
}  // namespace plugrad::test

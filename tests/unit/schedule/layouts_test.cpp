// Layouts of stored values by cost: channels are innermost between convolutions, requested tensors
// stay row-major, and operands that are read repeatedly are packed.
#include <set>

#include "check.h"
#include "ir/kernel_ast.h"
#include "ir/range.h"

namespace plugrad::test {
namespace {

constexpr int64_t kImages = 8, kChannels = 16, kPixels = 7, kResults = 24;

/// x (n, c, p) with w (o, c): (n, o, p).
Id convolution(Tensors& t, Id x, Id w) {
  const Dims image = t.shape(x), weight = t.shape(w);
  const Id by_pixel = t.reshape(x, {image[0], 1, image[1], image[2]});
  const Id by_channel = t.reshape(w, {1, weight[0], weight[1], 1});
  return t.reshape(t.sum(t.mul(by_pixel, by_channel), {2}), {image[0], weight[0], image[2]});
}

/// For each kernel that stores `count` elements: the strides of its store along its loops,
/// outermost first.
std::vector<std::vector<int64_t>> strides_of_stores(const schedule::Plan& plan, int64_t count) {
  std::vector<std::vector<int64_t>> all;
  for (const auto& ast : plan.asts)
    for (Id store : ast->graph.sources(ast->sink)) {
      const Graph& g = ast->graph;
      if (param_info(g, g[store].src[0]).elem_count != count) continue;
      all.emplace_back();
      std::vector<Id> terms = {g[store].src[1]};
      std::map<uint32_t, int64_t> by_loop;
      while (!terms.empty()) {
        const Id term = terms.back();
        terms.pop_back();
        const Node& n = g[term];
        if (n.op == Op::Add) terms.insert(terms.end(), {n.src[0], n.src[1]});
        if (n.op == Op::Mul) by_loop[range_axis(g[n.src[0]])] = const_int(g, n.src[1]);
        if (n.op == Op::Range) by_loop[range_axis(n)] = 1;
      }
      for (const auto& [axis, stride] : by_loop) all.back().push_back(stride);
    }
  return all;
}

schedule::Options vectors_of(uint32_t lanes) {
  schedule::Options options;
  options.lanes = lanes;
  return options;
}

struct Chain {
  Tensors t;
  Id root;
  explicit Chain(int64_t results = kResults) {
    const Id x = t.buffer({kImages, kChannels, kPixels});
    const Id v = t.buffer({kChannels, kChannels}), w = t.buffer({results, kChannels});
    root = convolution(t, t.relu(convolution(t, x, v)), w);
  }
};

}  // namespace

TEST(Layouts, ChannelsLieInnermostBetweenConvolutions) {
  Chain chain;
  const auto plan = check(chain.t, {chain.root}, vectors_of(8));
  const auto between = strides_of_stores(plan, kImages * kChannels * kPixels);
  ASSERT_FALSE(between.empty()) << to_string(plan);
  for (const auto& strides : between)
    EXPECT_EQ(strides, (std::vector<int64_t>{kChannels * kPixels, kChannels, 1}))
        << to_string(plan);
}

// Holds for any cost of kernels that are indifferent to the layout.
TEST(Layouts, ALargeKernelThatReadsAValueEitherWayDoesNotHoldItBack) {
  Chain chain(512);
  const auto plan = check(chain.t, {chain.root}, vectors_of(8));
  const auto between = strides_of_stores(plan, kImages * kChannels * kPixels);
  ASSERT_FALSE(between.empty()) << to_string(plan);
  for (const auto& strides : between)
    EXPECT_EQ(strides, (std::vector<int64_t>{kChannels * kPixels, kChannels, 1}))
        << to_string(plan);
}

TEST(Layouts, WhatIsAskedForIsRowMajor) {
  Chain chain;
  const auto plan = check(chain.t, {chain.root}, vectors_of(8));
  const auto out = strides_of_stores(plan, kImages * kResults * kPixels);
  ASSERT_EQ(out.size(), 1u) << to_string(plan);
  EXPECT_EQ(out[0], (std::vector<int64_t>{kResults * kPixels, kPixels, 1})) << to_string(plan);
}

TEST(Layouts, DevicesWithoutVectorsKeepRowMajor) {
  Chain chain;
  const auto plan = check(chain.t, {chain.root}, vectors_of(1));
  const auto between = strides_of_stores(plan, kImages * kChannels * kPixels);
  ASSERT_FALSE(between.empty()) << to_string(plan);
  for (const auto& strides : between)
    EXPECT_EQ(strides, (std::vector<int64_t>{kChannels * kPixels, kPixels, 1})) << to_string(plan);
}

TEST(Layouts, OperandReadOverAndOverIsPacked) {
  Tensors t;
  const Id x = t.expand(t.reshape(t.buffer({256, 16, 3}), {256, 1, 16, 3}), {256, 16, 16, 3});
  const Id w = t.expand(t.reshape(t.buffer({16, 16, 3}), {1, 16, 16, 3}), {256, 16, 16, 3});
  const auto plan = check(t, {t.sum(t.mul(x, w), {2, 3})}, vectors_of(8));
  ASSERT_EQ(kernel_count(plan), 2u) << to_string(plan);
  EXPECT_FALSE(strides_of_stores(plan, 16 * 16 * 3).empty()) << to_string(plan);
}

// Codegen packs the tiles of a matrix inside the kernel.
TEST(Layouts, MatricesAreNotPacked) {
  Tensors t;
  const Id a = t.buffer({256, 16}), b = t.buffer({16, 16});
  EXPECT_EQ(kernel_count(check(t, {t.matmul(a, t.transpose(b))}, vectors_of(8))), 1u);
}

// Values are not transposed for products either: layers multiply rows by columns of weights.
TEST(Layouts, ProductsOfMatricesLeaveRowsAsTheyAre) {
  Tensors t;
  const auto layer = [&](Id x) {
    return t.matmul(x, t.transpose(t.expand(t.buffer({1, 64, 64}), {8, 64, 64})));
  };
  const Id root = layer(t.relu(layer(t.buffer({8, 128, 64}))));
  const auto plan = check(t, {root}, vectors_of(8));
  for (const auto& strides : strides_of_stores(plan, 8 * 128 * 64))
    EXPECT_EQ(strides.back(), 1) << to_string(plan);
}

// Three heads read each head of keys: scores, which are reduced by rows, still have row-major
// layout.
TEST(Layouts, ScoresOfHeadsThatShareKeysAreRows) {
  Tensors t;
  const auto of_heads = [&] {
    const Id shared = t.expand(t.buffer({8, 3, 1, 96, 64}), {8, 3, 3, 96, 64});
    return t.reshape(shared, {8, 9, 96, 64});
  };
  const Id scores = t.matmul(t.buffer({8, 9, 128, 64}), t.transpose(of_heads()));
  const auto of_rows = [&](Op op, Id x) { return t.expand(t.reduce(op, x, {3}), t.shape(x)); };
  const Id powers = t.g.unary(Op::Exp2, t.op(Op::Sub, scores, of_rows(Op::Max, scores)));
  const Id root = t.matmul(t.op(Op::FDiv, powers, of_rows(Op::Add, powers)), of_heads());
  const auto plan = schedule::make_plan(t.g, std::vector{root}, t.inputs, 1, vectors_of(8));
  const auto stores = strides_of_stores(plan, 8 * 9 * 128 * 96);
  EXPECT_EQ(stores.size(), 2u);
  for (const auto& strides : stores) EXPECT_EQ(strides.end()[-2], 96) << to_string(plan);
}

// Half-type operands that a product reads repeatedly are cast once, in a separate kernel and in
// memory order; a product with one row reads each once, and a sum invariant in an outer loop is
// computed once.
TEST(Layouts, HalvesThatAreReadOftenAreCastOnce) {
  const auto kernels_of = [](DType dtype, int64_t rows, bool turns) {
    Tensors t;
    const auto number = [&](Id x) {
      const Id turned = turns ? t.transpose(x) : x;
      return dtype == DType::F32 ? turned : t.g.cast(turned, DType::F32);
    };
    const Id a = t.buffer(turns ? Dims{128, rows} : Dims{rows, 128}, dtype);
    const Id b = t.buffer({128, 128}, dtype);
    const auto plan = check(t, {t.matmul(number(a), number(b))}, vectors_of(16));
    for (const auto& strides : strides_of_stores(plan, 128 * 128))
      EXPECT_EQ(*std::ranges::min_element(strides), 1) << to_string(plan);
    return kernel_count(plan);
  };
  for (const bool turns : {false, true}) {
    EXPECT_EQ(kernels_of(DType::F32, 128, turns), 1u);
    EXPECT_EQ(kernels_of(DType::F16, 128, turns), 3u);
    EXPECT_EQ(kernels_of(DType::BF16, 128, turns), 3u);
    EXPECT_EQ(kernels_of(DType::F16, 1, turns), 1u);
  }
}

// A row read three times along itself: repeated casts cost less than the memory traffic of a copy
// in f32.
TEST(Layouts, HalvesThatAreReadAlongTheirRowsAreNotCopied) {
  for (const int64_t length : {7, 512, 4097}) {
    Tensors t;
    const Id x = t.g.cast(t.buffer({200, length}, DType::F16), DType::F32);
    const Id apart = t.op(Op::Sub, x, t.sum(x, {1}));
    const Id root = t.mul(apart, t.sum(t.mul(apart, apart), {1}));
    EXPECT_EQ(kernel_count(check(t, {root}, vectors_of(16))), 1u) << length;
  }
}

// A weight gradient reads its terms once per register tile of the results: in chunks that fit the
// cache, also with one thread.
TEST(Layouts, SumOfManyProductsIsCutToTheCache) {
  Tensors t;
  const Id dy = t.buffer({1024, 32}), x = t.buffer({1024, 32});
  const Id root = t.matmul(t.transpose(dy), x);
  schedule::Options options = vectors_of(8);
  for (uint32_t threads : {1u, 2u}) {
    options.threads = threads;
    options.cache_bytes = 1 << 16;
    const auto plan = check(t, {root}, options);
    EXPECT_EQ(kernel_count(plan), 2u) << to_string(plan);
    // The loop over chunks encloses those of the results.
    const auto parts = strides_of_stores(plan, 8 * 1024);
    ASSERT_EQ(parts.size(), 1u) << to_string(plan);
    EXPECT_EQ(parts[0], (std::vector<int64_t>{32 * 32, 32, 1})) << to_string(plan);
    options.cache_bytes = 1 << 20;
    EXPECT_EQ(kernel_count(check(t, {root}, options)), 1u);
  }
}

// Three products that read one operand in the forward pass contribute to its gradient.
TEST(Layouts, SumsOfProductsAreKernelsOfTheirOwn) {
  const auto kernels_of = [](int64_t terms_of_sum) {
    Tensors t;
    const auto product = [&] {
      const Id a = t.buffer({48, terms_of_sum, 1}), b = t.buffer({1, terms_of_sum, 64});
      return t.mul(a, b);
    };
    const Id terms = t.add(t.add(product(), product()), product());
    return kernel_count(check(t, {t.sum(terms, {1})}, vectors_of(8)));
  };
  EXPECT_EQ(kernels_of(32), 3u);
  EXPECT_EQ(kernels_of(8), 1u);  // storing the intermediate sums would cost too much
}

// Operands that are read once gain nothing from packing: a matrix times a vector, squares of rows.
TEST(Layouts, SumOfProductsThatAreReadOnceIsNotCut) {
  Tensors t;
  const Id a = t.buffer({1024, 256}), x = t.buffer({256, 1});
  schedule::Options options = vectors_of(8);
  options.threads = 2;
  options.cache_bytes = 1 << 14;
  EXPECT_EQ(kernel_count(check(t, {t.matmul(a, x)}, options)), 1u);
  EXPECT_EQ(kernel_count(check(t, {t.sum(t.mul(a, a), {1})}, options)), 1u);
}

namespace {

/// Kernels that store the matrix of a product of `rows` by (12, 24), which is stored transposed.
size_t packing_kernels(int64_t rows, schedule::Options options) {
  options.lanes = 8;
  Tensors t;
  const Id x = t.buffer({rows, 12}), w = t.buffer({24, 12});
  const Id product = t.sum(t.mul(t.reshape(x, {rows, 1, 12}), t.reshape(w, {1, 24, 12})), {2});
  const auto plan = check(t, {t.reshape(product, {rows, 24})}, options);
  const auto strides = strides_of_stores(plan, 24 * 12);
  for (const auto& each : strides) EXPECT_EQ(each, (std::vector<int64_t>{24, 1}));
  return strides.size();
}

}  // namespace

TEST(Layouts, AConstantMatrixIsPackedWhereManyRowsReadItAndItStaysInACache) {
  EXPECT_EQ(packing_kernels(16, {.cache_bytes = 4096, .constants = {1}}), 1u);
  EXPECT_EQ(packing_kernels(16, {.cache_bytes = 1024, .constants = {1}}), 0u);
  EXPECT_EQ(packing_kernels(4, {.cache_bytes = 4096, .constants = {1}}), 0u);
  EXPECT_EQ(packing_kernels(16, {.cache_bytes = 4096, .constants = {0}}), 0u);
  EXPECT_EQ(packing_kernels(16, {.cache_bytes = 4096}), 0u);
}

TEST(Layouts, WhatIsConstantSharesNoKernelWithWhatVaries) {
  const auto kernels = [](std::vector<uint32_t> constants) {
    Tensors t;
    const Id x = t.buffer({8}), w = t.buffer({8});
    const Id doubled = t.contiguous(t.mul(w, t.number(2)));
    schedule::Options options;
    options.constants = std::move(constants);
    return kernel_count(check(t, {t.add(x, doubled)}, options));
  };
  EXPECT_EQ(kernels({}), 1u);
  EXPECT_EQ(kernels({1}), 2u);
  EXPECT_EQ(kernels({0}), 1u);
  EXPECT_EQ(kernels({0, 1}), 1u);  // the sum is also one kernel
}

// A scale per channel, whose square root and quotient would be recomputed for each of 60 pixels.
TEST(Layouts, ScalesOfChannelsAreComputedOnceWhereTheyAreConstant) {
  const auto kernels = [](std::vector<uint32_t> constants) {
    Tensors t;
    const Id x = t.buffer({4, 6, 15}), gain = t.buffer({1, 6, 1}), variance = t.buffer({1, 6, 1});
    const Id root = t.g.add(Op::Sqrt, DType::F32, {t.add(t.mul(variance, variance), t.number(1))});
    schedule::Options options;
    options.constants = std::move(constants);
    return kernel_count(check(t, {t.mul(x, t.mul(gain, root))}, options));
  };
  EXPECT_EQ(kernels({}), 1u);
  EXPECT_EQ(kernels({1, 2}), 2u);
}

namespace {

/// x (n, c, h, w) with w (o, c, 3, 3), borders of zeros: (n, o, h, w).
Id image_convolution(Tensors& t, Id x, Id w) {
  const Dims image = t.shape(x), weight = t.shape(w);
  const int64_t n = image[0], c = image[1], h = image[2], v = image[3], o = weight[0];
  const Id windows = t.windows(t.pad(x, {0, 0, 0, 0, 1, 1, 1, 1}), 3);
  const Id terms =
      t.mul(t.reshape(windows, {n, 1, c, h, v, 3, 3}), t.reshape(w, {1, o, c, 1, 1, 3, 3}));
  return t.reshape(t.sum(terms, {2, 5, 6}), {n, o, h, v});
}

/// Two convolutions of one image with constant weights; `between` is applied to the result of the
/// first.
struct ImageChain {
  static constexpr int64_t kSide = 8;
  Tensors t;
  Id root;
  schedule::Options options = vectors_of(8);

  template <class Between>
  ImageChain(int64_t channels, Between between) {
    const Id x = t.buffer({1, 4, kSide, kSide});
    const Id first = t.buffer({channels, 4, 3, 3}), second = t.buffer({8, channels, 3, 3});
    root = image_convolution(t, between(t, image_convolution(t, x, first)), second);
    options.constants = {1, 2};
  }
  explicit ImageChain(int64_t channels)
      : ImageChain(channels, [](Tensors& of, Id y) { return of.relu(y); }) {}
};

/// The divisors in the store index of the kernel that stores `count` elements.
std::set<int64_t> divisors_of_stores(const schedule::Plan& plan, int64_t count) {
  std::set<int64_t> divisors;
  for (const auto& ast : plan.asts)
    for (Id store : ast->graph.sources(ast->sink)) {
      const Graph& g = ast->graph;
      if (param_info(g, g[store].src[0]).elem_count != count) continue;
      Reachable reachable;
      const Id index = g[store].src[1];
      for (Id id : reachable.from(g, std::span(&index, 1)))
        if (g[id].op == Op::FloorDiv) divisors.insert(const_int(g, g[id].src[1]));
    }
  return divisors;
}

}  // namespace

// Rows fill vectors as well as channels do, but a loop over the three taps of a window would
// restart for each channel, and for a single image the channels are the outermost long axis.
TEST(Layouts, OneImagesChannelsLieInnermostBetweenConvolutions) {
  ImageChain chain(16);
  const auto plan = check(chain.t, {chain.root}, chain.options);
  const auto between = strides_of_stores(plan, 16 * ImageChain::kSide * ImageChain::kSide);
  ASSERT_FALSE(between.empty()) << to_string(plan);
  for (const auto& strides : between)
    EXPECT_EQ(strides, (std::vector<int64_t>{ImageChain::kSide * 16, 16, 1})) << to_string(plan);
}

// There are more weights than image elements, but weights are packed in loop order.
TEST(Layouts, PackedWeightsDoNotChooseTheInnerLoopOfTheSum) {
  ImageChain chain(48);
  const auto plan = check(chain.t, {chain.root}, chain.options);
  size_t sums = 0;
  for (const auto& ast : plan.asts) {
    const Graph& g = ast->graph;
    Reachable reachable;
    for (Id reduce : reachable.from(g, std::span(&ast->sink, 1))) {
      if (g[reduce].op != Op::Reduce) continue;
      std::map<uint32_t, int64_t> sizes;  // by loop number: the innermost is the last
      for (Id r : g.sources(reduce).subspan(1)) sizes[range_axis(g[r])] = range_size(g, r);
      // of the first convolution
      if (sizes.begin()->second == 4 || sizes.rbegin()->second == 4) continue;
      ++sums;
      EXPECT_EQ(sizes.rbegin()->second, 48) << to_string(plan);
    }
  }
  EXPECT_EQ(sums, 1u) << to_string(plan);
}

TEST(Layouts, PackedConstantsLieInBlocksOfTwoVectors) {
  ImageChain wide(32), narrow(16);
  EXPECT_EQ(divisors_of_stores(check(wide.t, {wide.root}, wide.options), 32 * 4 * 9),
            (std::set<int64_t>{16}));
  EXPECT_EQ(divisors_of_stores(check(narrow.t, {narrow.root}, narrow.options), 16 * 4 * 9),
            std::set<int64_t>{});
}

}  // namespace plugrad::test

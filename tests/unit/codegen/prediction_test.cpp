// Predictions of schedules, against cycles and bytes counted by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "codegen/search/search.h"
#include "codegen/tiling/cost_model.h"
#include "kernels.h"
#include "plugrad/error.h"
#include "run.h"

namespace plugrad::test {
namespace {

using codegen::Prediction;

// 16 registers of 4 lanes, one multiply-add and two loads per cycle, 2 threads.
std::shared_ptr<cost::Machine> machine() {
  auto m = std::make_shared<cost::Machine>();
  m->lanes = 4, m->registers = 16, m->passing = 2, m->threads = 2;
  m->multiply_adds = 1, m->loads = 2;
  m->wake_cycles = 1000, m->cycles_a_second = 1e9;
  m->levels = {{{32'768, 32, 64}, {1 << 20, 16, 32}, {0, 8, 16}, {0, 4, 6}}};
  return m;
}

codegen::Options options(std::shared_ptr<cost::Machine> of = machine()) {
  codegen::Options out;
  out.machine = std::move(of);
  return out;
}

struct Product {
  explicit Product(int64_t m, int64_t n, int64_t k) : ast(matmul(m, n, k)) {
    caps.vector_registers = 16;
    caps.contract_supported = 1;
    caps.threads = 2;
  }
  Prediction of(const char* list, double window = 0) const {
    auto m = machine();
    m->window = window;
    const codegen::SearchSpace space(ast.graph, ast.sink, caps, {.machine = m});
    return space.predicted(codegen::parse_schedule(list)).prediction;
  }
  Ast ast;
  pgr_device_caps caps = small_cpu(4);
};

TEST(Prediction, ATileOfRegistersComputesAVectorOfProductsACycle) {
  const Product product(64, 64, 64);
  const Prediction tile = product.of("upcast(0, 4) vectorize(1, 8)");
  EXPECT_DOUBLE_EQ(tile.cycles.arithmetic, 64 * 64 * 64 / 4.0);
  // 4 x 2 accumulators, 2 vectors of one operand, and 2 values of the other in flight.
  EXPECT_DOUBLE_EQ(tile.registers, 12);
  EXPECT_DOUBLE_EQ(tile.bytes, 3 * 64 * 64 * 4);
  EXPECT_GE(tile.cycles.all, tile.cycles.arithmetic);
  EXPECT_LT(tile.cycles.all, 2 * tile.cycles.arithmetic);
}

TEST(Prediction, WithoutChangesASumWaitsForItsLastAddition) {
  const Prediction plain = Product(64, 64, 64).of("");
  EXPECT_GE(plain.cycles.latency, 64 * 64 * 64 * machine()->latency);
  EXPECT_GT(plain.cycles.all,
            5 * Product(64, 64, 64).of("upcast(0, 4) vectorize(1, 8)").cycles.all);
}

TEST(Prediction, ShortSumsWaitBesideEachOther) {
  const auto waiting = [](int64_t terms, double window) {
    return Product(64, 64, terms).of("vectorize(1, 8)", window).cycles.latency;
  };
  EXPECT_LT(waiting(4, 224), 0.2 * waiting(4, 0));
  EXPECT_GT(waiting(4096, 224), 0.95 * waiting(4096, 0));
}

// A loop over rows is partitioned where a condition on rows changes, unless half of it would be
// borders.
TEST(Prediction, RowsThatAreMostlyBordersKeepTheirConditions) {
  const auto cycles_a_row = [](int64_t rows) {
    const Ast ast = padded_conv2d({1, 1, rows, 32, 1, 5}, 2);
    pgr_device_caps caps = small_cpu(4);
    caps.vector_registers = 16;
    caps.contract_supported = 1;
    const codegen::SearchSpace space(ast.graph, ast.sink, caps, {.machine = machine()});
    const auto list = codegen::parse_schedule("vectorize(1, 32) unroll(1, 5) unroll(1, 5)");
    return space.predicted(list).prediction.cycles.arithmetic / static_cast<double>(rows);
  };
  EXPECT_GT(cycles_a_row(7), 1.2 * cycles_a_row(8));
  EXPECT_NEAR(cycles_a_row(64), cycles_a_row(128), 0.05 * cycles_a_row(64));
}

// 40 channels are two blocks of 20, or two of 16 and a remainder. Both compute the same terms, so
// both have the same prediction, although the remainder's is that of one row and the first row has
// a third fewer terms.
TEST(Prediction, ARestOfBlocksCountsTheTermsOfAnyRow) {
  const auto arithmetic = [](const char* list) {
    const Ast ast = padded_conv2d({1, 40, 32, 32, 4, 3}, 1);
    pgr_device_caps caps = small_cpu(4);
    caps.vector_registers = 16;
    caps.contract_supported = 1;
    caps.private_bytes = 64 << 10;
    const codegen::SearchSpace space(ast.graph, ast.sink, caps, {.machine = machine()});
    return space.predicted(codegen::parse_schedule(list)).prediction.cycles.arithmetic;
  };
  const double whole = arithmetic("vectorize(1, 32) block(4, 20) accumulate(4, 0)"),
               rest = arithmetic("vectorize(1, 32) block(4, 16) accumulate(4, 0)");
  EXPECT_NEAR(rest, whole, 0.1 * whole);
}

TEST(Prediction, WhatNeedsMoreRegistersThanThereAreIsNeverChosen) {
  const Prediction spilled = Product(64, 64, 64).of("upcast(0, 8) vectorize(1, 16)");
  EXPECT_DOUBLE_EQ(spilled.registers, 32 + 4 + 2);
  EXPECT_TRUE(std::isinf(spilled.cost()));
  EXPECT_FALSE(std::isinf(spilled.cycles.all)) << "its parts are shown all the same";
}

// out[x, k] = sum over c and t with 0 <= step * x + t - 1 < step * width, or all with `padded`
// false, of in[c, step * x + t] * w[c, t, k]
Ast windows(int64_t width, int64_t inputs, int64_t channels, bool padded, int64_t step = 1) {
  constexpr int64_t kTaps = 3;
  Ast ast;
  Graph& g = ast.graph;
  const Id x = make_range(g, width, 0, AxisKind::Loop),
           k = make_range(g, channels, 1, AxisKind::Loop);
  const Id c = make_range(g, inputs, 2, AxisKind::Reduce),
           t = make_range(g, kTaps, 3, AxisKind::Reduce);
  const int64_t places = step * width;
  const Id place = affine(g, x, step, t);
  const Id inside = g.binary(Op::And, g.binary(Op::CmpLt, g.index(0), place),
                             g.binary(Op::CmpLt, place, g.index(places + 1)));
  const Id pixel =
      load(g, param(g, 1, inputs * (places + 2), false), affine(g, c, places + 2, place));
  const Id weight = load(g, param(g, 2, inputs * kTaps * channels, false),
                         affine(g, affine(g, c, kTaps, t), channels, k));
  const Id product = g.binary(Op::Mul, pixel, weight);
  const Id term = padded ? g.where(inside, product, g.constant(DType::F32, 0.0)) : product;
  store(ast, param(g, 0, width * channels, true), affine(g, x, channels, k),
        reduce(g, Op::Add, term, {c, t}));
  return ast;
}

// One of four pixels lies at each border. Treated as independent, a share of 1 - (3/4)^2 of the
// pixels has a branch (a comparison and a jump, half an instruction) around two vectors.
TEST(Prediction, ABorderThatAllLanesShareCostsABranch) {
  Product padded(1, 1, 1), whole(1, 1, 1);
  padded.ast = windows(64, 16, 8, true), whole.ast = windows(64, 16, 8, false);
  const char* list = "vectorize(1, 8) upcast(0, 4)";
  const double products = 64.0 * 3 * 16 * 8 / 4;
  EXPECT_DOUBLE_EQ(whole.of(list).cycles.arithmetic, products);
  EXPECT_DOUBLE_EQ(padded.of(list).cycles.arithmetic, products * (1 + 7.0 / 16 * 0.5 / 2));
  EXPECT_DOUBLE_EQ(padded.of(list).registers, whole.of(list).registers);
  // Lanes along the image select each factor by a mask.
  EXPECT_GT(padded.of("vectorize(0, 8) upcast(1, 4)").cycles.arithmetic, 1.2 * products);
}

// Five windows of three taps in steps of two share eleven elements, which stay in registers if the
// taps are unrolled; together with ten sums they exceed the 16 registers.
TEST(Prediction, TapsWhoseWindowsDoNotFitTheRegistersAreNotUnrolled) {
  Product strided(1, 1, 1);
  strided.ast = windows(14, 32, 64, true, 2);
  const codegen::SearchSpace space(strided.ast.graph, strided.ast.sink, strided.caps, options());
  const codegen::Candidate chosen = space.chosen();
  EXPECT_LE(chosen.prediction.registers, 16) << codegen::to_string(chosen.list);
  EXPECT_FALSE(std::isinf(chosen.prediction.cost())) << codegen::to_string(chosen.list);
}

TEST(Prediction, ThreadsShareCyclesAndTakeTimeToWake) {
  const Prediction both = Product(64, 64, 64).of("upcast(0, 4) vectorize(1, 8) thread(0, 0)");
  EXPECT_DOUBLE_EQ(both.busy, 2);
  EXPECT_DOUBLE_EQ(both.seconds(*machine(), 1), both.cycles.all * 1e-9);
  EXPECT_DOUBLE_EQ(both.seconds(*machine(), 2), (both.cycles.all / 2 + 1000) * 1e-9);
  const Prediction one = Product(64, 64, 64).of("upcast(0, 4) vectorize(1, 8)");
  EXPECT_DOUBLE_EQ(one.busy, 1);
  EXPECT_DOUBLE_EQ(one.seconds(*machine(), 2), one.cycles.all * 1e-9) << "the other has no work";
}

TEST(Prediction, BytesComeFromTheNearestCacheThatHoldsThem) {
  const auto moving = [](double bytes, double threads) {
    return Prediction{.bytes = bytes}.moving(*machine(), threads);
  };
  EXPECT_DOUBLE_EQ(moving(32'000, 1), 1000);
  EXPECT_DOUBLE_EQ(moving(64'000, 1), 4000) << "L2";
  EXPECT_DOUBLE_EQ(moving(64'000, 2), 1000) << "each half in a first cache";
  EXPECT_DOUBLE_EQ(moving(1.6e6, 2), 50'000);
  EXPECT_DOUBLE_EQ(moving(4e6, 1), 1e6) << "memory: there is no L3";
  EXPECT_DOUBLE_EQ(moving(6e6, 2), 1e6);
}

// Softmax reduces a row twice and traverses it a third time: three consecutive loops.
TEST(Prediction, RowsAreLoopsOneAfterTheOther) {
  Ast ast = softmax2(32, 64);
  const pgr_device_caps caps = small_cpu(4);
  const codegen::SearchSpace space(ast.graph, ast.sink, caps, {.machine = machine()});
  const Prediction plain = space.predicted({}).prediction;
  EXPECT_GT(plain.cycles.latency, 2 * 32 * 64 * machine()->latency);
  EXPECT_LT(plain.cycles.latency, 4 * 32 * 64 * (machine()->latency + 1));
  EXPECT_LT(plain.cycles.accesses, 32 * 64 * 5.0);
  const Prediction lanes = space.chosen().prediction;
  EXPECT_LT(lanes.cycles.all, plain.cycles.all / 3);
}

// The copy is made in each iteration of a loop that is unrolled later: the unrolled copies cost the
// same as the iterations.
TEST(Prediction, ACopyIsAnotherInEachIterationAroundIt) {
  Product product(64, 64, 64);
  product.caps.private_bytes = 64 << 10;
  const Prediction plain = product.of("upcast(0, 4) vectorize(1, 8)");
  for (const char* list : {"upcast(0, 4) vectorize(1, 8) swap(0, 1) stage(2, 1)",
                           "upcast(0, 4) vectorize(1, 8) swap(0, 1) stage(2, 1) upcast(0, 2)"}) {
    const Prediction staged = product.of(list);
    EXPECT_DOUBLE_EQ(staged.cycles.arithmetic, plain.cycles.arithmetic) << list;
    EXPECT_GT(staged.cycles.packing, 64 * 64 / 4.0) << list;
    EXPECT_LT(staged.cycles.packing, 64 * 64 * 2.0) << list;
  }
}

// The panel is packed once for all rows, but again for each row tile if the loop over row tiles is
// outside the loop over panels.
TEST(Prediction, ACopyInsideOfOtherLoopsIsMadeAgain) {
  const Product product(64, 64, 64);
  const double once =
      product.of("upcast(0, 4) vectorize(1, 8) swap(0, 1) stage(2, 1)").cycles.packing;
  const double again =
      product.of("upcast(0, 4) vectorize(1, 8) swap(0, 1) stage(2, 1) swap(0, 1)").cycles.packing;
  EXPECT_GT(once, 0);
  EXPECT_DOUBLE_EQ(again, once * 64 / 4);
}

// The copy depends on the loop over four column tiles, inside all row tiles. The loops of the
// accumulated results enclose neither.
TEST(Prediction, LoopsThatFillOtherArraysDoNotRepeatACopy) {
  Product product(64, 64, 64);
  product.caps.private_bytes = 64 << 10;
  const double once =
      product.of("upcast(0, 4) vectorize(1, 8) swap(0, 1) stage(2, 1)").cycles.packing;
  const double again =
      product.of("upcast(0, 4) vectorize(1, 8) swap(0, 1) stage(2, 1) block(0, 4) stage(0, 2)")
          .cycles.packing;
  EXPECT_DOUBLE_EQ(again, once * 64 / 4);
}

// 4 of 16 rows are a remainder, which one of three groups of rows computes.
TEST(Prediction, AStoreOfFewGroupsCountsOnce) {
  const Product product(16, 64, 64);
  const Prediction alone = product.of("upcast(0, 6) vectorize(1, 8)"),
                   shared = product.of("upcast(0, 6) vectorize(1, 8) thread(0, 0) thread(1, 0)");
  EXPECT_DOUBLE_EQ(alone.cycles.arithmetic, 16 * 64 * 64 / 4.0);
  EXPECT_DOUBLE_EQ(shared.cycles.arithmetic, alone.cycles.arithmetic);
}

// out[n, k, x] = sum over c of in[n, c, x] * w[k, c]: a 1x1 convolution of four images
Ast points() {
  Ast ast;
  Graph& g = ast.graph;
  const Id n = make_range(g, 4, 0, AxisKind::Loop), k = make_range(g, 24, 1, AxisKind::Loop),
           x = make_range(g, 64, 2, AxisKind::Loop), c = make_range(g, 16, 3, AxisKind::Reduce);
  const Id pixel = load(g, param(g, 1, 4 * 16 * 64, false), affine(g, affine(g, n, 16, c), 64, x));
  const Id weight = load(g, param(g, 2, 24 * 16, false), affine(g, k, 16, c));
  store(ast, param(g, 0, 4 * 24 * 64, true), affine(g, affine(g, n, 24, k), 64, x),
        reduce(g, Op::Add, g.binary(Op::Mul, pixel, weight), {c}));
  return ast;
}

// The vectors of two images stay in registers across six weights; those of four do not fit.
TEST(Prediction, OperandsOfAllImagesOfATileStay) {
  Product product(1, 1, 1);
  product.ast = points();
  EXPECT_DOUBLE_EQ(product.of("upcast(0, 2) upcast(1, 6) vectorize(2, 4)").registers, 12 + 2 + 2);
  const Prediction most = product.of("upcast(0, 4) upcast(0, 3) vectorize(1, 4)");
  EXPECT_DOUBLE_EQ(most.registers, 12 + 3 + 2);
  EXPECT_TRUE(std::isinf(most.cost()));
}

// The prediction includes the computation of values that are stored in a local buffer.
TEST(Prediction, AResultThatWaitsIsComputed) {
  Product product(64, 64, 64);
  product.caps.private_bytes = 64 << 10;
  const Prediction plain = product.of("upcast(0, 4) vectorize(1, 8)");
  const Prediction waits = product.of("upcast(0, 4) vectorize(1, 8) stage(0, 1)");
  EXPECT_DOUBLE_EQ(waits.cycles.arithmetic, plain.cycles.arithmetic);
  EXPECT_GT(waits.cycles.all, plain.cycles.all);
}

// 67 terms are 8 times 8 and 3, in two consecutive loops.
TEST(Prediction, TheRestOfASumIsALoopOfItsOwn) {
  const Prediction sum = Product(64, 64, 67).of("unroll(2, 8) upcast(0, 4) vectorize(1, 8)");
  EXPECT_DOUBLE_EQ(sum.cycles.arithmetic, 64 * 64 * (67 + 1) / 4.0) << "and one to add them";
}

TEST(Prediction, OfAListThatIsNotLegalIsAnError) {
  EXPECT_THROW(Product(64, 64, 64).of("upcast(7, 4)"), Error);
}

}  // namespace
}  // namespace plugrad::test

// Views: what movement makes denotes elements of the tensor that it moves.
#include <fmt/format.h>

#include <cstdlib>

#include "engine/session.h"
#include "plugrad/no_grad.h"
#include "tensor/handles.h"
#include "unit/tensor/expect.h"
#include "unit/tensor/view_program.h"

namespace plugrad {
namespace {

// A reshape to the same shape, and the like, denotes the node of the tensor itself.
TEST(Views, ReadingOneOfALeafKeepsItsGradient) {
  Tensor x = (Tensor::from<float>({1, 2}) + 1.0).requires_grad_();
  const Tensor h = x.reshape({2}), c = x.contiguous();
  expect_values(h, {2, 3});
  expect_values(c, {2, 3});
  (h * 3.0 + c + x).sum().backward();
  expect_values(x.grad(), {5, 5});
}

TEST(Views, ElementsThatIndicesLeaveKeepTheirGradients) {
  const Tensor at[] = {Tensor::from<int32_t>({0}), Tensor::from<int32_t>(std::vector<int32_t>{})};
  const std::vector<std::vector<double>> expected = {{0, 2, 2}, {2, 2, 2}};
  for (size_t i = 0; i < 2; ++i) {
    Tensor x = Tensor::from<float>({1, 2, 3}).requires_grad_(), y = x * 2.0, d = y.detach();
    d[at[i]] = 7.0;
    expect_values(gradient(y.sum() + x.sum() * 0.0, {x})[0], expected[i]);
    Tensor z = x * 2.0, part = z.detach()[Slice(0, 2)];
    part.set_index({at[i]}, 7.0);
    expect_values(gradient(z.sum() + x.sum() * 0.0, {x})[0], expected[i]);
  }
}

TEST(Views, OfABaseThatIsGoneBesideAnExpandedOne) {
  Tensor b = Tensor::from<float>({1, 2}) + 2.0, v = b.reshape({2, 1});
  v.realize();
  const Tensor u = v.expand({2, 2});
  b = Tensor();
  engine::Session::current().collect();
  v += 1.0;
  expect_values(v, {4, 5});
  expect_values(u, {4, 4, 5, 5});
}

TEST(Views, WindowsThatDoNotOverlapAreWritten) {
  Tensor x = Tensor::zeros({5}).realize(), apart = x.unfold(0, 1, 2);
  apart += 1;
  expect_values(x, {1, 0, 1, 0, 1});
  Tensor one = x.unfold(0, 3, 4);
  one.assign(2);
  expect_values(x, {2, 2, 2, 0, 1});
}

TEST(Views, WritesGoToTheTensorThatIsShown) {
  Tensor x = counting({2, 3});
  x[0][1] = 5;
  expect_values(x, {0, 5, 2, 3, 4, 5});
  x.transpose()[0] = 1;
  expect_values(x, {1, 5, 2, 1, 4, 5});
  x.reshape({6})[3] = 7;
  expect_values(x, {1, 5, 2, 7, 4, 5});
  x.detach()[0] = 2;
  expect_values(x, {2, 2, 2, 7, 4, 5});
  x.slice(1, {0, 2}).assign(Tensor::from({8.f, 9.f}));
  expect_values(x, {8, 9, 2, 8, 9, 5});
  x.flip(1).squeeze().unsqueeze(0)[{0, 1, 0}] = 0;
  expect_values(x, {8, 9, 2, 8, 9, 0});
  Tensor diagonal = x.diagonal();
  diagonal += 1;
  expect_values(x, {9, 9, 2, 8, 10, 0});
  x.bitcast(DType::I32)[0] = 0;
  expect_values(x, {0, 0, 0, 8, 10, 0});
  Tensor ends = x.slice(1, Slice({}, {}, -2));
  ends *= 2;
  expect_values(x, {0, 0, 0, 16, 10, 0});
  for (Tensor& half : x.chunk(2, 0)) half += 1;
  expect_values(x, {1, 1, 1, 17, 11, 1});
}

TEST(Views, ShowThePresentValue) {
  Tensor x = counting({2, 3});
  const Tensor row = x[1], column = x.slice(1, {0, 1}), sum = row + 0;
  Tensor turned = row.flip(0);
  x += 10;
  expect_values(row, {13, 14, 15});
  expect_values(turned, {15, 14, 13});
  x[{1, 0}] = -1;
  expect_values(row, {-1, 14, 15});
  expect_values(column, {10, -1});
  expect_values(turned, {15, 14, -1});
  expect_values(sum, {3, 4, 5});  // a value of the moment at which it was recorded
  turned[0] = 0;
  expect_values(row, {-1, 14, 0});
  expect_values(x, {10, 11, 12, -1, 14, 0});
}

TEST(Views, StayAfterRealisingAndCollecting) {
  Tensor x = counting({4}) * 2.0;
  Tensor y = x.slice(0, {1, 3}), z = y.flip(0);
  y.realize();
  engine::Session::current().collect();
  x.realize();
  z += 1;
  engine::Session::current().collect();
  expect_values(x, {0, 3, 5, 6});
  expect_values(y, {3, 5});
  y.assign(0);
  expect_values(z, {0, 0});
  expect_values(x, {0, 0, 0, 6});
}

TEST(Views, OfATensorThatNobodyHoldsShareItsElements) {
  for (const bool is_realised : {false, true}) {
    Tensor x = counting({6}) + 1.0;
    Tensor low = x.slice(0, {0, 4}), high = x.slice(0, {2, 6}), last = x.slice(0, {5, 6});
    x = Tensor();
    if (is_realised) Tensor::realize(std::vector{low, high});
    engine::Session::current().collect();
    low += 10;
    expect_values(high, {13, 14, 5, 6});
    high[0] = 0;
    expect_values(low, {11, 12, 0, 14});
    high = Tensor();
    last.assign(-1);
    low.assign(1);
    expect_values(last, {-1});
    expect_values(low, {1, 1, 1, 1});
  }
}

TEST(Views, OfADetachedViewOutliveIt) {
  Tensor x = counting({4}), low = x.slice(0, {0, 3});
  const Tensor high = x.slice(0, {1, 4});
  x = Tensor();
  low += 1;  // to a base that only its views hold
  Tensor detached = low.detach(), first = detached.slice(0, {0, 1}),
         second = detached.slice(0, {1, 2});
  first = Tensor();
  second += 10;
  expect_values(detached, {1, 12, 3});
  detached = Tensor();
  second += 1;
  expect_values(low, {1, 13, 3});
  expect_values(high, {13, 3, 3});
  low.assign(0);
  expect_values(second, {0});
}

TEST(Views, OverlappingWritesAreThoseOfTheValueBefore) {
  Tensor x = counting({5});
  x.slice(0, {1, 5}).assign(x.slice(0, {0, 4}));
  expect_values(x, {0, 0, 1, 2, 3});
  Tensor all = x.reshape({5});
  all += all.flip(0);
  expect_values(x, {3, 2, 2, 2, 3});
}

TEST(Views, ResultsOfOtherFunctionsAreValues) {
  const Tensor x = counting({2, 2});
  for (Tensor y :
       {x.clone(), x + 0, x.cast(DType::F64), x.contiguous(), x.repeat({1, 1}),
        x.repeat_interleave(1, 0), x.roll(0, 0), x.pad({0, 0}), x.diag(), cat({x}, 0),
        einsum("ij->ij", {x}), where(true, x, 0), x.index_select(0, Tensor::from({0, 1}))})
    y += 1;
  expect_values(x, {0, 1, 2, 3});
}

TEST(Views, RefuseWritesThatCouldNotGoBack) {
  Tensor x = counting({3});
  Tensor wide = x.expand({2, 3});
  const std::string expanded =
      "one element stands at several places of this tensor, which expand() or unfold() made; write "
      "to the tensor that was expanded, or to a copy, clone()";
  EXPECT_EQ(error_of([&] { wide.assign(1); }), "[assign] " + expanded);
  EXPECT_EQ(error_of([&] { wide[0] = 1; }), "[setitem] " + expanded);
  EXPECT_EQ(error_of([&] { x.unfold(0, 2, 1).transpose()[0] = 1; }), "[setitem] " + expanded);
  EXPECT_EQ(error_of([&] { Tensor(1.0).expand({2}).assign(1); }), "[assign] " + expanded);
  EXPECT_THAT(error_of([&] { x.bitcast(DType::U8)[0] = 1; }),
              testing::StartsWith("[setitem] this part of a tensor was computed (a bitcast"));
  x += 1;
  expect_values(wide, {1, 2, 3, 1, 2, 3});  // but it shows what x is
  wide.clone().assign(0);
  EXPECT_THAT(error_of([&] { x.cast(DType::F64)[0] = 1; }),
              testing::StartsWith("[setitem] the elements of a temporary tensor would change"));
  expect_values(x, {1, 2, 3});
  x.expand({3}).assign(x + 1);  // every element at one place
  expect_values(x, {2, 3, 4});
}

TEST(Views, PartsOfLeavesChangeOnlyWhereNoGradientsAreRecorded) {
  Tensor w = counting({2, 2}).requires_grad_();
  const std::string refusal =
      "a leaf that requires a gradient cannot be changed in part: change a copy (x * 1), assign() "
      "all of it, or change it while no gradients are recorded (no_grad)";
  Tensor row = w[0];
  EXPECT_EQ(error_of([&] { w[0] = 1; }), "[setitem] " + refusal);
  EXPECT_EQ(error_of([&] { row[0] = 1; }), "[setitem] " + refusal);
  EXPECT_EQ(error_of([&] { w.reshape({4}).assign(1); }), "[assign] " + refusal);
  {
    const NoGradScope scope;
    w[0] = 5;
    w[{1}].assign(7);
    row += 1;
  }
  w.detach()[{1, 1}] = 0;
  expect_values(w, {6, 6, 7, 0});
  EXPECT_TRUE(w.requires_grad());
  (w * w).sum().backward();
  expect_values(w.grad(), {12, 12, 14, 0});
  w.zero_grad();
  (row * 3).sum().backward();
  expect_values(w.grad(), {3, 3, 0, 0});
}

TEST(Views, GradientsFlowThroughWrites) {
  const Tensor w = Tensor::from({1.f, 2.f}).requires_grad_();
  Tensor x = Tensor::zeros({2, 2});
  const Tensor first = x[0];
  x.transpose()[1].assign(w * 3);
  (first * Tensor::from({1.f, 10.f})).sum().backward();
  expect_values(w.grad(), {30, 0});
  Tensor y = w * 2;
  Tensor(w).zero_grad();
  {
    const NoGradScope scope;
    y[0] = 5;  // the others keep their history
    y[Slice(0, 1)] += 1;
  }
  expect_values(y, {6, 4});
  y.sum().backward();
  expect_values(w.grad(), {0, 2});
}

TEST(Views, OfABaseThatIsGoneAreAssignedAValueWithoutGradients) {
  const Tensor w = Tensor::from({1.f, 2.f}).requires_grad_();
  Tensor base = Tensor::zeros({4}), part = base[Slice(0, 2)];
  const Tensor other = base[Slice(2, 4)];
  base = Tensor();
  {
    const NoGradScope scope;
    part.assign(w);
  }
  (part * w).sum().backward();
  expect_values(w.grad(), {1, 2});
}

TEST(Views, DetachedOnesHaveTheGradientsOfWhatTheyWereGiven) {
  const Tensor w = Tensor::from({1.f, 2.f}).requires_grad_();
  const Tensor x = w * 3;
  Tensor y = x.detach();
  const Tensor first = y[0];
  y += w;
  expect_values(x, {4, 8});
  (y * 10 + first).sum().backward();
  expect_values(w.grad(), {12, 10});
  Tensor(w).zero_grad();
  (x.sum() + w.sum() * 0).backward();
  expect_values(w.grad(), {0, 0});
}

TEST(Views, MayBeLeaves) {
  Tensor flat = counting({4});
  Tensor w = flat.slice(0, {0, 2}).requires_grad_(), b = flat.slice(0, {2, 4}).requires_grad_();
  (w * b).sum().backward();
  expect_values(w.grad(), {2, 3});
  w.assign(w - w.grad());
  expect_values(flat, {-2, -2, 2, 3});
  w.zero_grad();
  b.zero_grad();
  flat *= 2;
  (w * b).sum().backward();
  expect_values(w.grad(), {4, 6});
  expect_values(b.grad(), {-4, -4});
}

TEST(Views, OnTheSameDeviceToIsTheTensorItself) {
  Tensor stored = counting({2}), zeros = Tensor::zeros({2});
  for (Tensor& x : std::vector{stored, zeros}) {
    Tensor same = x.to(x.device());
    same += 1;
    expect_values(x, values(same));
  }
  expect_values(zeros, {1, 1});
}

// Whether two parts of a tensor may show one element, by the session.
bool may_overlap(const Tensor& a, const Tensor& b) {
  engine::Session& session = engine::Session::current();
  const engine::Session::Lock lock(session);
  return session.may_overlap(*tensor::state_of(a), *tensor::state_of(b));
}

TEST(Views, OverlapWhereTheyShowTheSameElements) {
  const Tensor x = counting({2, 4});
  EXPECT_FALSE(may_overlap(x.reshape({4, 2})[0], x.reshape({4, 2})[1]));
  EXPECT_FALSE(may_overlap(x.transpose().reshape({8}).slice(0, {0, 3}),
                           x.transpose().reshape({8}).slice(0, {3, 8})));
  EXPECT_FALSE(may_overlap(x.slice(1, Slice({}, {}, 2)), x.slice(1, Slice(1, {}, -2)).flip(1)));
  EXPECT_FALSE(may_overlap(x.reshape({2, 2, 2}).diagonal(), x.slice(1, {2, 4})[0]));
  EXPECT_FALSE(may_overlap(x.slice(0, {1, 1}), x));
  EXPECT_FALSE(may_overlap(x, counting({2, 4})));
  EXPECT_TRUE(may_overlap(x.reshape({4, 2})[1], x[{0, Slice(2, 3)}]));
  EXPECT_TRUE(may_overlap(x.detach()[0], x));
  EXPECT_TRUE(may_overlap(x[0].expand({3, 4})[2], x.expand({3, 2, 4})[{0, 0}]));
}

TEST(Views, OverlapIsDecidedForAlmostAllParts) {
  using namespace view_program;
  int decided = 0, undecided = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const std::vector<Shape> shapes = {{3, 4}, {2, 3, 2}};
    Options options;
    options.actions = 12;
    options.realizes = false;
    std::vector<Tensor> tensors;
    std::vector<Places> places;
    for (const Shape& shape : shapes) {
      tensors.push_back(counting(shape));
      places.push_back(Places::of(std::vector<double>(12), shape));
    }
    std::vector<Action> views = make(seed, shapes, options);
    std::erase_if(views, [](const Action& a) { return a.kind != Action::Kind::View; });
    perform(views, tensors, Tensor());
    perform(views, places, {});
    for (size_t a = 0; a < tensors.size(); ++a)
      for (size_t b = 0; b < a; ++b) {
        const bool overlap =
            places[a].root == places[b].root &&
            std::ranges::find_first_of(places[a].at, places[b].at) != places[a].at.end();
        const bool found = may_overlap(tensors[a], tensors[b]);
        ASSERT_TRUE(found || !overlap) << "seed " << seed << ":\n"
                                       << view_program::to_string(views);
        ++(found == overlap ? decided : undecided);
      }
  }
  EXPECT_GT(decided, 400);
  EXPECT_LT(undecided * 100, decided) << undecided;
}

TEST(Views, RandomPrograms) {
  using namespace view_program;
  const char* const count = std::getenv("PLUGRAD_TEST_COUNT");
  const char* const seed = std::getenv("PLUGRAD_TEST_SEED");
  const int begin = seed ? std::atoi(seed) : 0, programs = count ? std::atoi(count) : 150;
  for (int i = begin; i < begin + programs && !testing::Test::HasFailure(); ++i) {
    const std::vector<Shape> shapes = {{3, 4}, {2, 3, 2}};
    Options options;
    options.actions = static_cast<size_t>(3 + i % 14);
    const std::vector<Action> actions = make(static_cast<uint32_t>(i), shapes, options);
    SCOPED_TRACE(fmt::format("seed {}:\n{}", i, view_program::to_string(actions)));
    const std::vector<double> start(12, 1.0), numbers = {2.0, -1.0, 3.0};
    const Tensor leaf = Tensor::from(numbers).requires_grad_();
    std::vector<Tensor> tensors;
    std::vector<Places> places;
    for (const Shape& shape : shapes) {
      tensors.push_back(Tensor::from(start, shape));
      places.push_back(Places::of(start, shape));
    }
    for (size_t action = 0; action < actions.size(); ++action) {
      perform({actions[action]}, tensors, leaf);
      perform({actions[action]}, places, numbers);
      if (action % 5 == 4) engine::Session::current().collect();
    }
    for (size_t t = 0; t < tensors.size(); ++t) {
      if (!tensors[t].defined()) continue;
      EXPECT_EQ(values(tensors[t]), places[t].values()) << "tensor " << t;
    }
    const Element expected = weighted_sum(places);
    const Tensor sum = weighted_sum(tensors, detached(places)) + leaf.sum() * 0.0;
    EXPECT_EQ(values(sum), std::vector{expected.value});
    sum.backward();
    EXPECT_EQ(values(leaf.grad()), std::vector(expected.slope, expected.slope + kLeaf));
  }
}

}  // namespace
}  // namespace plugrad

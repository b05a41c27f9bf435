// Composed functions copy what they recorded for operands of the same kinds: the copies have the
// nodes that recording gives, and nothing that decides them is left out of the comparison.
#include "tensor/recording/remembered.h"

#include <gtest/gtest.h>

#include <functional>

#include "engine/session_state.h"
#include "plugrad/functional.h"
#include "plugrad/no_grad.h"
#include "tensor/handles.h"

namespace plugrad {
namespace {

using Floats = std::vector<float>;

Tensor square(float first) {
  return Tensor::from(Floats{first, first + 5, first - 2, first + 1}, {2, 2});
}

uint64_t copies() {
  engine::Session& session = engine::Session::current();
  const engine::Session::Lock lock(session);
  return session.statistics().recordings_copied;
}

Id node_of(const Tensor& tensor) {
  return tensor::state_of(tensor)->node;
}

using Binary = std::function<Tensor(const Tensor&, const Tensor&)>;

const std::vector<std::pair<const char*, Binary>>& functions() {
  static const std::vector<std::pair<const char*, Binary>> all = {
      {"matmul", [](const Tensor& x, const Tensor& y) { return matmul(x, y); }},
      {"matmul in f64", [](const Tensor& x, const Tensor& y) { return x.matmul(y, DType::F64); }},
      {"cat", [](const Tensor& x, const Tensor& y) { return cat({x, y}); }},
      {"cat of columns", [](const Tensor& x, const Tensor& y) { return cat({x, y, x}, 1); }},
      {"values", [](const Tensor& x, const Tensor&) { return x.sort(0).first; }},
      {"order", [](const Tensor&, const Tensor& y) { return y.sort(0, true).second; }},
      {"argsort", [](const Tensor& x, const Tensor&) { return x.argsort(); }},
      {"topk", [](const Tensor& x, const Tensor&) { return x.topk(1).first; }},
  };
  return all;
}

TEST(Remembered, ACopyHasTheNodesOfTheRecording) {
  for (const auto& [name, function] : functions()) {
    const Tensor x = square(1), y = square(7);
    const Tensor recorded = function(x, y);
    for (int i = 0; i < 2; ++i) function(square(2), square(3));
    const uint64_t before = copies();
    const Tensor copied = function(x, y);
    EXPECT_EQ(copies(), before + 1) << name;
    EXPECT_EQ(node_of(copied), node_of(recorded)) << name;
  }
}

TEST(Remembered, ACallThatComesOnceIsNotKept) {
  const uint64_t before = copies();
  const Tensor wide = cat({Tensor::from(Floats(37)), Tensor::from(Floats(3))});
  EXPECT_EQ(wide.numel(), 40);
  cat({Tensor::from(Floats(37)), Tensor::from(Floats(3))});
  EXPECT_EQ(copies(), before);
}

TEST(Remembered, OperandsThatAreOneTensorAreToldApart) {
  const Tensor x = Tensor::from(Floats{1, 2, 3, 4, 5}), y = Tensor::from(Floats{6, 7, 8, 9, 0});
  for (int i = 0; i < 3; ++i)  // remembered before the others come
    EXPECT_EQ(cat({x, x}).to_vector<float>(), (Floats{1, 2, 3, 4, 5, 1, 2, 3, 4, 5}));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(cat({x, y}).to_vector<float>(), (Floats{1, 2, 3, 4, 5, 6, 7, 8, 9, 0}));
    EXPECT_EQ(cat({y, x}).to_vector<float>(), (Floats{6, 7, 8, 9, 0, 1, 2, 3, 4, 5}));
  }
}

TEST(Remembered, ShapesDtypesAndOptionsAreToldApart) {
  const Tensor flat = Tensor::from(Floats{3, 1, 2, 0}),
               whole = Tensor::from(std::vector{3, 1, 2, 0});
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(flat.sort().first.to_vector<float>(), (Floats{0, 1, 2, 3}));
    EXPECT_EQ(flat.sort(0, true).first.to_vector<float>(), (Floats{3, 2, 1, 0}));
    EXPECT_EQ(whole.sort().first.to_vector<int>(), (std::vector{0, 1, 2, 3}));
    EXPECT_EQ(square(3).sort().first.to_vector<float>(), (Floats{3, 8, 1, 4}));
    EXPECT_EQ(square(3).sort(0).first.to_vector<float>(), (Floats{1, 4, 3, 8}));
  }
}

TEST(Remembered, AnOperandThatIsNotStoredYetIsComputed) {
  for (int i = 0; i < 4; ++i) {
    const auto first = static_cast<float>(i);
    const Tensor x = square(first), y = x * 2.0 + 1.0;
    square(first).sort();
    EXPECT_EQ(y.sort().first.to_vector<float>(),
              (Floats{2 * first + 1, 2 * first + 11, 2 * first - 3, 2 * first + 3}));
    matmul(square(1), square(2));
    const Tensor unit = Tensor::from(Floats{1, 0, 0, 1}, {2, 2});
    EXPECT_EQ(matmul(y, unit).to_vector<float>(), y.to_vector<float>());
    EXPECT_EQ(cat({y, x}).slice(0, Slice(0, 2)).to_vector<float>(), y.to_vector<float>());
  }
}

TEST(Remembered, GradientsFlowThroughCopies) {
  for (int i = 0; i < 4; ++i) {
    {
      const NoGradScope scope;
      matmul(square(1), square(2));
    }
    const Tensor x = square(1).requires_grad_(), y = square(7);
    const Tensor dx = gradient(matmul(x, y).sum(), {x})[0];
    EXPECT_EQ(dx.to_vector<float>(), (Floats{19, 13, 19, 13}));
    const Tensor dc = gradient((cat({x, y}) * cat({y, y})).sum(), {x})[0];
    EXPECT_EQ(dc.to_vector<float>(), y.to_vector<float>());
  }
}

TEST(Remembered, AssignedElementsFollowTheirIndicesAndNumbers) {
  for (int i = 0; i < 8; ++i) {
    Tensor x = square(1);
    const Tensor shown = x[1];
    x[i % 2] = 4.0 + i % 4;
    Floats expected = {1, 6, -1, 2};
    for (size_t at = 0; at < 2; ++at)
      expected[static_cast<size_t>(i % 2) * 2 + at] = 4.0F + static_cast<float>(i % 4);
    EXPECT_EQ(x.to_vector<float>(), expected);
    EXPECT_EQ(shown.to_vector<float>(), Floats(expected.begin() + 2, expected.end()));
  }
}

TEST(Remembered, RandomNumbersAreThoseOfTheirKey) {
  Tensor::manual_seed(3);
  std::vector<Floats> first, again;
  for (int i = 0; i < 5; ++i) first.push_back(Tensor::randn({2, 3}).to_vector<float>());
  Tensor::manual_seed(3);
  for (int i = 0; i < 5; ++i) again.push_back(Tensor::randn({2, 3}).to_vector<float>());
  EXPECT_EQ(first, again);
  for (size_t i = 1; i < first.size(); ++i) EXPECT_NE(first[0], first[i]);
}

}  // namespace
}  // namespace plugrad

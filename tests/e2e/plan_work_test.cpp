// Planning visits a bounded number of nodes per node of the graph, for programs of any length. The
// bounds are a third above the CPU's counts.
#include <gtest/gtest.h>

#include <functional>

#include "engine/session.h"
#include "plugrad/nn.h"
#include "plugrad/optim.h"
#include "plugrad/plugrad.h"
#include "tensor/handles.h"

namespace plugrad {
namespace {

using Tensors = std::vector<Tensor>;
using Program = std::function<Tensors(int64_t n)>;

std::vector<engine::TensorState*> states_of(const Tensors& results) {
  std::vector<engine::TensorState*> states;
  for (const Tensor& result : results) states.push_back(tensor::state_of(result).get());
  return states;
}

/// Nodes visited when planning the program of size n, per node of its graph.
double visits_a_node(const Program& program, int64_t n) {
  engine::Session& session = engine::Session::current();
  const Tensors results = program(n);
  const std::vector<engine::TensorState*> states = states_of(results);
  const engine::Statistics before = session.statistics();
  session.planned_kernels_of(states);
  const engine::Statistics after = session.statistics();
  return static_cast<double>(after.planning_visits - before.planning_visits) /
         static_cast<double>(after.planned_nodes - before.planned_nodes);
}

void expect_linear(const Program& program, int64_t n, double most_a_node) {
  for (int64_t size : {n / 4, n / 2, n})
    EXPECT_LE(visits_a_node(program, size), most_a_node) << "n = " << size;
}

/// The number of kernels does not grow with the number of parts.
void expect_kernels(const Program& program, int64_t n, size_t most) {
  for (int64_t size : {n / 4, n}) {
    const Tensors results = program(size);
    EXPECT_LE(engine::Session::current().planned_kernels_of(states_of(results)).size(), most)
        << "n = " << size;
  }
}

Tensor stored(int64_t salt, const Shape& shape = {4}) {
  std::vector<float> values(static_cast<size_t>(element_count(shape)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((static_cast<int64_t>(i) * 7 + salt) % 11);
  return Tensor::from(values, shape);
}

Tensors stored_values(int64_t n, const Shape& shape = {4}) {
  Tensors values;
  for (int64_t i = 0; i < n; ++i) values.push_back(stored(i, shape));
  return values;
}

Tensor sum_of(const Tensors& terms) {
  Tensor sum = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) sum = sum + terms[i];
  return sum;
}

// Joins.

TEST(PlanWork, CatOfStoredValues) {
  expect_linear([](int64_t n) { return Tensors{cat(stored_values(n))}; }, 1000, 30);
}

TEST(PlanWork, CatOfComputedValues) {
  const auto program = [](int64_t n) {
    const Tensor x = stored(0, {n, 4});
    Tensors parts;
    for (int64_t i = 0; i < n; ++i) parts.push_back(x[i] * static_cast<double>(i) + 1.0);
    return Tensors{cat(parts)};
  };
  expect_linear(program, 5000, 3);
}

TEST(PlanWork, StackOfTheStatesOfACell) {
  const auto program = [](int64_t n) {
    const nn::LSTMCell cell(4, 6);
    const Tensor x = stored(0, {2, n, 4});
    nn::LSTMCell::State state;
    Tensors states;
    for (int64_t i = 0; i < n; ++i) {
      state = cell(x[{Slice(), i}], state);
      states.push_back(state.h);
    }
    return Tensors{stack(states, 1)};
  };
  expect_linear(program, 256, 70);
}

TEST(PlanWork, GradientOfACatByItsParts) {
  const auto program = [](int64_t n) {
    Tensors parts = stored_values(n);
    return gradient((cat(parts) * stored(3, {4 * n})).sum(), parts);
  };
  expect_linear(program, 1000, 100);
}

TEST(PlanWork, GradientOfACatOfSlices) {
  const auto program = [](int64_t n) {
    const Tensor x = stored(0, {n, 4});
    Tensors parts;
    for (int64_t i = 0; i < n; ++i) parts.push_back(x[i] * static_cast<double>(i) + 1.0);
    return gradient(cat(parts).square().sum(), {x});
  };
  expect_linear(program, 5000, 4);
  expect_kernels(program, 5000, 2);
}

TEST(PlanWork, GradientOfRowsInAnyOrder) {
  const auto program = [](int64_t n) {
    const Tensor x = stored(0, {n, 4});
    Tensor loss(0.0);
    for (int64_t i = 0; i < n; ++i) loss = loss + (x[i] * x[(i * 7 + 3) % n]).sum();
    return gradient(loss, {x});
  };
  expect_linear(program, 1000, 9);
}

TEST(PlanWork, GradientOfColumns) {
  const auto program = [](int64_t n) {
    const Tensor x = stored(0, {4, n});
    Tensors columns;
    for (int64_t i = 0; i < n; ++i)
      columns.push_back((x[{Slice(), i}] * (1.0 + static_cast<double>(i))).tanh());
    return gradient(stack(columns, 1).sum(), {x});
  };
  expect_linear(program, 1000, 4);
  expect_kernels(program, 1000, 2);
}

// Chains.

TEST(PlanWork, ChainsOfProducts) {
  const auto program = [](int64_t n) {
    Tensor x = stored(0), y = x;
    for (int64_t i = 0; i < n; ++i) y = y * 0.999 + x;
    return Tensors{y};
  };
  expect_linear(program, 10'000, 35);
}

TEST(PlanWork, ChainsOfReductions) {
  const auto program = [](int64_t n) {
    Tensor y = stored(0, {4, 4});
    for (int64_t i = 0; i < n; ++i) y = y - y.max(1, true);
    return Tensors{y};
  };
  expect_linear(program, 4'000, 300);
}

TEST(PlanWork, ChainsOfViews) {
  const auto program = [](int64_t n) {
    Tensor y = stored(0, {3, 5});
    for (int64_t i = 0; i < n; ++i) y = y.permute({1, 0}).reshape({3, 5});
    return Tensors{y + 1};
  };
  expect_linear(program, 10'000, 25);
}

TEST(PlanWork, GradientsOfChains) {
  const auto program = [](int64_t n) {
    const Tensor x = stored(0);
    Tensor y = x;
    for (int64_t i = 0; i < n; ++i) y = (y * 0.999).sin() + x;
    return gradient(y.sum(), {x});
  };
  expect_linear(program, 2'000, 120);
}

TEST(PlanWork, AssignmentsToElements) {
  const auto program = [](int64_t n) {
    Tensor x = stored(0).contiguous();
    for (int64_t i = 0; i < n; ++i) x[i % 4] = x[(i + 1) % 4] + 1.0;
    return Tensors{x};
  };
  expect_linear(program, 1'000, 100);
}

TEST(PlanWork, AssignmentsToRows) {
  const auto program = [](int64_t n) {
    Tensor x = stored(0, {8, 4}).contiguous();
    for (int64_t i = 0; i < n; ++i) x[i % 8] = x[(i * 3 + 1) % 8].sin() + x[(i + 5) % 8];
    return Tensors{x};
  };
  expect_linear(program, 1'000, 1200);
}

// Fans.

TEST(PlanWork, ReadersOfOneValue) {
  const auto program = [](int64_t n) {
    const Tensor x = stored(0, {16}).exp();
    Tensors readers;
    for (int64_t i = 0; i < n; ++i) readers.push_back(x.roll(i % 16, 0) * (i + 1));
    return readers;
  };
  expect_linear(program, 1'000, 85);
}

TEST(PlanWork, ReadersOfOneSum) {
  const auto program = [](int64_t n) {
    const Tensor x = stored(0, {16, 8}).sum(1);
    Tensors readers;
    for (int64_t i = 0; i < n; ++i) readers.push_back(x * (i + 1));
    return Tensors{sum_of(readers)};
  };
  expect_linear(program, 1'000, 30);
}

TEST(PlanWork, ReadersOfOneValueThatAreReducedAlone) {
  const auto program = [](int64_t n) {
    const Tensor x = stored(0, {16, 8}).exp();
    Tensors readers;
    for (int64_t i = 0; i < n; ++i) readers.push_back((x * (i + 1)).max(1));
    return readers;
  };
  expect_linear(program, 1'000, 30);
}

TEST(PlanWork, SumsOfStoredValues) {
  expect_linear([](int64_t n) { return Tensors{sum_of(stored_values(n))}; }, 4'000, 25);
}

TEST(PlanWork, SumsOfReductions) {
  const auto program = [](int64_t n) {
    Tensors terms;
    for (int64_t i = 0; i < n; ++i) terms.push_back(stored(i, {4, 8}).max(1));
    return Tensors{sum_of(terms)};
  };
  expect_linear(program, 1'000, 28);
}

TEST(PlanWork, SumsOfProductsOfMatrices) {
  const auto program = [](int64_t n) {
    Tensors terms;
    for (int64_t i = 0; i < n; ++i)
      terms.push_back(matmul(stored(i, {4, 8}), stored(i + 1, {8, 6})).relu());
    return Tensors{sum_of(terms)};
  };
  expect_linear(program, 1'000, 120);
}

// Networks.

TEST(PlanWork, TrainingOfAnUnrolledCell) {
  const auto program = [](int64_t n) {
    nn::LSTMCell cell(4, 6);
    const Tensors weights = nn::parameters(cell);
    const Tensor x = stored(0, {2, n, 4});
    nn::LSTMCell::State state;
    for (int64_t i = 0; i < n; ++i) state = cell(x[{Slice(), i}], state);
    return gradient(state.h.square().mean(), weights);
  };
  expect_linear(program, 128, 125);
}

TEST(PlanWork, StepsOfAnOptimiser) {
  const auto program = [](int64_t n) {
    Tensors weights, steps;
    for (int64_t i = 0; i < n; ++i) weights.push_back(stored(i, {8}));
    Tensor loss = Tensor(0.0);
    for (const Tensor& w : weights) loss = loss + w.square().sum();
    const Tensors slopes = gradient(loss, weights);
    Tensor norm = Tensor(0.0);
    for (const Tensor& slope : slopes) norm = norm + slope.square().sum();
    for (size_t i = 0; i < weights.size(); ++i)
      steps.push_back(weights[i] - slopes[i] / (norm.sqrt() + 1.0));
    return steps;
  };
  expect_linear(program, 1'000, 40);
}

}  // namespace
}  // namespace plugrad

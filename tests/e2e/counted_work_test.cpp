// No kernel computes a value many times: the operations of a plan are about those of the same program
// with every part stored.
#include <gtest/gtest.h>

#include "plugrad/functional.h"
#include "plugrad/gradient.h"
#include "plugrad/indexed.h"
#include "plugrad/kernel.h"
#include "plugrad/tensor.h"

namespace plugrad {
namespace {

constexpr int64_t kSizes[] = {2, 3, 5, 8, 17, 40};

int64_t operations(const Tensor& x) {
  int64_t sum = 0;
  for (const Kernel& kernel : x.schedule()) sum += kernel.flops();
  return sum;
}

void expect_about(const Tensor& x, int64_t base) {
  EXPECT_LE(4 * operations(x), 5 * base + 4 * 4096) << base;
}

/// `make` records the program; its argument is applied to each part.
template <class Make>
void expect_each_part_once(Make make) {
  const int64_t stored = operations(make([](const Tensor& part) { return part.contiguous(); }));
  expect_about(make([](const Tensor& part) { return part; }), stored);
}

Tensor values(const Shape& shape) {
  return Tensor::rand(shape).realize();
}

TEST(CountedWork, OfStackedProducts) {
  for (const int64_t count : kSizes) {
    const Tensor x = values({count, 25, 40}), weight = values({40, 5});
    expect_each_part_once([&](auto part) {
      std::vector<Tensor> parts;
      for (int64_t i = 0; i < count; ++i) parts.push_back(part(x[i].matmul(weight)));
      return stack(parts);
    });
  }
}

TEST(CountedWork, OfStackedSteps) {
  for (const int64_t count : kSizes) {
    const Tensor x = values({count, 4, 16}), weight = values({16, 16});
    expect_each_part_once([&](auto part) {
      std::vector<Tensor> steps = {x[0]};
      for (int64_t i = 1; i < count; ++i)
        steps.push_back(part((x[i] + steps.back().matmul(weight)).tanh()));
      return stack(steps);
    });
  }
}

TEST(CountedWork, OfRowsThatAreReplaced) {
  for (const int64_t rows : kSizes) {
    const Tensor x = values({512, 32}), h = values({512, 32}), weight = values({32, 32});
    expect_each_part_once([&](auto part) {
      Tensor y = x * 1.5;
      y[Slice(0, rows)] = part(h[Slice(0, rows)].matmul(weight));
      return y;
    });
  }
}

TEST(CountedWork, OfMeansOfParts) {
  for (const int64_t count : kSizes) {
    const Tensor x = values({count * 32, 128});
    expect_each_part_once([&](auto part) {
      std::vector<Tensor> means;
      for (int64_t i = 0; i < count; ++i)
        means.push_back(part(x[Slice(32 * i, 32 * i + 32)].exp().mean(0)));
      return stack(means);
    });
  }
}

// Both reads of a table have gradients of the same shape, which are added before they reach it.
TEST(CountedWork, OfTheGradientOfATableThatIsReadTwice) {
  for (const int64_t rows : {40, 400, 2000}) {
    const Tensor table = values({rows, 8});
    const Tensor from = Tensor::randint({3 * rows}, 0, rows).realize();
    const Tensor to = Tensor::randint({3 * rows}, 0, rows).realize();
    const auto gradient_of = [&](bool twice) {
      Tensor w = table.detach().requires_grad_();
      const Tensor edges = twice ? w.index({from}) - w.index({to}) : w.index({from});
      edges.square().sum().backward();
      return w.grad();
    };
    expect_about(gradient_of(true), 2 * operations(gradient_of(false)) + 8 * 3 * rows * 8);
    // Each edge adds 2 (t_from - t_to) to one row and subtracts it from another.
    const std::vector<float> t = table.to_vector<float>();
    const std::vector<int32_t> f = from.to_vector<int32_t>(), g = to.to_vector<int32_t>();
    std::vector<double> expected(t.size(), 0);
    for (size_t i = 0; i < f.size(); ++i)
      for (size_t c = 0; c < 8; ++c) {
        const size_t a = static_cast<size_t>(f[i]) * 8 + c, b = static_cast<size_t>(g[i]) * 8 + c;
        const double change = 2.0 * (double{t[a]} - double{t[b]});
        expected[a] += change;
        expected[b] -= change;
      }
    const std::vector<float> got = gradient_of(true).to_vector<float>();
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-4) << i;
  }
}

}  // namespace
}  // namespace plugrad

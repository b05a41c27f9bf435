// No kernel computes a value many times: the operations of a plan are about those of the same program
// with every part stored. The executed operations are counted on lowered kernels; the sums by hand
// below prove the count.
#include <gtest/gtest.h>

#include "base/settings.h"
#include "engine/session.h"
#include "plugrad/functional.h"
#include "plugrad/gradient.h"
#include "plugrad/indexed.h"
#include "plugrad/kernel.h"
#include "plugrad/nn.h"
#include "plugrad/tensor.h"
#include "tensor/handles.h"

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
  std::vector<float> data(static_cast<size_t>(element_count(shape)));
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i % 101) / 101.0f;
  return Tensor::from(data, shape);
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

// A few reads at other places hide behind the memory that the sum moves; many do not.
TEST(CountedWork, OfShiftedReads) {
  for (const int64_t count : {17, 40}) {
    const Tensor x = values({20000 + count});
    expect_each_part_once([&](auto part) {
      const Tensor each = part(x.exp());
      Tensor sum = each[Slice(0, 20000)];
      for (int64_t i = 1; i < count; ++i) sum = sum + each[Slice(i, 20000 + i)];
      return sum;
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

engine::PlanWork work_of(const Tensor& x) {
  engine::TensorState* state = tensor::state_of(x).get();
  engine::PlanWork work;
  engine::Session::current().kernels_of(std::span(&state, 1), &work);
  return work;
}

/// Plain loops execute exactly this. A schedule may add sums of lanes and overlapping vectors, and
/// needs no addition for the first term of a loop that it unrolls.
void expect_work(const Tensor& x, int64_t executed, int64_t graph) {
  {
    const SettingScope plain([](Settings& s) { s.noopt = true; });
    EXPECT_EQ(work_of(x).executed, executed);
    EXPECT_EQ(work_of(x).graph, graph);
  }
  EXPECT_GE(4 * work_of(x).executed, 3 * executed);
  EXPECT_LE(4 * work_of(x).executed, 5 * executed + 4 * 4096);
}

/// Each part has a loop of its own; one that selects among all would execute 2 * count operations for
/// an element.
TEST(CountedWork, OfStoredParts) {
  for (const int64_t count : {9, 17, 40, 42, 60})
    for (const int64_t axis : {0, 1, 2}) {
      std::vector<Tensor> parts;
      for (int64_t i = 0; i < count; ++i)
        parts.push_back((values({3, 5, 8}) + static_cast<double>(i)).contiguous().realize());
      const Tensor joined = cat(parts, axis);
      EXPECT_LE(work_of(joined).executed, 2 * joined.numel()) << count << " on axis " << axis;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t length = parts[0].size(axis);
        EXPECT_EQ(joined.slice(axis, Slice(i * length, (i + 1) * length)).to_vector<float>(),
                  parts[static_cast<size_t>(i)].to_vector<float>());
      }
    }
}

TEST(CountedWork, Elementwise) {
  for (const int64_t n : {1, 7, 64, 1003, 100000}) {
    const Tensor x = values({n}), y = values({n}), i = Tensor::randint({n}, 1, 9).realize();
    expect_work(x + y, n, n);
    expect_work((x + y) * x - y, 3 * n, 3 * n);
    expect_work(x / y, 4 * n, 4 * n);  // by the weight of a division
    expect_work(x.exp2(), 8 * n, 8 * n);
    expect_work((i ^ (i * 5)) + 1, 3 * n, 3 * n);
    expect_work(x.cast(DType::F64), 0, 0);
  }
}

TEST(CountedWork, Products) {
  for (const auto& [m, k, n] : {std::array<int64_t, 3>{3, 5, 8}, {64, 64, 64}, {65, 33, 136}})
    expect_work(values({m, k}).matmul(values({k, n})), 2 * m * k * n, 2 * m * k * n);
}

// Rows of 100: a maximum, a difference, an exponential, a sum, the inverse of the sum and a product.
TEST(CountedWork, Softmax) {
  const engine::PlanWork work = work_of(values({40, 100}).softmax(1));
  EXPECT_EQ(work.graph, 40 * (100 * (1 + 1 + 8 + 1 + 1) + 4));
}

// Addresses are free: a gather computes nothing but its indices, in which negative ones count from
// the end. Its gradient adds each term once; there the choice of an index is address arithmetic.
TEST(CountedWork, Indexed) {
  const int64_t rows = 3000, count = 5000, wrap = 3 * count;
  const Tensor table = values({rows, 8}).requires_grad_();
  const Tensor at = Tensor::randint({count}, 0, rows).realize();
  expect_work(table.index({at}), wrap, wrap + count * 8);
  expect_work(table.index({at}) + 1.0, wrap + count * 8, wrap + 2 * count * 8);
  (table.index({at}) * values({count, 8})).sum().backward();
  expect_work(table.grad(), wrap - count + count * 8, wrap + count * 8);
}

// Loops that are cut count the iterations that they run: at the borders 2 of 3 rows and columns.
TEST(CountedWork, Convolutions) {
  const int64_t pairs = 2 * 8 * 8, terms = 28 * 3, inside = terms - 2;
  const Tensor x = values({2, 8, 28, 28}), weight = values({8, 8, 3, 3});
  expect_work(x.conv2d(weight, {}, {.padding = 1}), 2 * pairs * inside * inside,
              2 * pairs * terms * terms);
}

// The rounds of a counter give two words, of elements half the tensor apart, which one iteration
// stores; of an odd number of elements, one is drawn alone.
TEST(CountedWork, RandomNumbers) {
  const auto drawn = [](const Shape& shape) {
    Tensor::manual_seed(5);
    return Tensor::rand(shape) * values({shape.back()});
  };
  for (const Shape& shape : {Shape{1000}, {1001}, {96, 50}, {95, 51}, {64, 3, 7}}) {
    const SettingScope every([](Settings& s) { s.noopt = true; });
    const int64_t all = work_of(drawn(shape)).executed;
    const std::vector<float> expected = drawn(shape).to_vector<float>();
    const SettingScope halves([](Settings& s) { s.noopt = false; });
    EXPECT_EQ(drawn(shape).to_vector<float>(), expected) << element_count(shape);
    const bool is_even = shape[0] % 2 == 0 || shape.size() == 1;
    if (is_even) {
      EXPECT_LE(10 * work_of(drawn(shape)).executed, 7 * all) << element_count(shape);
    }
  }
}

}  // namespace
}  // namespace plugrad

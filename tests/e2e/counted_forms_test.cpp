// No kernel computes a value many times: of each form, for many sizes and with gradients, a plan
// executes at most 1.25 times the operations of its graph with each node computed once, a launch's
// worth more, and what hides behind the memory that its kernels move; with what schedules repeat,
// which depends on the processor, twice as many.
//   pgr_test_e2e_plan_work --gtest_filter=CountedForms.*    with PLUGRAD_REPORT=1: prints each form
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "base/settings.h"
#include "engine/session.h"
#include "plugrad/conv.h"
#include "plugrad/functional.h"
#include "plugrad/gradient.h"
#include "plugrad/indexed.h"
#include "plugrad/nn.h"
#include "plugrad/tensor.h"
#include "tensor/handles.h"

namespace plugrad {
namespace {

Tensor filled(const Shape& shape) {
  std::vector<float> data(static_cast<size_t>(element_count(shape)));
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i % 101) / 101.0f;
  return Tensor::from(data, shape);
}

engine::PlanWork work_of_all(const std::vector<Tensor>& results) {
  std::vector<engine::TensorState*> states;
  for (const Tensor& result : results) states.push_back(tensor::state_of(result).get());
  engine::PlanWork work;
  engine::Session::current().kernels_of(states, &work);
  return work;
}

/// A program of size n of one tensor.
struct Form {
  const char* name;
  std::function<Shape(int64_t)> shape;
  std::function<Tensor(const Tensor& x, int64_t n)> make;
};

Tensor sum_of_shifts(const Tensor& x, int64_t n) {
  const int64_t size = x.shape()[0] - n;
  Tensor sum = x[Slice(0, size)];
  for (int64_t i = 1; i < n; ++i) sum = sum + x[Slice(i, size + i)];
  return sum;
}

std::vector<Tensor> parts_of(int64_t n, const std::function<Tensor(int64_t)>& make) {
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < n; ++i) parts.push_back(make(i));
  return parts;
}

Shape long_vector(int64_t n) {
  return {20000 + n};
}
Shape few_rows(int64_t n) {
  return {n, 256};
}
Shape many_rows(int64_t n) {
  return {n, 4000};
}
Shape image(int64_t n) {
  return {1, 2, 20 + n, 20 + n};
}

// clang-format off
const Form kForms[] = {
    {"products of slices, joined", [](int64_t n) { return Shape{n, 25, 100}; },
     [](const Tensor& x, int64_t n) {
       const Tensor weight = filled({100, 5});
       return cat(parts_of(n, [&](int64_t i) { return x[i].matmul(weight); }));
     }},
    {"steps of a recurrence, stacked", [](int64_t n) { return Shape{n, 4, 16}; },
     [](const Tensor& x, int64_t n) {
       const Tensor weight = filled({16, 16});
       std::vector<Tensor> steps = {x[0]};
       for (int64_t i = 1; i < n; ++i) steps.push_back((x[i] + steps.back().matmul(weight)).tanh());
       return stack(steps);
     }},
    {"steps of a recurrence x[1:] = f(x[:-1])", long_vector,
     [](const Tensor& x, int64_t n) {
       Tensor u = x;
       for (int64_t i = 0; i < n; ++i) u = (u[Slice(1, {})] * 0.5 + u[Slice(0, -1)] * 0.25).tanh();
       return u;
     }},
    {"steps of a stencil", [](int64_t n) { return Shape{100 + n, 120}; },
     [](const Tensor& x, int64_t n) {
       Tensor u = x.tanh();
       for (int64_t step = 0; step < (n + 3) / 4; ++step) {
         const auto at = [&](int64_t row, int64_t column) {
           return u[{Slice(row, row + u.shape()[0] - 2), Slice(column, column + u.shape()[1] - 2)}];
         };
         u = (at(0, 1) + at(2, 1) + at(1, 0) + at(1, 2)) * 0.2 + at(1, 1) * 0.1;
       }
       return u;
     }},
    {"sum of shifted exp", long_vector,
     [](const Tensor& x, int64_t n) { return sum_of_shifts(x.exp(), n); }},
    {"sum of shifted sums of shifts", long_vector,
     [](const Tensor& x, int64_t n) { return sum_of_shifts(sum_of_shifts(x.sin(), n / 2).exp(), n / 2); }},
    {"mean over windows of exp", [](int64_t n) { return Shape{1, 1, 20000 + n}; },
     [](const Tensor& x, int64_t n) { return avg_pool1d(x.exp(), n, {.stride = 1}); }},
    {"windows of tanh times weights", long_vector,
     [](const Tensor& x, int64_t n) { return (x.tanh().unfold(0, n, 1) * filled({n})).sum(1); }},
    {"windows of tanh, elementwise", [](int64_t n) { return Shape{2000 + n}; },
     [](const Tensor& x, int64_t n) { return x.tanh().unfold(0, n, 1).sin(); }},
    {"maximum over 2d windows of exp", image,
     [](const Tensor& x, int64_t n) { return max_pool2d(x.exp(), std::min<int64_t>(n, 8), {.stride = 1}); }},
    {"overlapping pools of exp", image,
     [](const Tensor& x, int64_t) { return max_pool2d(x.exp(), 3, {.stride = 2}); }},
    {"convolution of exp", image,
     [](const Tensor& x, int64_t n) { return x.exp().conv2d(filled({4, 2, std::min<int64_t>(n, 7), std::min<int64_t>(n, 7)})); }},
    {"depthwise convolution of exp", image,
     [](const Tensor& x, int64_t) { return x.exp().conv2d(filled({2, 1, 3, 3}), {}, {.padding = 1, .groups = 2}); }},
    {"product of exp", [](int64_t n) { return Shape{30, 4 * n}; },
     [](const Tensor& x, int64_t n) { return x.exp().matmul(filled({4 * n, 40}).tanh()); }},
    {"product of a few columns", [](int64_t) { return Shape{300, 64}; },
     [](const Tensor& x, int64_t n) { return x.exp().matmul(filled({64, n})); }},
    {"means of exp of slices, stacked", [](int64_t n) { return Shape{32 * n, 256}; },
     [](const Tensor& x, int64_t n) {
       return stack(parts_of(n, [&](int64_t i) { return x[Slice(32 * i, 32 * i + 32)].exp().mean(0); }));
     }},
    {"product that replaces rows", [](int64_t) { return Shape{512, 32}; },
     [](const Tensor& x, int64_t n) {
       Tensor y = x * 1.5;
       y[Slice(0, n)] = x[Slice(0, n)].matmul(filled({32, 32}));
       return y;
     }},
    {"parts of exp, joined", many_rows,
     [](const Tensor& x, int64_t n) { return cat(parts_of(n, [&](int64_t i) { return (x[i] * static_cast<double>(i)).exp(); })); }},
    {"unlike parts, joined", many_rows,
     [](const Tensor& x, int64_t n) {
       return stack(parts_of(n, [&](int64_t i) { return i % 3 == 0 ? x[i].exp() : i % 3 == 1 ? x[i].sin() * 2.0 : x[i].tanh(); }));
     }},
    {"unlike parts of the same value, joined along columns", many_rows,
     [](const Tensor& x, int64_t n) {
       const Tensor y = x.exp();
       return cat(parts_of(n, [&](int64_t i) { return i % 2 == 0 ? y.sin() : (y + static_cast<double>(i)).tanh(); }), 1);
     }},
    {"one of two values by position", many_rows,
     [](const Tensor& x, int64_t n) {
       return where(Tensor::arange(0, x.shape()[1]) < 4000 / n, x.exp(), x.tanh());
     }},
    {"rows times exp of a vector", [](int64_t) { return Shape{256}; },
     [](const Tensor& x, int64_t n) { return filled({64 * n, 256}) * x.exp(); }},
    {"rows times tanh of tanh of a vector", [](int64_t) { return Shape{256}; },
     [](const Tensor& x, int64_t n) { return filled({64 * n, 256}) * x.tanh().sin().tanh(); }},
    {"columns times exp of a vector", [](int64_t n) { return Shape{64 * n, 1}; },
     [](const Tensor& x, int64_t n) { return filled({64 * n, 256}) * x.exp(); }},
    {"all pairs of two vectors", [](int64_t n) { return Shape{32 * n}; },
     [](const Tensor& x, int64_t) { return (x.exp().unsqueeze(1) - filled({300}).sin()).square(); }},
    {"sum over all pairs", [](int64_t n) { return Shape{16 * n}; },
     [](const Tensor& x, int64_t) { return (x.exp().unsqueeze(1) - x.sin()).square().sum(1); }},
    {"maximum over all pairs", [](int64_t n) { return Shape{16 * n, 3}; },
     [](const Tensor& x, int64_t) { return (x.exp().unsqueeze(1) - x.sin()).abs().sum(2).max(1); }},
    {"expanded vector", [](int64_t) { return Shape{512}; },
     [](const Tensor& x, int64_t n) { return x.tanh().expand({16 * n, 512}).contiguous(); }},
    {"repeated values", [](int64_t) { return Shape{1000}; },
     [](const Tensor& x, int64_t n) { return x.tanh().repeat({n}); }},
    {"interleaved values", [](int64_t) { return Shape{1000}; },
     [](const Tensor& x, int64_t n) { return x.tanh().repeat_interleave(n) * 2.0; }},
    {"padded exp", [](int64_t) { return Shape{30, 30}; },
     [](const Tensor& x, int64_t n) { return x.exp().pad({{n, n}, {n, n}}); }},
    {"reflected borders", [](int64_t n) { return Shape{60 + n}; },
     [](const Tensor& x, int64_t n) { return x.exp().pad({{n, n}}, PadMode::Reflect); }},
    {"running sum of exp", [](int64_t n) { return Shape{100 * n}; },
     [](const Tensor& x, int64_t) { return x.exp().cumsum(0); }},
    {"running sums of rows", few_rows,
     [](const Tensor& x, int64_t) { return x.exp().cumsum(1); }},
    {"rolled differences", long_vector,
     [](const Tensor& x, int64_t n) {
       Tensor y = x;
       for (int64_t i = 0; i < std::min<int64_t>(n, 8); ++i) y = (y - y.roll({1}, {0})).tanh();
       return y;
     }},
    {"flipped sums", long_vector, [](const Tensor& x, int64_t) { return x.exp() + x.exp().flip({0}); }},
    {"softmax", [](int64_t n) { return Shape{64 * n, 512}; },
     [](const Tensor& x, int64_t) { return x.softmax(1); }},
    {"softmax of columns", [](int64_t n) { return Shape{100, 64 * n}; },
     [](const Tensor& x, int64_t) { return x.softmax(0); }},
    {"softmax of one row", [](int64_t n) { return Shape{5000 * n}; },
     [](const Tensor& x, int64_t) { return x.softmax(0); }},
    {"layernorm", [](int64_t n) { return Shape{16 * n, 200}; },
     [](const Tensor& x, int64_t) { return x.layernorm(); }},
    {"norm of rows and columns", [](int64_t n) { return Shape{16 * n, 20 * n}; },
     [](const Tensor& x, int64_t) { return x.exp() / x.exp().sum(0) / x.exp().sum(1, true); }},
    {"attention", [](int64_t n) { return Shape{2, 8 * n, 16}; },
     [](const Tensor& x, int64_t) { return scaled_dot_product_attention(x, x * 0.5, x.sin()); }},
    {"pooling of pooling", image,
     [](const Tensor& x, int64_t) { return avg_pool2d(avg_pool2d(x.exp(), 3, {.stride = 1}), 3, {.stride = 1}); }},
    {"means of windows of means", [](int64_t n) { return Shape{n, 5000}; },
     [](const Tensor& x, int64_t n) { return (x.exp().mean(0).unfold(0, n, 1) * filled({n})).sum(1); }},
    {"windows of a product", [](int64_t n) { return Shape{200 + n, 16}; },
     [](const Tensor& x, int64_t n) { return x.matmul(filled({16, 8})).tanh().unfold(0, n, 1).sum(2); }},
    {"indexed exp", [](int64_t n) { return Shape{50 * n, 8}; },
     [](const Tensor& x, int64_t n) { return x.exp().index({Tensor::randint({400 * n}, 0, 50 * n).realize()}); }},
    {"indices that are computed", [](int64_t n) { return Shape{50 * n}; },
     [](const Tensor& x, int64_t n) {
       return filled({50 * n, 64}).index({(x.exp().sin().abs() * (50.0 * static_cast<double>(n) - 1)).cast(DType::I32)}) * x.unsqueeze(1);
     }},
    {"sums of rows of random numbers", few_rows,
     [](const Tensor& x, int64_t n) { return (Tensor::rand({n, 256}) * x).sum(1); }},
    {"random numbers read at shifts", [](int64_t) { return Shape{1}; },
     [](const Tensor& x, int64_t n) { return sum_of_shifts(Tensor::rand({4000 + n}), n) * x; }},
    {"dropout of windows", image,
     [](const Tensor& x, int64_t) { return avg_pool2d(where(Tensor::rand(x.shape()) < 0.5, x.exp(), 0.0), 3, {.stride = 1}); }},
};
// clang-format on

constexpr int64_t kFormSizes[] = {2, 3, 8, 40};

void expect_bound(const char* name, int64_t n, const char* what, const engine::PlanWork& work) {
  if (std::getenv("PLUGRAD_REPORT") != nullptr)
    fmt::print("{} {:<52} {:>3} {:<8} {:>12} {:>12} {:>12.0f} {:>6.2f}\n",
               work.is_bounded() ? " " : "!", name, n, what, work.executed, work.graph,
               work.allowed, static_cast<double>(work.executed) / static_cast<double>(work.graph));
  engine::PlanWork most = work;  // that a schedule may repeat, as PLUGRAD_VERIFY=1 has it
  most.allowed += 1.25 * static_cast<double>(work.graph);
  EXPECT_TRUE(most.is_bounded()) << name << ", size " << n << ' ' << what << ": " << work.executed
                                 << " operations, " << work.graph << " in the graph, "
                                 << work.allowed << " more allowed";
}

TEST(CountedForms, ComputeEachValueOnce) {
  const char* only = std::getenv("PLUGRAD_FORM");
  for (const Form& form : kForms) {
    if (only && std::string(form.name).find(only) == std::string::npos) continue;
    for (const int64_t n : kFormSizes) {
      const Tensor x = filled(form.shape(n)).requires_grad_();
      const Tensor y = form.make(x, n);
      expect_bound(form.name, n, "", work_of_all({y}));
      expect_bound(form.name, n, "gradient", work_of_all(gradient((y * y).sum(), {x})));
    }
  }
}

}  // namespace
}  // namespace plugrad

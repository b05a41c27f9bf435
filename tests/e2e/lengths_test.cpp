// From the third length on, one plan serves all lengths of a computation.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/settings.h"
#include "engine/session.h"
#include "plugrad/plugrad.h"

using namespace plugrad;

namespace {

struct Form {
  std::string name;
  std::function<Tensor(int64_t n)> make;
  bool is_shared = true;
};

// Values that are the same in each call, of any shape.
Tensor data(Shape shape, DType dtype = DType::F32) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((i * 2654435761U >> 7) % 1000) / 500.0F - 1;
  return Tensor::from(values, shape).cast(dtype).realize();
}

Tensor indices(int64_t count, int64_t below) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i * 7 % below);
  return Tensor::from(values, {count}).realize();
}

std::vector<Form> forms_of_reductions() {
  const Tensor whole = data({300, 8});
  const auto pool = [whole](int64_t n) { return whole.slice(0, Slice(0, n)); };
  return {
      {"elementwise", [](int64_t n) { return data({n}) * 2.5 + 1; }},
      {"sum of a slice", [=](int64_t n) { return pool(n).sum(); }},
      {"mean of a slice", [=](int64_t n) { return pool(n).mean(0); }},
      {"softmax along", [](int64_t n) { return data({3, n}).softmax(); }},
      {"softmax across", [](int64_t n) { return data({n, 5}).softmax(); }},
      {"variance", [](int64_t n) { return data({4, n}).var(1); }},
      {"largest", [](int64_t n) { return data({n, 3}).max(0); }},
      {"place of the largest", [](int64_t n) { return data({n, 3}).argmax(0).cast(DType::F32); }},
      {"product with rows", [](int64_t n) { return data({n, 16}).matmul(data({16, 4})); }},
      {"product along", [](int64_t n) { return data({4, n}).matmul(data({n, 4})); }},
      {"batched product", [](int64_t n) { return data({n, 3, 4}).matmul(data({4, 5})); }},
  };
}

std::vector<Form> forms_of_movements() {
  const Tensor whole = data({300, 8});
  return {
      {"appended row", [](int64_t n) { return cat({data({n, 4}), data({1, 4})}); }},
      {"appended column", [](int64_t n) { return cat({data({2, n, 4}), data({2, 1, 4})}, 1); }},
      {"row before", [](int64_t n) { return cat({data({1, 4}), data({n, 4})}) * 2; }},
      {"both", [](int64_t n) { return cat({data({n}), data({n})}).cast(DType::F32) + 1; }},
      {"sum of both", [](int64_t n) { return cat({data({n}), data({n + 2}) * 3}).sum(); }},
      {"positions", [](int64_t n) { return Tensor::arange(n).cast(DType::F32) * 0.5; }},
      {"sum of ones", [](int64_t n) { return Tensor::ones({n}).sum() * 1.5; }},
      {"causal mask", [](int64_t n) { return Tensor::ones({n, n}).tril() * data({n, n}); }},
      {"attention",
       [](int64_t n) {
         return scaled_dot_product_attention(data({2, 1, 8}), data({2, n, 8}), data({2, n, 8}));
       }},
      {"own attention",
       [](int64_t n) {
         const Tensor x = data({n, 8});
         return scaled_dot_product_attention(x, x, x, {}, true);
       }},
      {"joined axes", [](int64_t n) { return data({n, 3, 4}).reshape({n * 3, 4}).sum(1); }},
      {"split axes", [](int64_t n) { return data({n * 3, 4}).reshape({n, 3, 4}).sum(1); }},
      {"table", [](int64_t n) { return data({50, 6}).index_select(0, indices(n, 50)); }},
      {"rows of a table",
       [](int64_t n) { return data({n, 6}).index_select(0, indices(4, n < 4 ? n : 4)); }},
      {"last rows", [](int64_t n) { return data({n, 4}).slice(0, Slice(n - 2, n)) * 2; }},
      {"first rows", [](int64_t n) { return data({n, 4}).slice(0, Slice(0, 2)) * 2; }},
      {"second half", [=](int64_t n) { return whole.slice(0, Slice(n, 2 * n)).sum(0); }},
      {"assigned part",
       [=](int64_t n) {
         Tensor x = Tensor::zeros({300, 8}).contiguous().realize();
         x[Slice(0, n)] = data({n, 8});
         return x + 1;
       }},
  };
}

std::vector<Form> forms_of_layers() {
  const Tensor whole = data({300, 8});
  return {
      {"transposed", [](int64_t n) { return data({n, 5}).transpose(0, 1).contiguous() + 1; }},
      {"permuted batch", [](int64_t n) { return (data({2, n, 3}).permute({1, 0, 2}) + 1).sum(2); }},
      {"halves", [](int64_t n) { return data({n, 5}).cast(DType::F16) * 2; }},
      {"integers", [](int64_t n) { return (indices(n, 9) * 3 + 1).sum().cast(DType::F32); }},
      {"gradient of a layer",
       [](int64_t n) {
         Tensor w = data({8, 3}).requires_grad_();
         const Tensor loss = (data({n, 8}).matmul(w).relu().pow(2)).mean();
         loss.backward();
         return w.grad();
       }},
      {"gradient of attention",
       [](int64_t n) {
         Tensor x = data({n, 8}).requires_grad_();
         scaled_dot_product_attention(x, x, x).sum().backward();
         return x.grad();
       }},
      {"length twice", [](int64_t n) { return data({n, n}).sum(0) / static_cast<double>(n); }},
      {"reversed", [](int64_t n) { return data({n, 3}).flip({0}).sum(1); }},
      {"split in halves", [](int64_t n) { return data({2 * n}).reshape({2, n}) + 1; }, false},
      {"running total", [](int64_t n) { return data({n}).cumsum(0); }},
      {"convolution of a batch",
       [](int64_t n) { return data({n, 3, 8, 8}).conv2d(data({4, 3, 3, 3})).relu().sum({2, 3}); }},
      {"convolution along", [](int64_t n) { return conv1d(data({2, 3, n + 4}), data({4, 3, 3})); },
       false},
      {"pooled batch", [](int64_t n) { return data({n, 2, 6, 6}).max_pool2d(2); }},
      {"layernorm", [](int64_t n) { return data({2, n, 8}).layernorm(); }},
      {"loss of classes", [](int64_t n) { return cross_entropy(data({n, 9}), indices(n, 9)); }},
      {"gradient of a table",
       [](int64_t n) {
         Tensor table = data({20, 4}).requires_grad_();
         (table.index_select(0, indices(n, 20)) * data({n, 4})).sum().backward();
         return table.grad();
       }},
      {"gradient of a convolution",
       [](int64_t n) {
         Tensor w = data({4, 3, 3, 3}).requires_grad_();
         data({n, 3, 6, 6}).conv2d(w).relu().sum().backward();
         return w.grad();
       }},
      {"both halves",
       [=](int64_t n) {
         return whole.slice(0, Slice(0, n)).sum() - whole.slice(0, Slice(n, 2 * n)).mean();
       }},
      {"every second", [](int64_t n) { return data({2 * n, 3}).slice(0, Slice(0, 2 * n, 2)) + 1; }},
      {"repeated", [](int64_t n) { return data({1, n, 3}).repeat({2, 1, 1}) + 1; }},
      {"distances",
       [](int64_t n) {
         const Tensor x = data({n, 3});
         return (x.reshape({n, 1, 3}) - x.reshape({1, n, 3})).pow(2).sum(2).sqrt();
       }},
  };
}

std::vector<Form> forms() {
  std::vector<Form> all = forms_of_reductions();
  for (const auto& some : {forms_of_movements(), forms_of_layers()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

constexpr int64_t kLengths[] = {3, 5, 6, 4, 7, 9, 8, 16, 11, 33, 40, 64, 65, 70, 100, 2, 1, 128, 9};

std::vector<float> exact(const Form& form, int64_t n) {
  const SettingScope scope([](Settings& s) { s.lift = false; });
  return form.make(n).to_vector<float>();
}

class Lengths : public testing::TestWithParam<Form> {};

TEST_P(Lengths, HaveTheValuesOfTheirOwnKernels) {
  const Form& form = GetParam();
  for (const int64_t n : kLengths) {
    if (n < 2 && form.name == "last rows") continue;
    if (n < 2 && form.name == "first rows") continue;
    if (n < 2 && form.name == "variance") continue;
    const std::vector<float> is = form.make(n).cast(DType::F32).to_vector<float>(),
                             should = exact(form, n);
    ASSERT_EQ(is.size(), should.size()) << n;
    for (size_t i = 0; i < is.size(); ++i)
      ASSERT_NEAR(is[i], should[i], 1e-5 * (1 + std::abs(should[i])))
          << "length " << n << " at " << i;
  }
}

TEST_P(Lengths, CompileNothingFromTheFourthOn) {
  const Form& form = GetParam();
  for (const int64_t n : {23, 17, 29}) form.make(n).cast(DType::F32).to_vector<float>();
  for (const int64_t n : {24, 30, 19, 40}) form.make(n);  // operands
  uint64_t compiled = 0;
  for (const int64_t n : {24, 30, 19, 40}) {
    const Tensor made = form.make(n).cast(DType::F32);
    const uint64_t before = engine::Session::current().statistics().kernels_compiled;
    made.to_vector<float>();
    compiled += engine::Session::current().statistics().kernels_compiled - before;
  }
  if (form.is_shared)
    EXPECT_EQ(compiled, 0U);
  else
    EXPECT_GT(compiled, 0U);
}

INSTANTIATE_TEST_SUITE_P(Forms, Lengths, testing::ValuesIn(forms()), [](const auto& form) {
  std::string name = form.param.name;
  std::ranges::replace(name, ' ', '_');
  return name;
});

// A cache that grows, in a jitted function: from the eighth token on nothing is compiled.
TEST(Lengths, OfAJittedFunctionCompileNothingFromTheEighthCallOn) {
  const Tensor w = data({8, 8});
  auto step = jit([&](const Tensor& cache, const Tensor& x) {
    const Tensor keys = cat({cache, x.matmul(w)});
    return std::vector<Tensor>{keys, scaled_dot_product_attention(x, keys, keys)};
  });
  Tensor cache = data({1, 8}), expected = cache;
  uint64_t compiled = 0;
  for (int64_t token = 0; token < 40; ++token) {
    const Tensor x = data({1, 8}) * (1.0 / static_cast<double>(token + 1));
    x.realize();
    const uint64_t before = engine::Session::current().statistics().kernels_compiled;
    const std::vector<Tensor> made = step(cache, x);
    const std::vector<float> is = made[1].to_vector<float>();
    if (token >= 8) compiled += engine::Session::current().statistics().kernels_compiled - before;
    cache = made[0];
    const SettingScope scope([](Settings& s) { s.lift = false; });
    expected = cat({expected, x.matmul(w)}).realize();
    const std::vector<float> should =
        scaled_dot_product_attention(x, expected, expected).to_vector<float>();
    for (size_t i = 0; i < is.size(); ++i) ASSERT_NEAR(is[i], should[i], 1e-5) << token;
  }
  EXPECT_EQ(compiled, 0U);
}

// Lengths that come again and again get kernels of their own, with equal bits.
TEST(Lengths, ThatComeOftenGetKernelsOfTheirOwn) {
  const auto run = [](int64_t n) { return data({7, n}).exp().sum(1).to_vector<float>(); };
  for (const int64_t n : {50, 51, 52, 53}) run(n);
  const auto plans = [] { return engine::Session::current().statistics().plans_made; };
  const uint64_t before = plans();
  for (int i = 0; i < 20; ++i) run(53);
  EXPECT_EQ(plans(), before + 1);
  const std::vector<float> own = run(53);
  const SettingScope scope([](Settings& s) { s.lift = false; });
  EXPECT_EQ(own, run(53));
}

TEST(Lengths, KeepExactSizesWhereBitsMustBeEqual) {
  const SettingScope scope([](Settings& s) { s.deterministic = true; });
  const auto plans = [] { return engine::Session::current().statistics().plans_made; };
  for (int64_t n = 200; n < 206; ++n) {
    const Tensor x = data({3, n});
    const uint64_t before = plans();
    x.softmax().realize();
    EXPECT_EQ(plans(), before + 1) << n;
  }
}

// Widths that alternate with a length are families of their own.
TEST(Lengths, AlternateWithOtherWidths) {
  uint64_t compiled = 0;
  for (int64_t n = 101; n < 130; ++n)
    for (const int64_t width : {4, 6, 9}) {
      const Tensor x = data({n, width});
      const uint64_t before = engine::Session::current().statistics().kernels_compiled;
      const std::vector<float> is = (x.tan() * 2).sum(0).to_vector<float>();
      if (n >= 110) compiled += engine::Session::current().statistics().kernels_compiled - before;
      const SettingScope scope([](Settings& s) { s.lift = false; });
      if (n % 7 != 0) continue;
      const std::vector<float> should = (x.tan() * 2).sum(0).to_vector<float>();
      for (size_t i = 0; i < is.size(); ++i) ASSERT_NEAR(is[i], should[i], 1e-3) << n;
    }
  EXPECT_EQ(compiled, 0U);
}

// Numbers that change together with the length, special ones too, are given at launch.
TEST(Lengths, ChangeTogetherWithNumbers) {
  uint64_t compiled = 0;
  const double numbers[] = {0.5, 3, 0, -1, 1, std::numeric_limits<double>::infinity(), 8, -0.0};
  for (int64_t n = 140; n < 180; ++n) {
    const Tensor x = data({n});
    const double k = numbers[n % 8];
    const uint64_t before = engine::Session::current().statistics().kernels_compiled;
    const std::vector<float> is = ((x + 2) / (x * x + k)).to_vector<float>();
    if (n >= 164) compiled += engine::Session::current().statistics().kernels_compiled - before;
    const std::vector<float> values = x.to_vector<float>();
    for (size_t i = 0; i < is.size(); ++i) {
      const float should = (values[i] + 2) / (values[i] * values[i] + static_cast<float>(k));
      ASSERT_TRUE(std::abs(is[i] - should) <= 1e-5F * std::abs(should) || is[i] == should) << n;
    }
  }
  EXPECT_EQ(compiled, 0U);
}

// A batch of another size in each step, with an optimiser whose state is replaced in place.
TEST(Lengths, OfTrainingStepsWithBatchesOfManySizes) {
  const auto train = [](bool lift) {
    const SettingScope scope([&](Settings& s) { s.lift = lift; });
    Tensor w = data({8, 16}).requires_grad_(), v = data({16, 3}).requires_grad_();
    optim::Adam adam({w, v}, {.lr = 0.01});
    for (const int64_t n : {12, 7, 9, 11, 5, 13, 8, 30, 64, 65, 3, 10}) {
      adam.zero_grad();
      cross_entropy(data({n, 8}).matmul(w).tanh().matmul(v), indices(n, 3)).backward();
      adam.step();
    }
    return cat({w.detach().reshape({-1}), v.detach().reshape({-1})}).to_vector<float>();
  };
  const std::vector<float> is = train(true), should = train(false);
  for (size_t i = 0; i < is.size(); ++i) ASSERT_NEAR(is[i], should[i], 1e-4) << i;
}

}  // namespace

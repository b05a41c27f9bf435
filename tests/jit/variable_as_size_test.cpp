// A bound Variable where an integer is: sizes, bounds of slices, and arithmetic with it give what the
// integers give, in and outside jitted functions, with one recording for all values.
#include "jit/variable_cases.h"

using namespace plugrad;
using testing::HasSubstr;

namespace {

constexpr int64_t kInputRows = 12;
const std::vector<int64_t> kValues = {1, 2, 5, 7};

const Variable& rows() {
  static const Variable variable("rows", 1, 7);
  return variable;
}

// One function, of a size that is a bound Variable and of one that is a number.
struct SizeCase {
  std::string name;
  std::function<Tensor(const Tensor& x, const Tensor& n)> of_variable;  // x: (12, 4)
  std::function<Tensor(const Tensor& x, int64_t n)> of_number;
};

template <class Function>
SizeCase size_case(std::string name, Function function) {
  return {std::move(name), function, function};
}

Slice up_to(const Size& stop) {
  return {0, stop};
}

// x after x[indices] = value.
Tensor after(const Tensor& x, const std::vector<Index>& indices, const Tensor& value) {
  Tensor y = x * 1;
  y.set_index(indices, value);
  return y;
}

// clang-format off
std::vector<SizeCase> size_cases() {
  const auto make = [](const char* name, auto function) { return size_case(name, function); };
  return {
      make("first rows", [](const Tensor& x, auto n) { return x[up_to(n)] * 2; }),
      make("rows behind", [](const Tensor& x, auto n) { return x[{Slice(n, {})}]; }),
      make("last rows", [](const Tensor& x, auto n) { return x[{Slice(-n, {})}] + 1; }),
      make("all but the last rows", [](const Tensor& x, auto n) { return x[{Slice({}, -n)}]; }),
      make("three from one on", [](const Tensor& x, auto n) { return x[{Slice(n, n + 3)}]; }),
      make("every second of four", [](const Tensor& x, auto n) { return x[{Slice(n, n + 4, 2)}]; }),
      make("from a row to one", [](const Tensor& x, auto n) { return x[{Slice(1, n + 2)}]; }),
      make("every third row", [](const Tensor& x, auto n) { return x[{Slice(0, n * 2 - 1, 3)}]; }),
      make("beyond the end", [](const Tensor& x, auto n) { return x[up_to(n * 3)]; }),
      make("one column of rows", [](const Tensor& x, auto n) { return x[{up_to(n), 1}]; }),
      make("columns of rows", [](const Tensor& x, auto n) { return x[{Slice(n, n + 2), Slice(1, 3)}]; }),
      make("a box", [](const Tensor& x, auto n) { return x.shrink({{n, n + 2}, {0, 2}}); }),
      make("a prefix", [](const Tensor& x, auto n) { return x.shrink_to({Size(n), 3}).sum(0); }),
      make("rows by indices behind", [](const Tensor& x, auto n) {
        return x[{up_to(n + 1), Tensor::from<int32_t>({3, 0})}];
      }),
      make("sum", [](const Tensor& x, auto n) { return x[up_to(n)].sum(); }),
      make("mean and deviation", [](const Tensor& x, auto n) { return x[up_to(n + 1)].mean(0) + x[up_to(n + 1)].std(0); }),
      make("softmax", [](const Tensor& x, auto n) { return x[up_to(n)].softmax(0); }),
      make("product", [](const Tensor& x, auto n) { return x[up_to(n)].transpose().matmul(x[up_to(n)]); }),
      make("attention", [](const Tensor& x, auto n) {
        const Tensor kv = x[up_to(n)].reshape({1, 1, n, 4});
        return scaled_dot_product_attention(x.reshape({1, 1, 12, 4}) * 0.1, kv * 0.1, kv);
      }),
      make("join", [](const Tensor& x, auto n) { return cat({x[up_to(n)], x[{Slice(1, 3)}]}, 0); }),
      make("zeros", [](const Tensor& x, auto n) { return Tensor::zeros({n, 4}) + x[0]; }),
      make("sum of ones", [](const Tensor& x, auto n) { return Tensor::ones({n}).sum() * x[0]; }),
      make("full", [](const Tensor& x, auto n) { return Tensor::full({2, n + 1, 4}, 2.5) * x[0]; }),
      make("positions", [](const Tensor& x, auto n) { return x[up_to(n)] * Tensor::arange(n).reshape({n, 1}); }),
      make("positions between", [](const Tensor& x, auto n) { return Tensor::arange(n, n + 4) * x[0]; }),
      make("even positions", [](const Tensor& x, auto n) { return Tensor::arange(2, n * 2 + 1, 2).cast(DType::F32) * x[0][0]; }),
      make("identity", [](const Tensor& x, auto n) { return Tensor::eye(n) * x[0][1]; }),
      make("reshape", [](const Tensor& x, auto n) { return x[up_to(n)].reshape({n, -1, 2}).sum(2); }),
      make("merge", [](const Tensor& x, auto n) { return x[up_to(n)].reshape({n * 4}) * 2; }),
      make("split again", [](const Tensor& x, auto n) { return x[up_to(n)].flatten().reshape({n * 2, 2}).max(1); }),
      make("unflatten", [](const Tensor& x, auto n) { return x[up_to(n)].flatten().unflatten(0, {n, 2, 2}).sum(1); }),
      make("expand", [](const Tensor& x, auto n) { return x[{Slice(0, 1)}].expand({n, 4}) + 1; }),
      make("repeat", [](const Tensor& x, auto n) { return x[0].repeat({n, 2}); }),
      make("repeat one axis", [](const Tensor& x, auto n) { return x[0].repeat({n}); }),
      make("upper triangle", [](const Tensor& x, auto n) { return x.triu(n - 5); }),
      make("lower triangle", [](const Tensor& x, auto n) { return x.tril(-n); }),
      make("causal mask", [](const Tensor& x, auto n) {
        const Tensor scores = x[up_to(n)].matmul(x.transpose());
        return scores.masked_fill(Tensor::ones({n, 12}, DType::Bool).triu(1), -1e9).softmax(-1);
      }),
      make("one row set", [](const Tensor& x, auto n) { return after(x, {Slice(n, n + 1)}, x[0] * 2); }),
      make("three rows set", [](const Tensor& x, auto n) { return after(x, {Slice(n, n + 3)}, x[{Slice(0, 3)}] * 2); }),
      make("every second row set", [](const Tensor& x, auto n) { return after(x, {Slice(n, n + 4, 2)}, x[{Slice(0, 2)}] * 3); }),
      make("first rows set", [](const Tensor& x, auto n) { return after(x, {up_to(n)}, x[up_to(n)] * x[0]); }),
      make("a box set", [](const Tensor& x, auto n) { return after(x, {up_to(n), Slice(1, 3)}, 5); }),
      make("set by bounds and indices", [](const Tensor& x, auto n) {
        return after(x, {Slice(n, n + 2), Tensor::from<int32_t>({2, 0})}, x[{Slice(0, 2), Slice(0, 2)}] * 7);
      }),
  };
}
// clang-format on

// Whole numbers, whose sums are exact in any order.
Tensor input(int seed = 0) {
  return (numbers({kInputRows, 4}, seed) * 3).round().realize();
}

class VariableAsSize : public testing::TestWithParam<SizeCase> {};

TEST_P(VariableAsSize, GivesWhatTheIntegerGives) {
  const SizeCase& each = GetParam();
  for (int64_t n : kValues)
    expect_near(each.of_variable(input(), rows().bind(n)), each.of_number(input(), n),
                each.name + " of " + std::to_string(n));
}

TEST_P(VariableAsSize, HasOneRecording) {
  const SizeCase& each = GetParam();
  auto step = jit(each.of_variable);
  for (int64_t n : {3, 4}) step(input(), rows().bind(n));
  const auto before = engine::Session::current().statistics();
  std::vector<Tensor> results;
  for (int64_t n : kValues) results.push_back(step(input(static_cast<int>(n)), rows().bind(n)));
  EXPECT_EQ(engine::Session::current().statistics().kernels_compiled, before.kernels_compiled);
  EXPECT_EQ(step.recordings(), 1u);
  for (size_t i = 0; i < kValues.size(); ++i)
    expect_near(results[i], each.of_number(input(static_cast<int>(kValues[i])), kValues[i]),
                each.name + " of " + std::to_string(kValues[i]));
}

TEST_P(VariableAsSize, HasTheGradient) {
  const SizeCase& each = GetParam();
  const auto gradient = [&](const auto& function, const auto& n) {
    Tensor x = input();
    x.requires_grad_();
    const Tensor y = function(x, n);
    (y * y).sum().backward();
    return x.grad();
  };
  for (int64_t n : {2, 5})
    expect_near(gradient(each.of_variable, rows().bind(n)), gradient(each.of_number, n), each.name);
}

INSTANTIATE_TEST_SUITE_P(All, VariableAsSize, testing::ValuesIn(size_cases()),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::ranges::replace(name, ' ', '_');
                           return name;
                         });

TEST(VariableAsSizes, TwoVariablesHaveOneRecording) {
  const Variable more("more", 2, 9);
  auto step = jit([](const Tensor& x, const Tensor& n, const Tensor& m) {
    return cat({x[up_to(n)], x[{Slice(0, m)}]}, 0).sum(1) +
           Tensor::arange(n + m) * Tensor::ones({m + n});
  });
  for (int64_t n : kValues)
    for (int64_t m : {2, 9}) {
      const Tensor got = step(input(), rows().bind(n), more.bind(m));
      const Tensor rest = cat({input()[up_to(n)], input()[up_to(m)]}, 0);
      expect_near(got, rest.sum(1) + Tensor::arange(n + m), "join");
    }
  EXPECT_EQ(step.recordings(), 1u);
}

TEST(VariableAsSizes, ArgumentsOfArithmeticAreSizes) {
  auto step = jit([](const Tensor& x, const Tensor& n) { return x[{Slice(n, n + 2)}].sum(1); });
  for (int64_t n : kValues)
    expect_near(step(input(), rows().bind(n) + 1), input()[{Slice(n + 1, n + 3)}].sum(1), "next");
  EXPECT_EQ(step.recordings(), 1u);
}

TEST(VariableAsSizes, OtherBoundsAreAnotherRecording) {
  const Variable few("n", 1, 3), many("n", 1, 9);
  auto step = jit([](const Tensor& n) { return Tensor::ones({n}).sum(); });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(step(few.bind(2)).item<float>(), 2.0f);
    EXPECT_EQ(step(many.bind(8)).item<float>(), 8.0f);
  }
  EXPECT_EQ(step.recordings(), 2u);
}

// Exact data of one length, as it comes from files.
TEST(VariableAsSizes, DataOfALengthTakesItBeforeTheCall) {
  auto step = jit([](const Tensor& a, const Tensor& b) { return a.matmul(b) + 1; });
  for (int64_t n : kValues) {
    const Tensor a = numbers({3, n}, 1).realize(), b = numbers({n, 5}, 2).realize();
    const Tensor size = rows().bind(n);
    expect_near(step(a.reshape({3, size}), b.reshape({size, -1})), a.matmul(b) + 1, "product");
    const Tensor lazy = Tensor::arange(n * 3) * 2;  // not in memory yet
    expect_near(lazy.reshape({size, -1}) + 1, lazy.reshape({n, 3}) + 1, "positions");
  }
  EXPECT_EQ(step.recordings(), 1u);
}

TEST(VariableAsSizes, ResultsReshapeToTheirActualSizes) {
  auto step = jit([](const Tensor& x) { return x + 1; });
  for (int64_t n : kValues) {
    const Tensor got = step(input()[{Slice(0, 2), up_to(4)}].transpose()[up_to(4)]);
    EXPECT_EQ(to_string(got.shape()), "(4, 2)");
    const Tensor rows_of = step(input()[up_to(rows().bind(n))]);
    expect_near(rows_of.reshape({2, n * 2}), (input()[up_to(n)] + 1).reshape({2, n * 2}), "rows");
  }
}

// Its kernels do not read the product of sizes that another one stores.
TEST(VariableAsSizes, CountsThatAreRootsAreComputedByEachKernel) {
  for (int64_t k = 1; k < 200; ++k) (Tensor::full({k}, HUGE_VAL) - HUGE_VAL).realize();
  Tensor x = input();
  x.requires_grad_();
  const Tensor y = x[up_to(rows().bind(2))].reshape({-1, 2}).max(1);
  (y * y).sum().backward();
  Tensor expected = input();
  expected.requires_grad_();
  const Tensor z = expected[up_to(2)].reshape({-1, 2}).max(1);
  (z * z).sum().backward();
  expect_near(x.grad(), expected.grad(), "gradient");
}

TEST(VariableAsSizes, TensorsOfDataAreRead) {
  const Tensor count = Tensor::from<int32_t>({2, 5}).max();
  EXPECT_EQ(to_string(Tensor::zeros({count, 2}).shape()), "(5, 2)");
  EXPECT_EQ(to_string(input()[up_to(count)].shape()), "(5, 4)");
  auto step = jit([](const Tensor& n) { return Tensor::zeros({n}); });
  EXPECT_THAT(message_of([&] { step(Tensor::from<int32_t>({2, 5}).max()); }), HasSubstr("jit"));
}

TEST(VariableAsSizes, ErrorsNameTheSize) {
  const Variable offset("offset", -2, 4), one("one", 0, 1);
  const Tensor x = input(), n = rows().bind(3);
  const auto error = [](auto function) { return message_of(function); };
  EXPECT_THAT(error([&] { Tensor::zeros({offset.bind(1), 3}); }),
              HasSubstr("[zeros] the size of axis 0 is between -2 and 4"));
  EXPECT_THAT(error([&] { Tensor::ones({2, one.bind(1)}); }), HasSubstr("between 0 and 1"));
  EXPECT_THAT(
      error([&] { Tensor y = x[up_to(offset.bind(1))]; }),
      HasSubstr("[index] a slice along axis 0 of (12, 4) has a bound that counts from either"));
  EXPECT_THAT(error([&] { Tensor y = x[{Slice(n, {}, -1)}]; }), HasSubstr("negative steps"));
  EXPECT_THAT(error([&] { Tensor y = x[{Slice(n, n + 10)}]; }),
              HasSubstr("[index] 10 elements from 3 on reach beyond axis 0 of (12, 4)"));
  EXPECT_THAT(error([&] { Tensor::zeros({Tensor(2.5)}); }),
              HasSubstr("[zeros] a size is an integer or an integer tensor of shape (), not"));
  EXPECT_THAT(error([&] { Tensor::zeros({Tensor::from<int32_t>({1, 2})}); }),
              HasSubstr("shape (2,)"));
  EXPECT_THAT(error([&] { Tensor::zeros({Tensor()}); }), HasSubstr("is undefined"));
  EXPECT_THAT(error([&] { x[up_to(n)] + Tensor::ones({n + 1, 4}); }), HasSubstr("variable size"));
  EXPECT_THAT(error([&] { x.reshape({n, 5}); }), HasSubstr("[reshape]"));
  EXPECT_THAT(error([&] { after(x, {up_to(n)}, x[{Slice(0, 3)}]); }), HasSubstr("[setitem]"));
  EXPECT_THAT(error([&] { Tensor::arange(0, n, -1); }), HasSubstr("[arange]"));
}

}  // namespace

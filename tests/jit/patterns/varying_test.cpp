// Functions whose numbers, lengths or counts differ in each call: the bits are those of the function without jit.
#include <limits>
#include <tuple>

#include "jit/patterns/replay_case.h"

using namespace plugrad;

namespace {

using Floats = std::vector<double>;
using Integers = std::vector<int64_t>;
using Given = std::tuple<Tensors, Floats, Integers>;
using VaryingStep = std::function<Tensors(const Tensors&, const Floats&, const Integers&)>;

constexpr int kCalls = 8, kAll = kCalls;

struct VaryingCase {
  std::string name;
  int runs;  // of the function in kCalls calls, at most; 2 where one recording serves all
  std::function<VaryingStep()> make;
  std::function<Given(int)> arguments;

  friend void PrintTo(const VaryingCase& each, std::ostream* out) { *out << each.name; }
};

void expect_equal_bits(const VaryingCase& each) {
  const VaryingStep plain = each.make(), own = each.make();
  int runs = 0;
  const auto step = jit([&](const Given& given) {
    ++runs;
    return std::apply(own, given);
  });
  for (int call = 0; call < kCalls; ++call) {
    const Given given = each.arguments(call);
    Tensor::manual_seed(100 + static_cast<uint64_t>(call));
    const Tensors expected = std::apply(plain, given);
    realize_all(expected);
    Tensor::manual_seed(100 + static_cast<uint64_t>(call));
    const Tensors got = step(each.arguments(call));
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i)
      expect_equal(got[i], expected[i],
                   "call " + std::to_string(call) + ", result " + std::to_string(i));
  }
  EXPECT_LE(runs, each.runs);
  testing::Test::RecordProperty("runs", runs);
}

VaryingCase varying(std::string name, int runs, VaryingStep step,
                    std::function<Given(int)> arguments) {
  return {std::move(name), runs, [step = std::move(step)] { return step; }, std::move(arguments)};
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double usual(int call) {
  return 0.3 + 0.17 * call;
}

// Numbers that have kernels of their own, and what arithmetic treats apart.
double special(int call) {
  constexpr double kValues[kCalls] = {0.0, -0.0, 1.0, -1.0, kInfinity, kNaN, 8.0, 0.25};
  return kValues[call];
}

using Value = double (*)(int call);

Tensor data(int call) {
  return numbers({4, 6}, call);
}

std::function<Given(int)> with_float(Value value) {
  return [value](int call) { return Given{{data(call)}, {value(call)}, {}}; };
}

std::function<Given(int)> with_integer(std::function<int64_t(int)> value) {
  return [value](int call) { return Given{{data(call)}, {}, {value(call)}}; };
}

std::function<Given(int)> with_tensor(std::function<Tensor(int)> made) {
  return [made](int call) { return Given{{data(call), made(call)}, {}, {}}; };
}

using OfFloat = Tensor (*)(const Tensor& x, double k);
using OfInteger = Tensor (*)(const Tensor& x, int64_t i);
using OfTensors = Tensor (*)(const Tensor& x, const Tensor& k);

VaryingCase of_float(const std::string& name, int runs, OfFloat f, Value value = usual) {
  return varying(
      name, runs,
      [f](const Tensors& in, const Floats& k, const Integers&) { return Tensors{f(in[0], k[0])}; },
      with_float(value));
}

VaryingCase of_integer(
    const std::string& name, int runs, OfInteger f,
    std::function<int64_t(int)> value = [](int call) { return int64_t{call}; }) {
  return varying(
      name, runs,
      [f](const Tensors& in, const Floats&, const Integers& i) { return Tensors{f(in[0], i[0])}; },
      with_integer(std::move(value)));
}

VaryingCase of_tensor(const std::string& name, int runs, OfTensors f,
                      std::function<Tensor(int)> made) {
  return varying(
      name, runs,
      [f](const Tensors& in, const Floats&, const Integers&) { return Tensors{f(in[0], in[1])}; },
      with_tensor(std::move(made)));
}

Tensor scaled(const Tensor& x, const Tensor& k) {
  return (x * k).sin() + k;
}

std::vector<VaryingCase> floats() {
  return {
      of_float("factor", kAll, [](const Tensor& x, double k) { return x * k + 1.0; }),
      of_float(
          "special factor", kAll, [](const Tensor& x, double k) { return x * k; }, special),
      of_float(
          "special term", kAll, [](const Tensor& x, double k) { return x + k; }, special),
      of_float("divisor", kAll, [](const Tensor& x, double k) { return x / k; }),
      of_float(
          "special divisor", kAll, [](const Tensor& x, double k) { return x / k; }, special),
      of_float(
          "dividend", kAll, [](const Tensor& x, double k) { return k / x; }, special),
      of_float("exponent", kAll, [](const Tensor& x, double k) { return x.abs().pow(k); }),
      of_float(
          "special exponent", kAll, [](const Tensor& x, double k) { return x.pow(k); }, special),
      of_float("limits", kAll, [](const Tensor& x, double k) { return x.clamp(-k, k); }),
      of_float("slope", kAll, [](const Tensor& x, double k) { return x.leaky_relu(k); }),
      of_float(
          "threshold", kAll, [](const Tensor& x, double k) { return where(x > k, x, k); }, special),
      of_float(
          "fill of a mask", kAll,
          [](const Tensor& x, double k) { return x.masked_fill(x < 0, k).softmax(); }, special),
      of_float(
          "fill of a border", kAll,
          [](const Tensor& x, double k) { return x.pad({{1, 1}, {0, 2}}, k); }, special),
      of_float(
          "filled tensor", kAll,
          [](const Tensor& x, double k) { return x.matmul(Tensor::full({6, 3}, k)); }, special),
      of_float("probability", kAll, [](const Tensor& x, double k) { return x.dropout(k * 0.5); }),
      of_float("range of random numbers", kAll,
               [](const Tensor& x, double k) { return x + Tensor::uniform({4, 6}, -k, k); }),
      of_float(
          "two values in turn", 4, [](const Tensor& x, double k) { return (x * k).tanh(); },
          [](int call) { return call % 2 == 0 ? 0.25 : 0.3; }),
      varying(
          "two factors of which one differs", kAll,
          [](const Tensors& in, const Floats& k, const Integers&) {
            return Tensors{in[0] * k[0] + in[0].flip({1}) * k[1], in[0] * k[1] + in[0] * k[0]};
          },
          [](int call) { return Given{{data(call)}, {usual(call), usual(3)}, {}}; }),
      of_float("factor of half precision", kAll,
               [](const Tensor& x, double k) { return x.cast(DType::F16) * k; }),
      of_float("factor of a gradient", kAll,
               [](const Tensor& x, double k) {
                 Tensor w = x.clone().requires_grad_();
                 return gradient((w * k).square().sum(), {w})[0];
               }),
  };
}

std::vector<VaryingCase> integers() {
  return {
      of_integer("integer factor", kAll,
                 [](const Tensor& x, int64_t i) { return (x * 10).cast(DType::I32) * (i - 2); }),
      of_integer("integer divisor", kAll,
                 [](const Tensor& x, int64_t i) {
                   const Tensor n = (x * 10).cast(DType::I32);
                   return n.floor_div(i - 2) + n.mod(i + 1);
                 }),
      of_integer("bits moved", kAll,
                 [](const Tensor& x, int64_t i) { return (x.abs() * 10).cast(DType::I32) << i; }),
      of_integer("index read", kAll,
                 [](const Tensor& x, int64_t i) { return x.reshape({24})[i - 3] * 2; }),
      of_integer("row read", kAll, [](const Tensor& x, int64_t i) { return x.exp()[i % 4] * 1.0; }),
      of_integer("begin of a slice", kAll,
                 [](const Tensor& x, int64_t i) { return x.reshape({24})[Slice(i, i + 5)].sum(); }),
      of_integer(
          "begin of a slice of columns", kAll,
          [](const Tensor& x, int64_t i) { return x.slice(1, Slice(i % 4, i % 4 + 3)).softmax(); }),
      of_integer("index assigned", kAll,
                 [](const Tensor& x, int64_t i) {
                   Tensor y = x.reshape({24}).clone();
                   y[i * 3] = 7.0;
                   return y;
                 }),
      of_integer("row assigned", kAll,
                 [](const Tensor& x, int64_t i) {
                   Tensor y = x.clone();
                   y[i % 4] = x[0] * 2;
                   return y;
                 }),
      of_integer("slice assigned", kAll,
                 [](const Tensor& x, int64_t i) {
                   Tensor y = x.reshape({24}).clone();
                   y[Slice(i, i + 3)] = y[Slice(i + 1, i + 4)] + 1;
                   return y;
                 }),
      of_integer("roll", kAll, [](const Tensor& x, int64_t i) { return x.roll({i}, {1}) - x; }),
      {"row of captured memory", kAll,
       [] {
         const auto memory = kept<Tensor>(Tensor::zeros({8, 6}).realize());
         return [memory](const Tensors& in, const Floats&, const Integers& i) {
           memory->set_index({i[0]}, in[0][0]);
           return Tensors{memory->sum(0)};
         };
       },
       with_integer([](int call) { return int64_t{call}; })},
  };
}

std::vector<VaryingCase> tensors_of_numbers() {
  return {
      of_tensor("number", kAll, scaled, [](int call) { return Tensor(usual(call)); }),
      of_tensor(
          "special number", kAll, [](const Tensor& x, const Tensor& k) { return x * k; },
          [](int call) { return Tensor(special(call)); }),
      of_tensor("integer number", kAll, scaled, [](int call) { return Tensor(call - 2); }),
      of_tensor("full of no axes", 2, scaled,
                [](int call) { return Tensor::full({}, usual(call)); }),
      of_tensor(
          "special full of no axes", 2, [](const Tensor& x, const Tensor& k) { return x / k; },
          [](int call) { return Tensor::full({}, special(call)); }),
      of_tensor("realised full of no axes", 2, scaled,
                [](int call) { return Tensor::full({}, usual(call)).realize(); }),
      of_tensor("full", 2, scaled, [](int call) { return Tensor::full({6}, usual(call)); }),
      of_tensor(
          "special full", 2, [](const Tensor& x, const Tensor& k) { return x * k; },
          [](int call) { return Tensor::full({6}, special(call)); }),
      of_tensor("numbers in turn", 4, scaled, [](int call) { return Tensor(usual(call % 2)); }),
      of_tensor("number that stays for two calls", kAll, scaled,
                [](int call) { return Tensor(usual(call / 2)); }),
      of_tensor(
          "0 and -0 in turn", 4, [](const Tensor& x, const Tensor& k) { return x.abs() / k; },
          [](int call) { return Tensor(call % 2 == 0 ? 0.0 : -0.0); }),
      of_tensor(
          "number of another dtype", 4,
          [](const Tensor& x, const Tensor& k) { return x.cast(DType::I32) * k; },
          [](int call) { return call % 2 == 0 ? Tensor(1) : Tensor(1.0); }),
      of_tensor("stored full", 2, scaled,
                [](int call) { return Tensor::full({6}, usual(call)).contiguous(); }),
      of_tensor("ones times a number", 2, scaled,
                [](int call) { return Tensor::ones({6}) * usual(call); }),
      of_tensor("realised ones times a number", 2, scaled,
                [](int call) { return (Tensor::ones({6}) * usual(call)).realize(); }),
      of_tensor("positions from a number on", 2, scaled,
                [](int call) { return Tensor::arange(6, DType::F32) + call; }),
      of_tensor("one number of the host", 2, scaled,
                [](int call) { return Tensor::from({static_cast<float>(special(call))}); }),
      of_tensor(
          "index as a number", kAll,
          [](const Tensor& x, const Tensor& k) { return x.reshape({24})[k] * 2; },
          [](int call) { return Tensor::full({}, call, DType::I32); }),
      of_tensor(
          "positions up to a number", kAll,
          [](const Tensor& x, const Tensor& k) { return Tensor::arange(k) + x.sum(); },
          [](int call) { return Tensor(call + 1); }),
  };
}

// w of its own; the rate differs in each call.
VaryingCase descended(const std::string& name, int runs,
                      std::function<void(Tensor&, const Tensor&, const Given&)> descend,
                      std::function<Given(int)> arguments) {
  return {name, runs,
          [descend] {
            const auto w = kept<Tensor>(Tensor::full({6}, 0.5).contiguous().realize());
            w->requires_grad_();
            return [w, descend](const Tensors& in, const Floats& k, const Integers& i) {
              const Tensor loss = (in[0] * *w).tanh().square().sum();
              descend(*w, gradient(loss, {*w})[0], Given{in, k, i});
              return Tensors{loss, w->clone()};
            };
          },
          std::move(arguments)};
}

void descend_by(Tensor& w, const Tensor& gradient, const Tensor& rate) {
  w.assign((w - gradient * rate).detach());
}

std::vector<VaryingCase> rates() {
  const auto by_float = [](Tensor& w, const Tensor& g, const Given& given) {
    descend_by(w, g, std::get<Floats>(given)[0]);
  };
  const auto by_tensor = [](Tensor& w, const Tensor& g, const Given& given) {
    descend_by(w, g, std::get<Tensors>(given)[1]);
  };
  return {
      descended("rate", kAll, by_float, with_float(usual)),
      descended("rate as a number tensor", kAll, by_tensor,
                with_tensor([](int call) { return Tensor(usual(call)); })),
      descended("rate as data", 2, by_tensor, with_tensor([](int call) {
                  return Tensor::from({static_cast<float>(usual(call))});
                })),
      {"rate of an optimiser", kAll,
       [] {
         Tensor w = Tensor::full({6}, 0.5).contiguous().realize();
         w.requires_grad_();
         const auto opt = kept<optim::Adam>(Tensors{w});
         return [w, opt](const Tensors& in, const Floats& k, const Integers&) {
           opt->set_learning_rate(k[0]);
           opt->zero_grad();
           const Tensor loss = (in[0] * w).tanh().square().sum();
           loss.backward();
           opt->step();
           return Tensors{loss, w.clone()};
         };
       },
       with_float(usual)},
  };
}

const Variable& rows_of_data() {
  static const Variable variable("rows", 1, 16);
  return variable;
}

std::function<Given(int)> of_length(std::function<int64_t(int)> length) {
  return [length](int call) { return Given{{numbers({length(call), 6}, call)}, {}, {}}; };
}

int64_t longer(int call) {
  return call + 2;
}

std::vector<VaryingCase> lengths() {
  const auto stats = [](const Tensors& in, const Floats&, const Integers&) {
    return Tensors{in[0].mean(0), in[0].softmax(0),
                   in[0].sum() / static_cast<double>(in[0].size(0))};
  };
  return {
      of_integer("prefix", kAll,
                 [](const Tensor& x, int64_t i) { return x.reshape({24})[Slice(0, i + 1)].sum(); }),
      of_integer(
          "suffix", kAll,
          [](const Tensor& x, int64_t i) { return x.reshape({24})[Slice(i, {})].cumsum(0); }),
      of_integer("positions", kAll,
                 [](const Tensor& x, int64_t i) { return Tensor::arange(i + 1) * x.sum(); }),
      of_integer("zeros and ones", kAll,
                 [](const Tensor& x, int64_t i) {
                   return Tensor::zeros({i, 6}) + x[0] + Tensor::ones({i, 1});
                 }),
      of_integer(
          "reshape", kAll,
          [](const Tensor& x, int64_t i) { return x.reshape({int64_t{1} << (i % 4), -1}).sum(1); }),
      varying("argument of a length", kAll, stats, of_length(longer)),
      varying("two lengths in turn", 4, stats,
              of_length([](int call) { return call % 2 == 0 ? 5 : 3; })),
      varying(
          "growing cache", kAll,
          [](const Tensors& in, const Floats&, const Integers&) {
            return Tensors{cat({in[0], in[0].mean(0, true)})};
          },
          of_length(longer)),
      varying(
          "attention over a growing context", kAll,
          [](const Tensors& in, const Floats&, const Integers&) {
            const Tensor k = cat({in[0], in[0].slice(0, Slice(0, 1)) * 0.5}).unsqueeze(0);
            return Tensors{
                scaled_dot_product_attention(in[0].slice(0, Slice(0, 1)).unsqueeze(0), k, k)};
          },
          of_length(longer)),
      varying(
          "variable length", 2,
          [](const Tensors& in, const Floats&, const Integers&) {
            return Tensors{in[0].sum(0), in[0].max(1)};
          },
          [](int call) {
            return Given{{rows_of_data().fit(numbers({longer(call), 6}, call), 0)}, {}, {}};
          }),
      varying(
          "positions of a variable length", 2,
          [](const Tensors& in, const Floats&, const Integers&) {
            return Tensors{(in[0] * Tensor::arange(in[0].size(0), DType::F32).unsqueeze(1)).sum(0)};
          },
          [](int call) {
            return Given{{rows_of_data().fit(numbers({longer(call), 6}, call), 0)}, {}, {}};
          }),
      varying(
          "limited by a bound variable", 2,
          [](const Tensors& in, const Floats&, const Integers&) {
            return Tensors{rows_of_data().limit(in[0], 0, in[1]).sum(0)};
          },
          [](int call) {
            return Given{{numbers({16, 6}, call), rows_of_data().bind(longer(call))}, {}, {}};
          }),
  };
}

std::vector<VaryingCase> counts() {
  return {
      of_tensor(
          "indices of what is not 0", 2,
          [](const Tensor& x, const Tensor& k) { return (x > k).nonzero(24, -1); },
          [](int call) { return Tensor::from({static_cast<float>(call - 4)}); }),
      of_tensor(
          "elements of a mask", 2,
          [](const Tensor& x, const Tensor& k) { return x.masked_select(x > k, 24, 0.5); },
          [](int call) { return Tensor::from({static_cast<float>(call - 4)}); }),
      of_tensor(
          "mean over a mask", 2,
          [](const Tensor& x, const Tensor& k) {
            return where(x > k, x, 0).sum() / (x > k).cast(DType::F32).sum();
          },
          [](int call) { return Tensor::from({static_cast<float>(call - 4)}); }),
      of_integer("topk", kAll,
                 [](const Tensor& x, int64_t i) { return x.reshape({24}).topk(i + 1).first; }),
      of_integer(
          "classes", kAll,
          [](const Tensor& x, int64_t i) { return (x * 2).cast(DType::I32).one_hot(i + 1); }),
      of_integer("repeats", kAll,
                 [](const Tensor& x, int64_t i) { return x.repeat({i + 1, 1}).cumsum(0); }),
      of_integer("rounds of a loop", kAll,
                 [](const Tensor& x, int64_t i) {
                   Tensor y = x;
                   for (int64_t round = 0; round < i; ++round) y = (y * 0.5).sin() + x;
                   return y;
                 }),
      varying(
          "number of arguments", kAll,
          [](const Tensors& in, const Floats&, const Integers&) {
            return Tensors{stack(in).sum(0), cat(in, 1)};
          },
          [](int call) {
            return Given{Tensors(static_cast<size_t>(call) + 1, data(call)), {}, {}};
          }),
  };
}

class Varying : public testing::TestWithParam<VaryingCase> {};

std::string name_of_varying(const testing::TestParamInfo<VaryingCase>& info) {
  return name_of(info.param.name);
}

TEST_P(Varying, GivesTheBitsOfTheFunction) {
  expect_equal_bits(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Floats, Varying, testing::ValuesIn(floats()), name_of_varying);
INSTANTIATE_TEST_SUITE_P(Integers, Varying, testing::ValuesIn(integers()), name_of_varying);
INSTANTIATE_TEST_SUITE_P(TensorsOfNumbers, Varying, testing::ValuesIn(tensors_of_numbers()),
                         name_of_varying);
INSTANTIATE_TEST_SUITE_P(Rates, Varying, testing::ValuesIn(rates()), name_of_varying);
INSTANTIATE_TEST_SUITE_P(Lengths, Varying, testing::ValuesIn(lengths()), name_of_varying);
INSTANTIATE_TEST_SUITE_P(Counts, Varying, testing::ValuesIn(counts()), name_of_varying);

}  // namespace

// Programs that differ in numbers alone: from the second number on they share kernels that take the
// numbers at launch, and compute the bits that kernels with constants compute.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/settings.h"
#include "devices/at_hand.h"
#include "e2e/random_graph.h"
#include "engine/plan/canonical.h"
#include "plugrad/plugrad.h"

namespace plugrad {
namespace {

using Bytes = std::vector<std::byte>;
using Form = Tensor (*)(const Tensor& x, float k);

struct Row {
  const char* name;
  Form form;
};

// clang-format off
constexpr Row kRows[] = {
    {"product",    [](const Tensor& x, float k) { return x * k; }},
    {"sum",        [](const Tensor& x, float k) { return k + x; }},
    {"difference", [](const Tensor& x, float k) { return x - k; }},
    {"from",       [](const Tensor& x, float k) { return k - x; }},
    {"quotient",   [](const Tensor& x, float k) { return x / k; }},
    {"inverse",    [](const Tensor& x, float k) { return k / x; }},
    {"negative",   [](const Tensor& x, float k) { return -(x * k); }},
    {"of_negative", [](const Tensor& x, float k) { return (-x) * k + x; }},
    {"two",        [](const Tensor& x, float k) { return x * k + x.flip(0) * (k + 0.25f); }},
    {"lerp",       [](const Tensor& x, float k) { return x * (1 - k) + x.transpose(0, 1) * k; }},
    {"total",      [](const Tensor& x, float k) { return (x * k).sum(); }},
    {"rows",       [](const Tensor& x, float k) { return (x * k).softmax(1); }},
    {"matrix",     [](const Tensor& x, float k) { return (x * k).matmul(x) + k; }},
    {"where",      [](const Tensor& x, float k) { return (x > k).where(x, k); }},
    {"clamp",      [](const Tensor& x, float k) { return x.clamp(-k, k); }},
    {"full",       [](const Tensor&, float k) { return Tensor::full({8}, k).contiguous(); }},
    {"padding",    [](const Tensor& x, float k) { return x.pad({{1, 0}, {0, 2}}, k); }},
    {"assigned",   [](const Tensor& x, float k) { Tensor w = x.contiguous(); w.assign(w - k * x); return w; }},
    {"gradient",   [](const Tensor& x, float k) { Tensor w = x.contiguous().requires_grad_(); (w * k).exp().sum().backward(); return w.grad(); }},
    {"f16",        [](const Tensor& x, float k) { return x.cast(DType::F16) * k; }},
    {"bf16",       [](const Tensor& x, float k) { return x.cast(DType::BF16) - k; }},
    {"f64",        [](const Tensor& x, float k) { return x.cast(DType::F64) * double{k}; }},
    {"integer",    [](const Tensor& x, float k) { return (x * 8).cast(DType::I32) * static_cast<int>(k * 16) - 3; }},
};
// clang-format on

// An exponent that is a constant has an algorithm of its own.
constexpr Row kPower = {"power",
                        [](const Tensor& x, float k) { return (x * x + 0.5).pow(k * k + 0.3f); }};

constexpr float kOrdinary[] = {0.3f, 0.7f, -2.5f, 100.25f, 0.15f, 4.25f, 7.5f};
// Some that rules match, and some beside which another number of a form becomes one.
constexpr float kOthers[] = {0.0f,
                             -0.0f,
                             1.0f,
                             -1.0f,
                             2.0f,
                             1e-40f,
                             1e30f,
                             std::numeric_limits<float>::infinity(),
                             std::numeric_limits<float>::quiet_NaN()};

Tensor some_values(const std::string& device) {
  std::vector<float> values(64);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(static_cast<float>(i)) * 3 - 0.25f;
  return Tensor::from(values, {8, 8}).to(device).realize();
}

uint64_t compiled() {
  return engine::Session::current().statistics().kernels_compiled;
}

// Computed values of equal graphs are not kept for it.
SettingScope with_constants() {
  engine::Session::current().collect();
  return SettingScope([](Settings& s) { s.lift = false; });
}

// Multiply-adds round twice here: a program may store more values in its third call than in its
// first, and a stored product is not fused.
class Numbers : public testing::Test {
  SettingScope strict_{[](Settings& s) { s.contract = false; }};
};

// Kernels compiled for the values behind the first two.
uint64_t compiled_later(const Row& row, const Tensor& x, std::vector<Bytes>& results) {
  engine::Session::current().clear_caches();
  uint64_t before = 0, count = 0;
  for (const float k : kOrdinary) {
    if (++count == 3) before = compiled();
    results.push_back(row.form(x, k).to_bytes());
  }
  return compiled() - before;
}

TEST_F(Numbers, OfTheFormsOfArithmeticAreGivenAtLaunch) {
  const Tensor x = some_values("CPU");
  for (const Row& row : kRows) {
    std::vector<Bytes> taken, constant;
    EXPECT_EQ(compiled_later(row, x, taken), 0u) << row.name;
    const SettingScope scope = with_constants();
    EXPECT_GT(compiled_later(row, x, constant), 0u) << row.name;
    EXPECT_TRUE(taken == constant) << row.name;
  }
}

TEST_F(Numbers, StayConstantsWhereAKernelThatTakesThemWouldRoundOtherwise) {
  const Tensor x = some_values("CPU");
  std::vector<Bytes> taken, constant;
  EXPECT_GT(compiled_later(kPower, x, taken), 0u);
  const SettingScope scope = with_constants();
  compiled_later(kPower, x, constant);
  EXPECT_TRUE(taken == constant);
}

using PartOf = Tensor (*)(const Tensor& x, int64_t i);

struct PartRow {
  const char* name;
  PartOf part;
  bool has_structure = false;  // as positions 0 and 1, or loops that end where a part does
};

// clang-format off
constexpr PartRow kParts[] = {
    {"row",        [](const Tensor& x, int64_t i) -> Tensor { return x[i]; }},
    {"element",    [](const Tensor& x, int64_t i) -> Tensor { return x[i][7 - i]; }},
    {"column",     [](const Tensor& x, int64_t i) -> Tensor { return x.transpose(0, 1)[i] * 2; }},
    {"rows",       [](const Tensor& x, int64_t i) -> Tensor { return x.slice(0, Slice{i / 2, i / 2 + 4}).sum(0); }},
    {"product",    [](const Tensor& x, int64_t i) -> Tensor { return x.slice(0, Slice{i / 2, i / 2 + 3}).matmul(x); }},
    {"two",        [](const Tensor& x, int64_t i) -> Tensor { return x[i] * x[7 - i]; }},
    {"number too", [](const Tensor& x, int64_t i) -> Tensor { return x[i].softmax(-1) * (static_cast<double>(i) + 0.5); }},
    {"f16",        [](const Tensor& x, int64_t i) -> Tensor { return x.cast(DType::F16)[i] - 0.5; }},
    {"padded",     [](const Tensor& x, int64_t i) -> Tensor { return x.pad({{i, 7 - i}, {0, 0}}); }},
    {"cut of padded", [](const Tensor& x, int64_t i) -> Tensor { return x.pad({{2, 1}, {0, 0}}).slice(0, Slice{i, i + 2}); }},
    {"cut of joined", [](const Tensor& x, int64_t i) -> Tensor { return cat({x, x * 2}).slice(0, Slice{i, i + 2}); }, true},
    {"gradient",   [](const Tensor& x, int64_t i) -> Tensor { Tensor w = x.contiguous().requires_grad_(); (w[i] * x[7 - i]).sum().backward(); return w.grad(); }},
    {"assigned",   [](const Tensor& x, int64_t i) -> Tensor { Tensor w = x.contiguous().realize(); w[i] = 2.5; return w; }, true},
    {"assigned row", [](const Tensor& x, int64_t i) -> Tensor { Tensor w = x.contiguous().realize(); w[i] = x[7 - i] * 2; return w; }, true},
    {"added to",   [](const Tensor& x, int64_t i) -> Tensor { Tensor w = x.contiguous().realize(); w.transpose(0, 1)[i] += x[0]; return w; }, true},
    {"assigned element", [](const Tensor& x, int64_t i) -> Tensor { Tensor w = x.contiguous().realize(); w[i][7 - i] = 0.0; return w; }, true},
    {"backwards",  [](const Tensor& x, int64_t i) -> Tensor { return x.flip(1)[i].contiguous(); }},
};
// clang-format on

std::vector<Bytes> parts(const PartRow& row, const Tensor& x, uint64_t& compiled_later) {
  engine::Session::current().clear_caches();
  std::vector<Bytes> results;
  uint64_t before = 0;
  for (const int64_t i : {3, 5, 0, 7, 1, 6, 2, 4}) {
    if (results.size() == 2) before = compiled();
    results.push_back(row.part(x, i).to_bytes());
  }
  compiled_later = compiled() - before;
  return results;
}

TEST_F(Numbers, WhereSlicesBeginIsGivenAtLaunch) {
  const Tensor x = some_values("CPU");
  for (const PartRow& row : kParts) {
    uint64_t later = 0, ignored = 0;
    const std::vector<Bytes> taken = parts(row, x, later);
    EXPECT_TRUE(later == 0 || row.has_structure) << row.name << ": " << later;
    const SettingScope scope = with_constants();
    EXPECT_TRUE(taken == parts(row, x, ignored)) << row.name;
  }
}

// Between others: a rule that drops x * 1 must see it, and NaN is no number like others.
TEST_F(Numbers, ThatRulesKnowStayConstants) {
  const Tensor x = some_values("CPU");
  for (const Row& row : kRows) {
    for (const float k : kOthers) {
      if (row.name == std::string_view("integer") && !(std::fabs(k) < 3)) continue;
      Bytes taken, constant;
      for (const float other : {0.3f, 0.7f}) row.form(x, other).to_bytes();
      taken = row.form(x, k).to_bytes();
      const SettingScope scope = with_constants();
      EXPECT_TRUE(taken == row.form(x, k).to_bytes()) << row.name << " " << k;
    }
  }
}

TEST_F(Numbers, OnOtherDevicesToo) {
  for (const std::string& device : devices_at_hand()) {
    if (device == "CPU:0") continue;
    const Tensor x = some_values(device);
    for (const Row& row : kRows) try {
        std::vector<Bytes> taken, constant;
        for (const float k : {0.3f, 0.7f, -2.5f}) taken.push_back(row.form(x, k).to_bytes());
        const SettingScope scope = with_constants();
        for (const float k : {0.3f, 0.7f, -2.5f}) constant.push_back(row.form(x, k).to_bytes());
        EXPECT_TRUE(taken == constant) << row.name << " on " << device;
      } catch (const Error& error) {  // a dtype that the device does not hold
        if (error.kind() != ErrorKind::Unsupported) throw;
      }
  }
}

// A division by a power of two is a product, in whatever order the divisors come.
TEST_F(Numbers, OfDivisionsByPowersOfTwoAreStructure) {
  const SettingScope fused([](Settings& s) { s.contract = true; });
  const Tensor a = Tensor::from<float>({3e38f, 3e-45f}).realize();
  const Tensor b = Tensor::from<float>({-3e38f, 1.4e-45f}).realize();
  for (const auto& divisors : {std::vector{3.0f, 0.7f, 0.5f, 4.0f}, {0.5f, 3.0f, 0.7f, 5.0f}}) {
    std::vector<Bytes> taken, constant;
    engine::Session::current().clear_caches();
    for (const float k : divisors) taken.push_back((a / k + b).to_bytes());
    const SettingScope scope = with_constants();
    engine::Session::current().clear_caches();
    for (const float k : divisors) constant.push_back((a / k + b).to_bytes());
    EXPECT_TRUE(taken == constant);
  }
}

// Its bits are no mark of the cache.
TEST_F(Numbers, AreNoNansOfAnyPayload) {
  const Tensor x = Tensor::from<double>({1, 2, 3}).realize();
  for (const double k : {2.5, 2.6, std::bit_cast<double>(uint64_t{0x7ff85eed5eed5eed})}) {
    const std::vector<double> got = (x * k + (k + 1)).to_vector<double>();
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(std::isnan(got[i]), std::isnan(k)) << got[i];
  }
}

// A second number that differs is given at launch from then on, and the first again.
TEST_F(Numbers, MayBeginToDifferOneAfterTheOther) {
  const Tensor x = some_values("CPU");
  const auto f = [&](float a, float b) { return (x * a + b).to_vector<float>(); };
  const auto expect = [&](float a, float b) {
    const std::vector<float> values = x.to_vector<float>(), got = f(a, b);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], values[i] * a + b, 1e-4 * std::fabs(a) + 1e-4);
  };
  for (const float a : {2.5f, 3.5f, 4.5f}) expect(a, 0.5f);
  for (const float b : {0.25f, 0.75f, 7.0f}) expect(2.5f, b);
  const uint64_t before = compiled();
  for (const float a : {9.0f, 11.0f, 13.0f})
    for (const float b : {-9.0f, -11.0f, -13.0f}) expect(a, b);
  EXPECT_EQ(compiled(), before);
}

// A Shrink or Pad of the same size that begins elsewhere.
Id moved(Graph& g, Id id, Id source, int call) {
  const Node n = g[id];
  const auto list = g.arg_list(id);
  std::vector<int64_t> bounds(list.begin(), list.end());
  Shapes shapes(g);
  const auto from = shapes[source];
  for (size_t i = 0; i < from.size(); ++i) {
    const int64_t first = bounds[2 * i], second = bounds[2 * i + 1];
    const int64_t most = n.op == Op::Pad ? first + second : from[i] - (second - first);
    bounds[2 * i] = (first + call) % (most + 1);
    bounds[2 * i + 1] = n.op == Op::Pad ? most - bounds[2 * i] : second - first + bounds[2 * i];
  }
  return g.add(n.op, n.dtype, {source}, g.list(bounds));
}

// The graph of `root` with other numbers: each ordinary constant times 1 + call / 8.
Id varied(Graph& g, Id root, int call) {
  Reachable reachable;
  std::vector<Id> nodes = reachable.from(g, std::span(&root, 1));
  std::unordered_map<Id, Id> now;
  for (const Id id : nodes) {
    const Node n = g[id];
    if (n.op == Op::Const && engine::is_ordinary(n.arg, n.dtype)) {
      now[id] = is_float(n.dtype)
                    ? g.constant(n.dtype, const_float(g, id) * (1 + call / 8.0))
                    : g.constant(n.dtype, const_int(g, id) + (call != 0 ? 5 + call : 0));
      continue;
    }
    std::vector<Id> sources;
    for (const Id source : g.sources(id)) sources.push_back(now.at(source));
    if (n.op == Op::Shrink || n.op == Op::Pad) {
      now[id] = moved(g, id, sources[0], call);
      continue;
    }
    now[id] = sources.empty() ? id : g.with_sources(id, sources);
  }
  return now.at(root);
}

std::vector<Bytes> results_of(const std::string& device, uint64_t seed, int calls) {
  engine::Session& session = engine::Session::current();
  session.clear_caches();
  std::vector<Bytes> results;
  for (int call = 0; call < calls; ++call) {
    std::vector<engine::StatePtr> states;
    std::vector<engine::TensorState*> pointers;
    {
      const engine::Session::Lock lock(session);
      for (const e2e::Known& root :
           e2e::RandomGraph(session, session.device_number(device), seed).build(24)) {
        states.push_back(session.make(varied(session.graph(), root.node, call)));
        pointers.push_back(states.back().get());
      }
    }
    session.realize(pointers);
    for (const engine::StatePtr& state : states) {
      size_t bytes;
      {
        const engine::Session::Lock lock(session);
        bytes = static_cast<size_t>(element_count(session.shape(state->node))) *
                size_of(strong(session.graph()[state->node].dtype));
      }
      session.read(*state, results.emplace_back(bytes));
    }
  }
  return results;
}

// Multiply-adds are fused as for constants, too.
TEST_F(Numbers, OfRandomGraphsGiveTheBitsOfConstants) {
  for (const std::string& device : devices_at_hand()) {
    const bool is_quick = device == "CPU:0" || device == "REFERENCE:0";
    for (uint64_t seed = 1; seed <= (is_quick ? 40 : 4); ++seed) {
      const std::vector<Bytes> taken = results_of(device, seed, 4);
      const SettingScope scope = with_constants();
      EXPECT_TRUE(taken == results_of(device, seed, 4)) << device << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace plugrad

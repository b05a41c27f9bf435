// Attention is one kernel over blocks of queries that never stores the scores, and equals attention
// with stored scores on every device.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/settings.h"
#include "devices/at_hand.h"
#include "engine/session.h"
#include "plugrad/plugrad.h"

namespace plugrad {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Case {
  const char* name;
  int64_t heads = 2, queries = 64, keys = 64, width = 4, columns = 8;
  int64_t key_heads = 2;  // fewer: shared by groups of query heads
  bool causal = false;
  enum class Mask : uint8_t { None, Bool, Added } mask = Mask::None;
  DType dtype = DType::F32;
  double tolerance = 2e-6;
  float special = 0;  // value of one element of the queries
};
using Mask = Case::Mask;

struct Inputs {
  std::vector<float> q, k, v, mask;

  explicit Inputs(const Case& c)
      : q(count(c.heads * c.queries * c.width)),
        k(count(c.key_heads * c.keys * c.width)),
        v(count(c.key_heads * c.keys * c.columns)),
        mask(count(c.queries * c.keys)) {
    for (std::vector<float>* values : {&q, &k, &v, &mask})
      for (float& x : *values)
        x = std::floor(std::uniform_real_distribution<float>(-32, 32)(random)) / 16;
    if (c.mask == Mask::Bool)
      for (float& x : mask) x = x > 0;
    for (int64_t j = 0; j < c.keys; ++j)  // row 3 is fully masked
      if (c.queries > 3) mask[count(3 * c.keys + j)] = c.mask == Mask::Bool ? 0 : -kInf;
    if (c.special != 0) q[count(5 * c.width)] = c.special;
  }
  static size_t count(int64_t n) { return static_cast<size_t>(n); }
  std::minstd_rand random{11};
};

// One score in double; -inf if masked.
double score(const Case& c, const Inputs& in, int64_t head, int64_t i, int64_t j) {
  const int64_t key_head = head / (c.heads / c.key_heads);
  double sum = 0;
  for (int64_t e = 0; e < c.width; ++e)
    sum += double{in.q[static_cast<size_t>((head * c.queries + i) * c.width + e)]} *
           double{in.k[static_cast<size_t>((key_head * c.keys + j) * c.width + e)]};
  sum /= std::sqrt(static_cast<double>(c.width));
  const double mask = in.mask[static_cast<size_t>(i * c.keys + j)];
  if ((c.causal && j > i) || (c.mask == Mask::Bool && mask == 0)) return -INFINITY;
  return c.mask == Mask::Added ? sum + mask : sum;
}

// A row of weights; zeros if fully masked.
std::vector<double> weights(const Case& c, const Inputs& in, int64_t head, int64_t i) {
  std::vector<double> w;
  double top = -INFINITY, sum = 0;
  for (int64_t j = 0; j < c.keys; ++j) {
    w.push_back(score(c, in, head, i, j));
    top = std::isnan(w.back()) || w.back() > top ? w.back() : top;
  }
  for (double& x : w) sum += x = std::exp(x - (top == -INFINITY && c.mask != Mask::None ? 0 : top));
  for (double& x : w) x /= sum == 0 ? 1 : sum;
  return w;
}

std::vector<double> expected(const Case& c, const Inputs& in) {
  std::vector<double> out;
  for (int64_t head = 0; head < c.heads; ++head)
    for (int64_t i = 0; i < c.queries; ++i) {
      const std::vector<double> w = weights(c, in, head, i);
      const int64_t first = head / (c.heads / c.key_heads) * c.keys;
      for (int64_t d = 0; d < c.columns; ++d) {
        double sum = 0;
        for (int64_t j = 0; j < c.keys; ++j)
          sum += w[static_cast<size_t>(j)] *
                 double{in.v[static_cast<size_t>((first + j) * c.columns + d)]};
        out.push_back(sum);
      }
    }
  return out;
}

Tensor attend(const Case& c, const Inputs& in) {
  const auto tensor = [&](const std::vector<float>& values, Shape shape) {
    return Tensor::from(values, std::move(shape)).cast(c.dtype).contiguous();
  };
  Tensor mask;
  if (c.mask != Mask::None) mask = Tensor::from(in.mask, {c.queries, c.keys});
  if (c.mask == Mask::Bool) mask = (mask != 0).contiguous();
  const Tensor q = tensor(in.q, {1, c.heads, c.queries, c.width}),
               k = tensor(in.k, {1, c.key_heads, c.keys, c.width}),
               v = tensor(in.v, {1, c.key_heads, c.keys, c.columns});
  for (const Tensor& t : {q, k, v}) t.realize();
  if (mask.defined()) mask.realize();
  return scaled_dot_product_attention(q, k, v, mask, c.causal, 0, c.key_heads < c.heads);
}

void expect_near(const std::vector<float>& values, const std::vector<double>& right,
                 double tolerance) {
  ASSERT_EQ(values.size(), right.size());
  for (size_t i = 0; i < right.size(); ++i) {
    ASSERT_EQ(std::isnan(values[i]), std::isnan(right[i])) << i;
    if (!std::isnan(right[i])) {
      ASSERT_NEAR(values[i], right[i], tolerance) << i;
    }
  }
}

class Attention : public testing::TestWithParam<std::tuple<std::string, Case>> {
 protected:
  void SetUp() override { Device::set_default_device(std::get<0>(GetParam())); }
  void TearDown() override { Device::set_default_device(before_); }
  std::string before_ = Device::default_device();
};

TEST_P(Attention, IsWhatStoredScoresGive) {
  const auto& [device, c] = GetParam();
  const Inputs in(c);
  const Tensor y = attend(c, in);
  expect_near(y.cast(DType::F32).to_vector<float>(), expected(c, in), c.tolerance);
}

const Case kCases[] = {
    {.name = "plain"},
    {.name = "primes", .queries = 61, .keys = 67},
    {.name = "one_query", .queries = 1},
    {.name = "one_key", .queries = 64, .keys = 1},
    {.name = "three_keys", .keys = 3},
    {.name = "no_keys", .keys = 0},
    {.name = "one_column", .columns = 1},
    {.name = "causal", .causal = true},
    {.name = "causal_primes", .queries = 71, .keys = 59, .causal = true},
    {.name = "bool_mask", .mask = Mask::Bool},
    {.name = "added_mask", .queries = 67, .mask = Mask::Added},
    {.name = "shared_keys", .heads = 6, .key_heads = 2},
    {.name = "halves", .dtype = DType::F16, .tolerance = 2e-3},
    {.name = "bf16", .dtype = DType::BF16, .tolerance = 2e-2},
    {.name = "nan", .special = NAN},
    {.name = "infinite", .special = kInf},
    {.name = "wide_columns",
     .heads = 1,
     .queries = 129,
     .keys = 130,
     .width = 8,
     .columns = 17,
     .key_heads = 1},
};

INSTANTIATE_TEST_SUITE_P(Devices, Attention,
                         testing::Combine(testing::ValuesIn(devices_at_hand()),
                                          testing::ValuesIn(kCases)),
                         [](const auto& test) {
                           return test_name(std::get<0>(test.param)) + "_" +
                                  std::get<1>(test.param).name;
                         });

class AttentionOf : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { Device::set_default_device(GetParam()); }
  void TearDown() override { Device::set_default_device(before_); }
  std::string before_ = Device::default_device();
};
INSTANTIATE_TEST_SUITE_P(Devices, AttentionOf, testing::ValuesIn(devices_at_hand()),
                         [](const auto& test) { return test_name(test.param); });

// The dropout mask is random, and must be the same in the gradient.
TEST_P(AttentionOf, DropsTheWeightsThatStoredOnesDrop) {
  const Case c{.name = "dropout"};
  const Inputs in(c);
  const Tensor q = Tensor::from(in.q, {c.heads, c.queries, c.width}),
               k = Tensor::from(in.k, {c.heads, c.keys, c.width}),
               v = Tensor::from(in.v, {c.heads, c.keys, c.columns});
  Tensor::manual_seed(7);
  const std::vector<float> together =
      scaled_dot_product_attention(q, k, v, {}, false, 0.5).to_vector<float>();
  Tensor::manual_seed(7);
  const Tensor stored = (matmul(q, k.transpose()) * 0.5).softmax().contiguous().realize();
  const std::vector<float> apart = matmul(stored.dropout(0.5), v).to_vector<float>();
  const std::vector<float> whole = scaled_dot_product_attention(q, k, v).to_vector<float>();
  double change = 0;
  for (size_t i = 0; i < apart.size(); ++i) {
    ASSERT_NEAR(together[i], apart[i], 4e-6) << i;
    change = std::max(change, std::abs(double{together[i]} - double{whole[i]}));
  }
  EXPECT_GT(change, 0.1) << "nothing was left out";
}

// On the CPU; devices with groups store the scores.
TEST(AttentionKernels, AreOne) {
  for (const Case& c : kCases) {
    const bool is_long = std::min(c.queries, c.keys) > 32;
    if (!is_long || c.columns <= 1) continue;
    EXPECT_EQ(attend(c, Inputs(c)).schedule().size(), 1u) << c.name;
  }
}

TEST(AttentionKernels, StoreNoScoresOfLongSequences) {
  const Tensor q = Tensor::rand({1, 8192, 64}).realize();
  const Tensor y = scaled_dot_product_attention(q, q, q);
  engine::Session& session = engine::Session::current();
  session.collect();
  const uint64_t used = session.statistics().value_bytes;
  // The result has 2 MiB; the scores would need 256 MiB.
  const SettingScope tight([&](Settings& s) { s.memory_limit_bytes = used + (4 << 20); });
  y.realize();
  EXPECT_EQ(session.statistics().value_bytes, used + (2 << 20));
  EXPECT_TRUE(std::isfinite(y.sum().item<float>()));
}

// The gradient needs the weights, which are stored once.
TEST(AttentionKernels, GradientsAreThoseOfStoredScores) {
  const Case c{.name = "gradient"};
  const Inputs in(c);
  const auto gradient = [&](bool apart) {
    Tensor q = Tensor::from(in.q, {c.heads, c.queries, c.width}).requires_grad_();
    const Tensor k = Tensor::from(in.k, {c.heads, c.keys, c.width}),
                 v = Tensor::from(in.v, {c.heads, c.keys, c.columns});
    Tensor y = scaled_dot_product_attention(q, k, v);
    if (apart) y = matmul((matmul(q, k.transpose()) * 0.5).contiguous().softmax(), v);
    y.square().sum().backward();
    return q.grad().to_vector<float>();
  };
  const std::vector<float> together = gradient(false), apart = gradient(true);
  for (size_t i = 0; i < apart.size(); ++i) ASSERT_NEAR(together[i], apart[i], 1e-5) << i;
}

}  // namespace
}  // namespace plugrad

// A function of tensors, called with changing data both eagerly and jitted. The results must be
// equal.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/settings.h"
#include "engine/session.h"
#include "plugrad/plugrad.h"

namespace plugrad {

using Tensors = std::vector<Tensor>;
using Step = std::function<Tensors(const Tensors&)>;

struct ReplayCase {
  std::string name;
  std::function<Step()> make;             // with its own state, equal for each call
  std::function<Tensors(int)> arguments;  // of a call, by its number

  friend void PrintTo(const ReplayCase& each, std::ostream* out) { *out << each.name; }
};

/// A case without state.
inline ReplayCase function_case(std::string name, Step step,
                                std::function<Tensors(int)> arguments) {
  return {std::move(name), [step = std::move(step)] { return step; }, std::move(arguments)};
}

/// A module or an optimiser that outlives the function that made it.
template <class T, class... Arguments>
std::shared_ptr<T> kept(Arguments&&... arguments) {
  return std::make_shared<T>(std::forward<Arguments>(arguments)...);
}

/// Changing numbers, in about ±3.
inline Tensor numbers(const Shape& shape, int call, double by = 0.7) {
  std::vector<float> values(static_cast<size_t>(element_count(shape)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(std::sin(by * static_cast<double>(i) + 1.3 * call) * 3);
  return Tensor::from(values, shape);
}

/// Changing indices below `rows`, some of them equal.
inline Tensor places(const Shape& shape, int64_t rows, int call) {
  std::vector<int32_t> values(static_cast<size_t>(element_count(shape)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<int32_t>((static_cast<int64_t>(i) * 7919 + call * 104729) % rows);
  return Tensor::from(values, shape);
}

/// One argument of changing numbers.
inline std::function<Tensors(int)> rows(const Shape& shape) {
  return [shape](int call) { return Tensors{numbers(shape, call)}; };
}

/// Equal bits where schedules are fixed, and as near as reordered sums are elsewhere.
inline void expect_equal(const Tensor& got, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(to_string(got.shape()), to_string(expected.shape())) << what;
  ASSERT_EQ(got.dtype(), expected.dtype()) << what;
  if (got.numel() == 0) return;
  const std::vector<double> a = got.to_vector<double>(), b = expected.to_vector<double>();
  const bool exact = settings().deterministic || !is_float(got.dtype());
  double most = 0;
  for (double v : b)
    if (std::isfinite(v)) most = std::max(most, std::abs(v));
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof a[i]) == 0) continue;
    ASSERT_FALSE(exact) << what << ": element " << i << " is " << a[i] << ", not " << b[i];
    ASSERT_NEAR(a[i], b[i], 2e-5 * (most + 1)) << what << ": element " << i;
  }
}

inline void realize_all(const Tensors& tensors) {
  Tensors defined;
  for (const Tensor& t : tensors)
    if (t.defined()) defined.push_back(t);
  Tensor::realize(defined);
}

constexpr int kReplayCalls = 5;

/// Runs the case as it is and jitted, and expects two runs of the function and equal results.
inline void expect_replays(const ReplayCase& each) {
  Tensor::manual_seed(7);
  const Step plain = each.make();
  Tensor::manual_seed(7);
  const Step own = each.make();
  int runs = 0;
  const auto step = jit([&](const Tensors& given) {
    ++runs;
    return own(given);
  });
  for (int call = 0; call < kReplayCalls; ++call) {
    Tensors given = each.arguments(call);
    realize_all(given);
    Tensor::manual_seed(100 + static_cast<uint64_t>(call));
    const Tensors expected = plain(given);
    realize_all(expected);
    given = each.arguments(call);
    Tensor::manual_seed(100 + static_cast<uint64_t>(call));
    const Tensors got = step(given);
    ASSERT_EQ(got.size(), expected.size()) << each.name;
    for (size_t i = 0; i < got.size(); ++i)
      expect_equal(got[i], expected[i],
                   each.name + ", call " + std::to_string(call) + ", result " + std::to_string(i));
  }
  EXPECT_EQ(runs, 2) << each.name;
  EXPECT_EQ(step.recordings(), 1u) << each.name;
}

/// JIT=2 finds no difference between the function and its replay.
inline void expect_no_difference(const ReplayCase& each) {
  const SettingScope compared([](Settings& s) { s.jit = 2; });
  Tensor::manual_seed(7);
  const auto step = jit(each.make());
  for (int call = 0; call < kReplayCalls; ++call)
    ASSERT_NO_THROW(realize_all(step(each.arguments(call)))) << each.name;
}

/// As the name of a test.
inline std::string name_of(const std::string& words) {
  std::string name;
  for (const char c : words) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

class Replays : public testing::TestWithParam<ReplayCase> {};

inline std::string name_of_case(const testing::TestParamInfo<ReplayCase>& info) {
  return name_of(info.param.name);
}

}  // namespace plugrad

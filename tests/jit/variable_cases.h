// Functions of tensors with variable sizes beside the same functions of tensors with fixed sizes.
#pragma once

#include <cmath>
#include <limits>
#include <optional>

#include "jit/jit_test.h"

namespace plugrad {

inline constexpr int64_t kMost = 11;
inline const Variable& length() {
  static const Variable variable("length", 1, kMost);
  return variable;
}

/// Numbers of changing sign and magnitude, different for each seed.
inline Tensor numbers(const Shape& shape, int seed = 0) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i) + seed) * 3);
  return Tensor::from(values, shape);
}

/// As fit(), with `behind` in memory behind the elements, e.g. NaN, which would break a sum or a
/// maximum.
inline Tensor fit_before(const Tensor& x, int64_t axis, double behind) {
  std::vector<std::optional<int64_t>> sizes(static_cast<size_t>(x.ndim()));
  sizes[static_cast<size_t>(axis)] = kMost;
  const Tensor room = x.pad_to(sizes, behind).realize();
  return length().limit(room, axis, x.size(axis));
}

inline Tensor fit_in_nans(const Tensor& x, int64_t axis) {
  return fit_before(x, axis, std::numeric_limits<double>::quiet_NaN());
}

inline void expect_near(const Tensor& got, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(to_string(got.bound_shape()), to_string(expected.shape())) << what;
  const std::vector<float> a = floats(got), b = floats(expected);
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i] &&
        !(std::isnan(a[i]) && std::isnan(b[i]))) {  // infinities are equal, and not near
      ASSERT_NEAR(a[i], b[i], 1e-5f * (1 + std::abs(b[i]))) << what << " at " << i;
    }
}

using Function = std::function<Tensor(const Tensor&)>;
struct Case {
  std::string name;
  Function function;  // of x (n, 6)
};

class OnDevice {
 public:
  explicit OnDevice(const char* name) { Device::set_default_device(name); }
  ~OnDevice() { Device::set_default_device(""); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
};

/// Records at sizes 3 and 5, and replays at `sizes`.
inline void expect_one_recording(const Case& each, const std::vector<int64_t>& sizes) {
  auto step = jit(each.function);
  for (int64_t n : {3, 5}) step(length().fit(numbers({n, 6}), 0));
  const auto before = engine::Session::current().statistics();
  std::vector<Tensor> results;
  for (int64_t n : sizes)
    results.push_back(step(length().fit(numbers({n, 6}, static_cast<int>(n)), 0)));
  const auto after = engine::Session::current().statistics();
  EXPECT_EQ(step.recordings(), 1u) << each.name;
  EXPECT_EQ(after.plans_made, before.plans_made) << each.name;
  EXPECT_EQ(after.kernels_compiled, before.kernels_compiled) << each.name;
  for (size_t i = 0; i < sizes.size(); ++i)
    expect_near(results[i], each.function(numbers({sizes[i], 6}, static_cast<int>(sizes[i]))),
                each.name + " of " + std::to_string(sizes[i]));
}

}  // namespace plugrad

// Compiled form of small expressions. Also runs with NOOPT=1 and with PLUGRAD_FAST_MATH=1.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "plugrad/plugrad.h"

namespace plugrad {
namespace {

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && std::string(value) == "1";
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

std::vector<int> integers(const Tensor& t) {
  return t.to_vector<int>();
}

TEST(Compiler, integers_plus_3_plus_4_is_one_addition_of_7) {
  const Tensor t = Tensor::from({1, 2, 3, 4}).realize(), sum = t + 3 + 4;
  const std::vector<Kernel> kernels = sum.kernelize();
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(count(kernels[0].ast(), " = add "), 1u) << kernels[0];
  EXPECT_EQ(count(kernels[0].ast(), "const i32 7\n"), 1u) << kernels[0];
  EXPECT_EQ(count(kernels[0].ast(), "const i32"), 1u) << kernels[0];
  EXPECT_EQ(integers(sum), (std::vector<int>{8, 9, 10, 11}));
}

// In C every kernel runs a span of groups, one after another: that is no loop of the kernel.
TEST(Compiler, four_integers_plus_7_have_a_loop_only_with_NOOPT) {
  const Tensor sum = Tensor::from({1, 2, 3, 4}).realize() + 7;
  const std::vector<Kernel> kernels = sum.schedule();
  ASSERT_EQ(kernels.size(), 1u);
  ASSERT_EQ(kernels[0].ranges().size(), 1u);
  EXPECT_EQ(kernels[0].ranges()[0].size, 4);
  EXPECT_FALSE(kernels[0].ranges()[0].reduces);
  EXPECT_EQ(count(kernels[0].source(), "for ("), is_set("NOOPT") ? 2u : 1u) << kernels[0];
  EXPECT_EQ(integers(sum), (std::vector<int>{8, 9, 10, 11}));
}

TEST(Compiler, integers_times_1_plus_0_are_stored_as_they_are) {
  const Tensor x = Tensor::from({1, 2, 3, 4}).realize(), same = x * 1 + 0;
  for (const Kernel& kernel : same.kernelize()) {
    EXPECT_EQ(count(kernel.ast(), " = add i32"), 0u) << kernel;
    EXPECT_EQ(count(kernel.ast(), " = mul i32"), 0u) << kernel;
  }
  EXPECT_EQ(integers(same), integers(x));
}

TEST(Compiler, the_zero_added_to_floats_stays_unless_fast) {
  const Tensor x = Tensor::from({-0.f, 1.f}).realize(), same = x * 1 + 0;
  size_t additions = 0, products = 0;
  for (const Kernel& kernel : same.kernelize()) {
    additions += count(kernel.ast(), " = add f32");
    products += count(kernel.ast(), " = mul f32");
  }
  const bool fast = is_set("PLUGRAD_FAST_MATH");
  EXPECT_EQ(additions, fast ? 0u : 1u);
  EXPECT_EQ(products, 0u);
  EXPECT_EQ(std::signbit(same.to_vector<float>()[0]), fast);
}

TEST(Compiler, kernelize_shows_what_schedule_compiles) {
  const Tensor x = Tensor::rand({8, 16}).realize();
  const Tensor y = (x * 2 + 1).relu().sum(1);
  const std::vector<Kernel> planned = y.kernelize(), compiled = y.schedule();
  ASSERT_EQ(planned.size(), 1u);
  ASSERT_EQ(compiled.size(), 1u);
  EXPECT_EQ(planned[0].ast(), compiled[0].ast());
  EXPECT_TRUE(planned[0].source().empty());
  EXPECT_FALSE(compiled[0].source().empty());
  ASSERT_EQ(planned[0].ranges().size(), 2u);
  EXPECT_EQ(planned[0].ranges()[1].size, 16);
  EXPECT_TRUE(planned[0].ranges()[1].reduces);
  EXPECT_FALSE(y.is_realized());
}

}  // namespace
}  // namespace plugrad

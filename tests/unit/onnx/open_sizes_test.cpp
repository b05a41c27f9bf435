// Models whose sizes differ from call to call.
#include "unit/onnx/open_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "plugrad/onnx.h"
#include "plugrad/plugrad.h"
#include "tensor/sizes/size_arithmetic.h"

namespace plugrad::onnx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// y = x times the sizes of x, so that the number of rows is among the elements.
Message times_sizes() {
  return Message()
      .message(1, node("Shape", {"x"}, {"shape"}))
      .message(1, node("Cast", {"shape"}, {"sizes"}).message(5, attribute("to", int64_t{1})))
      .message(1, node("Mul", {"x", "sizes"}, {"y"}))
      .text(2, "times_sizes")
      .message(11, value("x", {-1, 2}))
      .message(12, value("y", {-1, 2}));
}

Tensor rows(int64_t count) {
  return Tensor::arange(2 * count, DType::F32).reshape({count, 2});
}

void expect_times_sizes(const Model& model, int64_t count) {
  const Tensor y = model({rows(count)})[0];
  EXPECT_EQ(y.shape(), (Shape{count, 2}));
  std::vector<float> wanted;
  for (int64_t i = 0; i < 2 * count; ++i)
    wanted.push_back(static_cast<float>(i * (i % 2 == 0 ? count : 2)));
  EXPECT_EQ(y.to_vector<float>(), wanted) << count << " rows";
}

std::string open_size_error(const Model& model, const Tensor& x) {
  try {
    model({x});
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// Plans of the model's call, without that of its input.
uint64_t plans_of_call(const Model& model, int64_t count) {
  const Tensor x = rows(count).realize();
  const uint64_t before = plans();
  model({x})[0].to_bytes();
  return plans() - before;
}

TEST(OpenSizes, one_recording_serves_further_sizes) {
  const Model model = loaded(times_sizes());
  for (const int64_t count : {3, 5}) {
    expect_times_sizes(model, count);
    EXPECT_EQ(plans_of_call(model, count), 0u) << "replayed";
  }
  EXPECT_GT(plans_of_call(model, 12), 0u) << "recorded for 1 to 64 rows";
  for (const int64_t count : {64, 2, 7, 1, 12, 3}) {
    EXPECT_EQ(plans_of_call(model, count), 0u) << count;
    expect_times_sizes(model, count);
  }
  expect_times_sizes(model, 65);
  for (const int64_t count : {256, 65, 4}) {
    EXPECT_EQ(plans_of_call(model, count), 0u) << "recorded for 1 to 256 rows";
    expect_times_sizes(model, count);
  }
  expect_times_sizes(model, 0);
}

void keep_line(std::string_view text, void* lines) {
  static_cast<std::vector<std::string>*>(lines)->emplace_back(text);
}

// Four bounds, each four times the last; then each size is recorded, and a line says so.
TEST(OpenSizes, bounds_end) {
  std::vector<std::string> lines;
  set_log_sink(keep_line, &lines);
  const Model model = loaded(times_sizes());
  std::vector<int64_t> recorded;
  for (const int64_t count : {1, 2, 3, 64, 65, 256, 257, 1024, 1025, 4096, 4097, 4098, 7})
    if (plans_of_call(model, count) > 0) recorded.push_back(count);
  EXPECT_THAT(recorded, ElementsAre(1, 2, 3, 65, 257, 1025, 4097, 4098, 7));
  expect_times_sizes(model, 4097);
  set_log_sink(nullptr, nullptr);
  EXPECT_THAT(lines,
              ElementsAre(HasSubstr("size \"n\" has had 12 values, and the model is recorded "
                                    "for each of them: it grew beyond 4096")));
}

// A batch of one size beside a last one, and a call of the same size again and again.
TEST(OpenSizes, a_size_that_comes_often_is_recorded_alone) {
  const Model model = loaded(times_sizes());
  for (const int64_t count : {2, 3, 30}) plans_of_call(model, count);
  std::vector<int> recorded;
  for (int call = 1; call <= 12; ++call)
    if (plans_of_call(model, 32) > 0) recorded.push_back(call);
  EXPECT_THAT(recorded, ElementsAre(8));
  for (const int64_t count : {31, 32, 9}) EXPECT_EQ(plans_of_call(model, count), 0u);
  expect_times_sizes(model, 32);
}

TEST(OpenSizes, two_sizes_vary) {
  const Message graph = Message()
                            .message(1, node("Relu", {"x"}, {"y"}))
                            .text(2, "relu")
                            .message(11, named_value("x", {"rows", "columns"}))
                            .message(12, value("y", Message().message(1, Message().integer(1, 1))));
  const Model model = loaded(graph);
  const auto plans_for = [&](int64_t count, int64_t columns) {
    const Tensor x = Tensor::ones({count, columns}).contiguous().realize();
    const uint64_t before = plans();
    const Tensor y = model({x})[0];
    EXPECT_EQ(y.shape(), (Shape{count, columns}));
    EXPECT_EQ(y.sum().item<float>(), static_cast<float>(count * columns));
    return plans() - before > 1;  // the sum has one
  };
  for (const int64_t columns : {3, 5, 7}) EXPECT_TRUE(plans_for(2, columns));
  EXPECT_FALSE(plans_for(2, 3)) << "alone";
  EXPECT_FALSE(plans_for(2, 4));
  EXPECT_TRUE(plans_for(3, 4)) << "3 rows and up to 64 columns";
  EXPECT_TRUE(plans_for(4, 9)) << "up to 64 rows and 64 columns";
  for (const auto& [count, columns] : {std::pair(1, 1), {64, 64}, {5, 2}, {2, 33}})
    EXPECT_FALSE(plans_for(count, columns)) << count << " by " << columns;
  EXPECT_TRUE(plans_for(0, 9)) << "no rows, up to 64 columns";
  EXPECT_FALSE(plans_for(0, 12));
}

TEST(OpenSizes, bounds_hold_from_the_first_call_on) {
  const Model model = loaded(times_sizes(), {{"n", {2, 8}}});
  EXPECT_GT(plans_of_call(model, 3), 0u);
  for (const int64_t count : {8, 2, 5}) {
    EXPECT_EQ(plans_of_call(model, count), 0u);
    expect_times_sizes(model, count);
  }
  EXPECT_THAT(open_size_error(model, rows(9)),
              HasSubstr("size \"n\" is 9; the model was loaded for 2 to 8"));
  EXPECT_THAT(open_size_error(model, rows(1)), HasSubstr("size \"n\" is 1"));
}

TEST(OpenSizes, a_name_with_two_sizes_is_an_error_within_bounds) {
  const Message graph = Message()
                            .message(1, node("Add", {"x", "b"}, {"y"}))
                            .text(2, "sum")
                            .message(11, value("x", {-1}))
                            .message(11, value("b", {-1}))
                            .message(12, value("y", {-1}));
  const Tensor one = Tensor::ones({1}), three = Tensor::ones({3});
  EXPECT_EQ(loaded(graph)({one, three})[0].shape(), Shape{3}) << "as the operator broadcasts";
  try {
    loaded(graph, {{"n", {1, 4}}})({one, three});
    FAIL() << "the sizes were taken";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("inputs \"x\" (axis 0) and \"b\" (axis 0) share the size \"n\", which is "
                          "1 in one and 3 in the other"));
  }
  try {
    loaded(graph)({Tensor::ones({4}), three});
    FAIL() << "sizes that do not broadcast were added";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("Add node \"the Add\""));
    EXPECT_THAT(error.what(), HasSubstr("which is 4 in one and 3 in the other"));
  }
}

TEST(OpenSizes, bounds_may_name_an_axis) {
  const Model model = loaded(times_sizes(), {{"x.0", {2, 8}}});
  expect_times_sizes(model, 3);
  EXPECT_EQ(plans_of_call(model, 8), 0u);
  EXPECT_THAT(open_size_error(model, rows(9)), HasSubstr("size \"n\" is 9"));
}

// One row more or less makes another result: the axis goes if it has one element.
Message squeezed() {
  return Message()
      .message(1, node("Squeeze", {"x"}, {"y"}))
      .text(2, "squeezed")
      .message(11, value("x", {-1, 2}))
      .message(12, value("y", Message().message(1, Message().integer(1, 1))));
}

TEST(OpenSizes, models_that_need_each_size_are_recorded_for_it) {
  const Model model = loaded(squeezed());
  for (const int64_t count : {2, 3, 4, 5, 6, 1, 7}) {
    const Tensor y = model({rows(count)})[0];
    EXPECT_EQ(y.shape(), count == 1 ? Shape{2} : (Shape{count, 2}));
    EXPECT_EQ(y.to_vector<float>(), rows(count).to_vector<float>());
  }
  EXPECT_THAT(open_size_error(loaded(squeezed(), {{"n", {1, 8}}}), rows(3)),
              HasSubstr("one recording cannot serve all sizes of the bounds; load the model "
                        "without them: Squeeze node \"the Squeeze\""));
}

TEST(OpenSizes, bounds_that_do_not_fit_the_model_are_named) {
  const auto error_with = [](const SizeBounds& bounds) -> std::string {
    try {
      loaded(times_sizes(), bounds);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(error_with({{"rows", {1, 8}}}),
              HasSubstr("the model has no open size \"rows\"; it has: n"));
  EXPECT_THAT(error_with({{"n", {-1, 8}}}), HasSubstr("size \"n\" has the bounds -1 and 8"));
  EXPECT_THAT(error_with({{"n", {5, 3}}}), HasSubstr("size \"n\" has the bounds 5 and 3"));
  EXPECT_THAT(error_with({{"n", {1, int64_t{1} << 31}}}), HasSubstr("the largest from 2 to"));
  EXPECT_THAT(error_with({{"n", {1, 8}}, {"x.0", {1, 9}}}), HasSubstr("given bounds twice"));
  EXPECT_THAT(error_with({{"x.1", {1, 8}}}), HasSubstr("no open size \"x.1\""));
}

// The caller's own variable sizes stay in the results.
TEST(OpenSizes, inputs_may_have_variable_sizes) {
  const Model model = loaded(times_sizes());
  const Variable n("n", 1, 6);
  for (const int64_t count : {4, 6, 1}) {
    const Tensor y = model({n.fit(rows(count), 0)})[0];
    EXPECT_EQ(y.bound_shape(), (Shape{count, 2}));
    EXPECT_EQ(y.to_vector<float>()[0], 0);
    EXPECT_EQ(y.sum().item<float>(),
              static_cast<float>(count * count * (count - 1) + 2 * count * count));
  }
}

TEST(SizeArithmetic, expressions_have_bounds) {
  const Variable n("n", 2, 8);
  const Tensor x = n.fit(Tensor::zeros({3, 5}), 0);
  tensor::SizeArithmetic sizes;
  sizes.add(x);
  const auto size = sizes.of_axis(x, 0);
  ASSERT_TRUE(size);
  EXPECT_THAT((std::vector{size->least, size->most}), ElementsAre(2, 8));
  // The size twice, as the engine has it and by arithmetic.
  const auto twice = sizes.of_axis(x.reshape({-1}), 0);
  ASSERT_TRUE(twice);
  EXPECT_THAT((std::vector{twice->least, twice->most}), ElementsAre(10, 40));
  EXPECT_TRUE(sizes.with_size(Tensor::zeros({40}), 0, *twice));
  EXPECT_FALSE(sizes.with_size(Tensor::zeros({8, 5}).contiguous().realize(), 0, *size))
      << "eight rows are not as many as x has";
  EXPECT_FALSE(sizes.elements((Tensor::from<int64_t>({1, 2}) + 1).realize()))
      << "the elements are in the device's memory";
}

}  // namespace
}  // namespace plugrad::onnx

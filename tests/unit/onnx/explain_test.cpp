// Model::explain(): which calls were replays, and what differed in the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugrad/jit.h"
#include "plugrad/onnx.h"
#include "plugrad/plugrad.h"
#include "unit/onnx/open_sizes.h"

namespace plugrad::onnx {
namespace {

using testing::HasSubstr;

const std::string kOfShapes =
    "- each shape has a recording of its own until a size has had three values; bounds, given to "
    "load(), make one that serves all sizes from the first call on\n";

Tensor zeros(const Shape& shape, DType dtype = DType::F32) {
  return Tensor::zeros(shape, dtype).contiguous().realize();
}

// y = (x + 1) * 1, of any number of rows.
Message rows_plus_one() {
  return Message()
      .message(1, node("Add", {"x", "one"}, {"h"}))
      .message(1, node("Mul", {"h", "one"}, {"y"}))
      .text(2, "plus")
      .message(5, constant("one", {}, {1}))
      .message(11, named_value("x", {"n", "2"}))
      .message(12, named_value("y", {"n", "2"}));
}

TEST(ModelExplain, ReplaysAndShapes) {
  const Model model = loaded(rows_plus_one());
  EXPECT_EQ(model.explain(), "0 calls: 0 replayed one of 0 recordings, 0 ran to be recorded\n");
  for (const int64_t rows : {2, 2, 3, 3, 3}) model({zeros({rows, 2})});
  EXPECT_EQ(model.explain(),
            "5 calls: 3 replayed one of 2 recordings, 2 ran to be recorded\n"
            "call 1: the first of its kind\n"
            "call 3: the shape of \"x\" is (3, 2), was (2, 2)\n" +
                kOfShapes);
  for (const int64_t rows : {5, 7, 9}) model({zeros({rows, 2})});
  EXPECT_EQ(model.explain(),
            "8 calls: 5 replayed one of 3 recordings, 3 ran to be recorded\n"
            "call 1: the first of its kind\n"
            "call 3: the shape of \"x\" is (3, 2), was (2, 2)\n"
            "call 6: the shape of \"x\" is (up to 64, 2), was (3, 2)\n" +
                kOfShapes + "- size \"n\" varies from 1 to 64 in one recording\n");
}

TEST(ModelExplain, Bounds) {
  const Model model = loaded(rows_plus_one(), {{"n", {1, 16}}});
  for (const int64_t rows : {2, 3, 16}) model({zeros({rows, 2})});
  EXPECT_EQ(model.explain(),
            "3 calls: 2 replayed one of 1 recordings, 1 ran to be recorded\n"
            "call 1: the first of its kind\n"
            "- size \"n\" varies from 1 to 16 in one recording\n");
}

// The transposed rows are cut from the end: from where the number of rows decides.
TEST(ModelExplain, ANodeNeedsExactSizes) {
  const Model model = loaded(Message()
                                 .message(1, node("Det", {"x"}, {"y"}).text(3, "volume"))
                                 .text(2, "det")
                                 .message(11, named_value("x", {"n", "n"}))
                                 .message(12, named_value("y", {})));
  for (const int64_t rows : {2, 3, 4, 4}) model({zeros({rows, rows})});
  EXPECT_THAT(model.explain(),
              HasSubstr("4 calls: 1 replayed one of 3 recordings, 3 ran to be recorded\n"));
  EXPECT_THAT(model.explain(), HasSubstr("call 3: the shape of \"x\" is (4, 4), was (3, 3)\n"));
  EXPECT_THAT(model.explain(), HasSubstr("- size \"n\" is recorded for each value: Det node "
                                         "\"volume\""));
}

TEST(ModelExplain, ElementsOfAnInputThatDecide) {
  const Model model = loaded(Message()
                                 .message(1, node("Expand", {"one", "k"}, {"y"}))
                                 .text(2, "expand")
                                 .message(5, constant("one", {}, {1}))
                                 .message(11, value("k", tensor_type(kInt64, {2})))
                                 .message(12, value("y", {-1, -1})));
  for (const int64_t rows : {2, 3, 2}) model({Tensor::from({rows, int64_t{4}})});
  EXPECT_EQ(model.explain(),
            "3 calls: 1 replayed one of 2 recordings, 2 ran to be recorded\n"
            "call 1: the first of its kind\n"
            "call 2: \"k\" is [3, 4], was [2, 4]\n");
}

TEST(ModelExplain, Segments) {
  const Model model = loaded(
      Message()
          .message(1, node("Add", {"x", "one"}, {"h"}))
          .message(1, node("NonZero", {"h"}, {"places"}).text(3, "where"))
          .message(1, node("Cast", {"places"}, {"p"}).message(5, attribute("to", int64_t{1})))
          .message(1, node("Mul", {"p", "one"}, {"y"}))
          .text(2, "segments")
          .message(5, constant("one", {}, {1}))
          .message(11, value("x", {3}))
          .message(12, value("y", {1, -1})));
  for (const float last : {1.0F, 5.0F, -1.0F}) model({Tensor::from({1.0F, 2.0F, last})});
  EXPECT_EQ(
      model.explain(),
      "3 calls in 3 segments\n"
      "cut at NonZero node \"where\": the host computes it, of the elements of what it reads\n"
      "Add node \"the Add\": 2 replayed one of 1 recordings, 1 ran to be recorded\n"
      "call 1: the first of its kind\n"
      "nodes 3 to 4: 1 replayed one of 2 recordings, 2 ran to be recorded\n"
      "call 1: the first of its kind\n"
      "call 3: the shape of \"places\" is (1, 2), was (1, 3)\n" +
          kOfShapes);
}

TEST(ModelExplain, ElementsThatAreComputedDecide) {
  const Model model = loaded(
      Message()
          .message(1,
                   node("ReduceMax", {"x"}, {"most"}).message(5, attribute("keepdims", int64_t{0})))
          .message(1, node("Cast", {"most"}, {"count"}).message(5, attribute("to", int64_t{7})))
          .message(1, node("Range", {"zero", "count", "one"}, {"y"}).text(3, "upwards"))
          .text(2, "range")
          .message(5, integer_constant("zero", {}, {0}))
          .message(5, integer_constant("one", {}, {1}))
          .message(11, value("x", {3}))
          .message(12, value("y", tensor_type(kInt64, {-1}))));
  for (const float most : {2.0F, 4.0F, 2.0F}) model({Tensor::from({1.0F, most, 0.0F})});
  EXPECT_EQ(
      model.explain(),
      "3 calls in 2 segments\n"
      "cut before Range node \"upwards\": the elements of \"count\" decide, and each value is "
      "recorded\n"
      "nodes 1 to 2: 2 replayed one of 1 recordings, 1 ran to be recorded\n"
      "call 1: the first of its kind\n"
      "Range node \"upwards\": 1 replayed one of 2 recordings, 2 ran to be recorded\n"
      "call 1: the first of its kind\n"
      "call 2: \"count\" is [4], was [2]\n");
}

TEST(ModelExplain, Settings) {
  const Model model = loaded(rows_plus_one());
  model({zeros({2, 2})});
  const OptimisationScope schedules("none: ");
  model({zeros({2, 2})});
  EXPECT_THAT(model.explain(),
              HasSubstr("call 2: no recording of such a call is kept, or it has other settings\n"));
}

TEST(ModelExplain, InsideARecording) {
  const Model model = loaded(rows_plus_one());
  const auto step = jit([&](const Tensor& x) { return model({x})[0]; });
  for (int call = 0; call < 4; ++call) step(zeros({2, 2}));
  EXPECT_EQ(model.explain(), "2 calls: 0 replayed one of 1 recordings, 0 ran to be recorded\n");
}

TEST(ModelExplain, Strings) {
  const Model model = loaded(Message()
                                 .message(1, node("StringConcat", {"a", "a"}, {"y"}))
                                 .text(2, "strings")
                                 .message(11, value("a", tensor_type(kString, {1})))
                                 .message(12, value("y", tensor_type(kString, {1}))));
  model.run({Strings{{1}, {"a"}}});
  EXPECT_EQ(
      model.explain(),
      "1 calls, each recorded anew: an input or output of the model is no tensor of numbers\n");
}

}  // namespace
}  // namespace plugrad::onnx

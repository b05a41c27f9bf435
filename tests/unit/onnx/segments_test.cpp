// Models whose shapes or branches depend on computed elements: recorded in segments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugrad/onnx.h"
#include "plugrad/plugrad.h"
#include "unit/onnx/open_sizes.h"

namespace plugrad::onnx {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

constexpr int64_t kExperts = 3, kWidth = 4;

float gate_weight(int64_t row, int64_t column) {
  return row == column ? 1.0F : 0.0F;
}
float expert_weight(int64_t expert, int64_t row, int64_t column) {
  return static_cast<float>(expert + 1) * static_cast<float>(row + 2 * column + 1);
}

// Each row goes to the expert of its largest score, whose product is its result.
Message experts() {
  Message graph;
  std::vector<float> gate;
  for (int64_t i = 0; i < kWidth; ++i)
    for (int64_t e = 0; e < kExperts; ++e) gate.push_back(gate_weight(i, e));
  graph.message(1, node("MatMul", {"x", "gate"}, {"scores"}))
      .message(1, node("TopK", {"scores", "one"}, {"values", "best"}))
      .message(1, node("Mul", {"x", "zero_float"}, {"y0"}))
      .message(5, constant("gate", {kWidth, kExperts}, gate))
      .message(5, constant("zero_float", {}, {0}))
      .message(5, integer_constant("one", {1}, {1}))
      .message(5, integer_constant("zero", {}, {0}))
      .message(5, integer_constant("last", {1}, {-1}))
      .text(2, "experts")
      .message(11, value("x", {-1, kWidth}))
      .message(12, value("y" + std::to_string(kExperts), {-1, kWidth}));
  for (int64_t e = 0; e < kExperts; ++e) {
    const std::string n = std::to_string(e);
    std::vector<float> weights;
    for (int64_t i = 0; i < kWidth; ++i)
      for (int64_t k = 0; k < kWidth; ++k) weights.push_back(expert_weight(e, i, k));
    graph.message(5, integer_constant("number" + n, {}, {e}))
        .message(5, constant("w" + n, {kWidth, kWidth}, weights))
        .message(1, node("Equal", {"best", "number" + n}, {"is" + n}))
        .message(1, node("NonZero", {"is" + n}, {"places" + n}))
        .message(1, node("Gather", {"places" + n, "zero"}, {"rows" + n}))
        .message(1, node("Gather", {"x", "rows" + n}, {"x_of" + n}))
        .message(1, node("MatMul", {"x_of" + n, "w" + n}, {"product" + n}))
        .message(1, node("Unsqueeze", {"rows" + n, "last"}, {"at" + n}))
        .message(1, node("ScatterND", {"y" + n, "at" + n, "product" + n},
                         {"y" + std::to_string(e + 1)}));
  }
  return graph;
}

// Rows for these experts; the other elements differ with the seed.
std::vector<float> rows_for(const std::vector<int64_t>& of_rows, int64_t seed) {
  std::vector<float> x;
  for (size_t row = 0; row < of_rows.size(); ++row)
    for (int64_t i = 0; i < kWidth; ++i)
      x.push_back(i == of_rows[row]
                      ? 9.0F
                      : static_cast<float>((seed + 3 * static_cast<int64_t>(row) + i) % 5));
  return x;
}

void expect_experts(const Model& model, const std::vector<int64_t>& of_rows, int64_t seed) {
  const std::vector<float> x = rows_for(of_rows, seed);
  std::vector<float> wanted;
  for (size_t row = 0; row < of_rows.size(); ++row)
    for (int64_t k = 0; k < kWidth; ++k) {
      float sum = 0;
      for (int64_t i = 0; i < kWidth; ++i)
        sum += x[row * kWidth + static_cast<size_t>(i)] * expert_weight(of_rows[row], i, k);
      wanted.push_back(sum);
    }
  const auto count = static_cast<int64_t>(of_rows.size());
  const Tensor given = Tensor::from(x).reshape({count, kWidth});
  EXPECT_THAT(model({given})[0].to_vector<float>(), ElementsAreArray(wanted));
}

TEST(Segments, experts_are_recorded_for_their_counts) {
  const Model model = loaded(experts());
  expect_experts(model, {0, 1, 2, 0, 1}, 0);
  expect_experts(model, {1, 1, 0, 2, 0}, 1);
  const uint64_t before = plans();
  expect_experts(model, {2, 0, 0, 1, 1}, 2);
  expect_experts(model, {0, 0, 1, 1, 2}, 3);
  EXPECT_EQ(plans(), before) << "the counts were recorded";
  expect_experts(model, {0, 0, 0, 0, 0}, 4);
  expect_experts(model, {2, 2, 2, 2, 1}, 5);
  expect_experts(model, {1, 0, 2, 1, 0}, 6);
}

// A count that differs is a size that differs: variable from its third value on.
TEST(Segments, one_recording_serves_further_counts) {
  const Model model = loaded(experts());
  const auto call = [&](int64_t first) {
    std::vector<int64_t> of_rows(20, 1);
    std::fill_n(of_rows.begin(), first, 0);
    expect_experts(model, of_rows, first);
  };
  for (const int64_t first : {1, 2, 3, 5}) call(first);
  const uint64_t before = plans();
  for (const int64_t first : {8, 12, 4, 19, 1, 6}) call(first);
  EXPECT_EQ(plans(), before);
}

TEST(Segments, many_counts_give_the_same_results) {
  const Model model = loaded(experts());
  for (int64_t first = 0; first <= 12; ++first)
    for (const int64_t seed : {0, 1}) {
      std::vector<int64_t> of_rows(12, 1);
      std::fill_n(of_rows.begin(), first, seed == 0 ? 0 : 2);
      expect_experts(model, of_rows, seed);
    }
}

// The boxes that are kept, moved by their scores.
Message detector(int64_t boxes) {
  return Message()
      .message(1, node("Mul", {"x", "two"}, {"boxes"}))
      .message(1, node("ReduceMax", {"x"}, {"highest"})
                      .message(5, attribute("axes", std::vector<int64_t>{2}))
                      .message(5, attribute("keepdims", int64_t{0})))
      .message(1, node("Unsqueeze", {"highest", "one"}, {"scores"}))
      .message(1, node("NonMaxSuppression", {"boxes", "scores", "most", "overlap"}, {"kept"}))
      .message(
          1,
          node("Gather", {"kept", "second"}, {"number"}).message(5, attribute("axis", int64_t{1})))
      .message(1, node("Squeeze", {"boxes", "zero"}, {"flat"}))
      .message(1, node("Gather", {"flat", "number"}, {"chosen"}))
      .message(1, node("Add", {"chosen", "two"}, {"y"}))
      .text(2, "detector")
      .message(5, constant("two", {}, {2}))
      .message(5, constant("overlap", {}, {0.5F}))
      .message(5, integer_constant("most", {}, {10}))
      .message(5, integer_constant("one", {1}, {1}))
      .message(5, integer_constant("zero", {1}, {0}))
      .message(5, integer_constant("second", {}, {2}))
      .message(11, value("x", {1, boxes, 4}))
      .message(12, value("y", {-1, 4}));
}

// Boxes along a line: those of equal places overlap, and the last of them has the largest score.
std::vector<float> boxes_at(const std::vector<int>& places) {
  std::vector<float> x;
  for (size_t i = 0; i < places.size(); ++i) {
    const auto at = static_cast<float>(10 * places[i]);
    const float slack = 0.25F * static_cast<float>(i);
    x.insert(x.end(), {at, 0.0F, at + 8, 8 + slack + at});
  }
  return x;
}

void expect_boxes(const Model& model, const std::vector<int>& places,
                  const std::vector<size_t>& kept) {
  const std::vector<float> x = boxes_at(places);
  std::vector<float> wanted;
  for (const size_t box : kept)
    for (size_t i = 0; i < 4; ++i) wanted.push_back(2 * x[4 * box + i] + 2);
  const Tensor given = Tensor::from(x).reshape({1, std::ssize(places), 4});
  EXPECT_THAT(model({given})[0].to_vector<float>(), ElementsAreArray(wanted));
}

TEST(Segments, a_detector_is_recorded_for_the_number_of_boxes) {
  const Model model = loaded(detector(4));
  expect_boxes(model, {0, 1, 2, 3}, {3, 2, 1, 0});
  expect_boxes(model, {5, 5, 1, 1}, {1, 3});
  const uint64_t before = plans();
  expect_boxes(model, {3, 1, 1, 3}, {3, 2});
  expect_boxes(model, {3, 2, 1, 0}, {0, 1, 2, 3});
  EXPECT_EQ(plans(), before);
}

TEST(Segments, compressed_and_unique_elements) {
  const Message graph =
      Message()
          .message(1, node("Greater", {"x", "zero"}, {"above"}))
          .message(1, node("Compress", {"x", "above"}, {"some"}))
          .message(1, node("Unique", {"some"}, {"ones", "", "", "counts"}))
          .message(1, node("Cast", {"counts"}, {"weights"}).message(5, attribute("to", int64_t{1})))
          .message(1, node("Mul", {"ones", "weights"}, {"y"}))
          .text(2, "unique")
          .message(5, constant("zero", {}, {0}))
          .message(11, value("x", {6}))
          .message(12, value("y", {-1}));
  const Model model = loaded(graph);
  const auto y = [&](std::vector<float> x) {
    return model({Tensor::from(std::move(x))})[0].to_vector<float>();
  };
  EXPECT_THAT(y({1, -1, 3, 1, 0, 2}), ElementsAre(2, 2, 3));
  EXPECT_THAT(y({-4, 5, 5, 7, 9, 0}), ElementsAre(10, 7, 9));
  EXPECT_THAT(y({2, 2, 2, 2, 2, 2}), ElementsAre(12));
  EXPECT_THAT(y({-2, 2, 4, 4, -2, 6}), ElementsAre(2, 8, 6));
}

// A branch of data: its results differ in shape, so that the host decides.
TEST(Segments, each_branch_is_recorded) {
  const Message yes = Message()
                          .message(1, node("Mul", {"h", "two"}, {"a"}))
                          .text(2, "yes")
                          .message(12, value("a", {2}));
  const Message no =
      Message()
          .message(1, node("Concat", {"h", "h"}, {"b"}).message(5, attribute("axis", int64_t{0})))
          .text(2, "no")
          .message(12, value("b", {4}));
  const Message graph =
      Message()
          .message(1, node("Add", {"x", "two"}, {"h"}))
          .message(1,
                   node("ReduceSum", {"h"}, {"sum"}).message(5, attribute("keepdims", int64_t{0})))
          .message(1, node("Greater", {"sum", "two"}, {"is_large"}))
          .message(1, node("If", {"is_large"}, {"z"})
                          .message(5, attribute("then_branch", yes))
                          .message(5, attribute("else_branch", no)))
          .message(1, node("Sub", {"z", "two"}, {"y"}))
          .text(2, "branches")
          .message(5, constant("two", {}, {2}))
          .message(11, value("x", {2}))
          .message(12, value("y", {-1}));
  const Model model = loaded(graph);
  const auto y = [&](float a, float b) {
    return model({Tensor::from({a, b})})[0].to_vector<float>();
  };
  EXPECT_THAT(y(1, 2), ElementsAre(4, 6));
  EXPECT_THAT(y(-1, -3), ElementsAre(-1, -3, -1, -3));
  const uint64_t before = plans();
  EXPECT_THAT(y(3, 4), ElementsAre(8, 10));
  EXPECT_THAT(y(-5, 1), ElementsAre(-5, 1, -5, 1));
  EXPECT_EQ(plans(), before);
}

// The range's length is an element, which later nodes read as data and as a size.
TEST(Segments, sizes_may_be_computed_of_elements) {
  const Message graph =
      Message()
          .message(1,
                   node("ReduceMax", {"x"}, {"most"}).message(5, attribute("keepdims", int64_t{0})))
          .message(1, node("Cast", {"most"}, {"count"}).message(5, attribute("to", int64_t{7})))
          .message(1, node("Range", {"zero", "count", "one"}, {"range"}))
          .message(1, node("Mul", {"range", "count"}, {"product"}))
          .message(1, node("Unsqueeze", {"count", "axis"}, {"size"}))
          .message(
              1,
              node("Concat", {"size", "two"}, {"shape"}).message(5, attribute("axis", int64_t{0})))
          .message(1, node("Unsqueeze", {"product", "last"}, {"column"}))
          .message(1, node("Expand", {"column", "shape"}, {"y"}))
          .text(2, "range")
          .message(5, integer_constant("zero", {}, {0}))
          .message(5, integer_constant("one", {}, {1}))
          .message(5, integer_constant("axis", {1}, {0}))
          .message(5, integer_constant("last", {1}, {1}))
          .message(5, integer_constant("two", {1}, {2}))
          .message(11, value("x", {3}))
          .message(12, value("y", tensor_type(kInt64, {-1, 2})));
  const Model model = loaded(graph);
  const auto y = [&](std::vector<float> x) {
    return model({Tensor::from(std::move(x))})[0].to_vector<int64_t>();
  };
  EXPECT_THAT(y({1, 3, 2}), ElementsAre(0, 0, 3, 3, 6, 6));
  EXPECT_THAT(y({2, 1, 2}), ElementsAre(0, 0, 2, 2));
  const uint64_t before = plans();
  EXPECT_THAT(y({3, 3, 0}), ElementsAre(0, 0, 3, 3, 6, 6));
  EXPECT_THAT(y({1, 0, 2}), ElementsAre(0, 0, 2, 2));
  EXPECT_EQ(plans(), before);
}

TEST(Segments, random_numbers_differ_and_repeat_with_the_seed) {
  const Message graph =
      Message()
          .message(1, node("RandomUniformLike", {"x"}, {"noise"}))
          .message(1, node("NonZero", {"x"}, {"places"}))
          .message(1, node("Cast", {"places"}, {"p"}).message(5, attribute("to", int64_t{1})))
          .message(1, node("RandomUniformLike", {"p"}, {"more"}))
          .message(1, node("ReduceSum", {"more", "first"}, {"sum"}))
          .message(5, integer_constant("first", {1}, {0}))
          .message(
              1, node("Concat", {"noise", "sum"}, {"y"}).message(5, attribute("axis", int64_t{1})))
          .text(2, "noise")
          .message(11, value("x", {1, 3}))
          .message(12, value("y", {1, -1}));
  const auto drawn = [](const Model& model, int calls) {
    Tensor::manual_seed(7);
    std::vector<std::vector<float>> all;
    for (int i = 0; i < calls; ++i)
      all.push_back(model({Tensor::from({{1.0F, 2.0F, 0.0F}})})[0].to_vector<float>());
    return all;
  };
  const Model model = loaded(graph);
  drawn(model, 1);
  const auto first = drawn(model, 3), second = drawn(model, 3);
  EXPECT_EQ(first, second);
  EXPECT_NE(first[0], first[1]);
  EXPECT_NE(first[1], first[2]);
  EXPECT_EQ(first[0].size(), 5u);
}

// With more parts than are kept, a call is recorded as a whole.
TEST(Segments, models_that_cannot_be_cut) {
  Message many;
  many.text(2, "many").message(11, value("x0", {3})).message(5, constant("one", {}, {1}));
  for (int i = 0; i < 40; ++i) {
    const std::string n = std::to_string(i), next = std::to_string(i + 1);
    many.message(1, node("NonZero", {"x" + n}, {"p" + n}))
        .message(1, node("Cast", {"p" + n}, {"c" + n}).message(5, attribute("to", int64_t{1})))
        .message(
            1,
            node("ReduceSum", {"c" + n}, {"s" + n}).message(5, attribute("keepdims", int64_t{0})))
        .message(1, node("Add", {"x" + n, "s" + n}, {"x" + next}));
  }
  many.message(12, value("x40", {3}));
  const Model model = loaded(many);
  for (const float element : {5.0F, 0.0F}) {
    std::vector<float> wanted{element, 1, 1};
    for (int i = 0; i < 40; ++i) {
      float sum = 0;
      for (size_t k = 0; k < 3; ++k) sum += wanted[k] != 0 ? static_cast<float>(k) : 0.0F;
      for (float& each : wanted) each += sum;
    }
    for (int call = 0; call < 2; ++call)
      EXPECT_THAT(model({Tensor::from({element, 1.0F, 1.0F})})[0].to_vector<float>(),
                  ElementsAreArray(wanted));
  }
}

}  // namespace
}  // namespace plugrad::onnx

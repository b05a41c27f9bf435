// Operators of files that an optimising session of ONNX Runtime saved, and states without a step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "plugrad/onnx.h"
#include "plugrad/plugrad.h"
#include "unit/onnx/model_bytes.h"

namespace plugrad::onnx {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

using Floats = std::vector<float>;
constexpr std::string_view kMicrosoft = "com.microsoft", kBlocks = "com.microsoft.nchwc";

Model optimised_model(const Message& graph) {
  const std::string bytes = model_of_bytes(graph, 8, 17);
  return Model::from_bytes(std::as_bytes(std::span(bytes)));
}

TEST(OnnxOptimised, a_convolution_adds_a_sum_and_ends_in_an_activation) {
  const auto fused = [](std::string_view activation, const Floats& parameters) {
    return optimised_model(
               Message()
                   .message(1, node("FusedConv", {"x", "w", "", "z"}, {"y"})
                                   .text(7, kMicrosoft)
                                   .message(5, attribute("activation", activation))
                                   .message(5, attribute("activation_params", parameters)))
                   .message(5, constant("w", {1, 1, 1}, {2}))
                   .message(11, value("x", {1, 1, 3}))
                   .message(11, value("z", {1, 1, 3}))
                   .message(12, value("y", {1, 1, 3})))(
               {Tensor::from({-2.0F, 0.0F, 5.0F}, {1, 1, 3}), Tensor::ones({1, 1, 3})})[0]
        .to_vector<float>();
  };
  EXPECT_THAT(fused("Relu", {}), ElementsAre(0, 1, 11));
  EXPECT_THAT(fused("LeakyRelu", {0.5F}), ElementsAre(-1.5F, 1, 11));
  EXPECT_THAT(fused("Clip", {-1, 6}), ElementsAre(-1, 1, 6));
  EXPECT_THAT(fused("HardSigmoid", {0.25F, 0.5F}), ElementsAre(0, 0.75F, 1));
  EXPECT_THROW(fused("Clip", {1}), Error);
}

TEST(OnnxOptimised, a_product_ends_in_an_activation) {
  const Model model = optimised_model(
      Message()
          .message(1, node("FusedGemm", {"x", "w"}, {"y"})
                          .text(7, kMicrosoft)
                          .message(5, attribute("activation", std::string_view("Elu")))
                          .message(5, attribute("activation_alpha", 2.0F))
                          .message(5, attribute("alpha", 3.0F)))
          .message(5, constant("w", {1, 2}, {1, -1}))
          .message(11, value("x", {1, 1}))
          .message(12, value("y", {1, 2})));
  const auto y = model({Tensor::full({1, 1}, 0.5F)})[0].to_vector<float>();
  EXPECT_FLOAT_EQ(y[0], 1.5F);
  EXPECT_FLOAT_EQ(y[1], 2 * std::expm1(-1.5F));
}

// Weights of a convolution with a kernel of one element whose output o has weight
// 100 * o + i for input i, in the file's order.
Floats weights_in_blocks(int64_t outputs, int64_t inputs, int64_t block, bool has_input_blocks) {
  const int64_t of_inputs = has_input_blocks ? block : 1;
  Floats weights;
  for (int64_t o = 0; o < outputs; o += block)
    for (int64_t i = 0; i < inputs; i += of_inputs)
      for (int64_t inner = 0; inner < of_inputs; ++inner)
        for (int64_t outer = 0; outer < block; ++outer)
          weights.push_back(static_cast<float>(100 * (o + outer) + i + inner));
  return weights;
}

// An image of 3 channels, then `middle` channels, of which the file says `shown`.
Message two_convolutions(int64_t block, int64_t middle, int64_t shown) {
  return Message()
      .message(1, node("Conv", {"x", "w"}, {"a"}).text(7, kBlocks))
      .message(1, node("Conv", {"a", "v"}, {"b"}).text(7, kBlocks))
      .message(1, node("ReorderOutput", {"b"}, {"y"})
                      .text(7, kBlocks)
                      .message(5, attribute("channels", shown)))
      .message(5, constant("w", {middle, 3, 1, 1}, weights_in_blocks(middle, 3, block, false)))
      .message(
          5, constant("v", {middle, middle, 1, 1}, weights_in_blocks(middle, middle, block, true)))
      .message(11, value("x", {1, 3, 1, 2}))
      .message(12, value("y", {1, shown, 1, 2}));
}

// What the weights say, of an image of ones.
Floats expected_channels(int64_t middle, int64_t shown) {
  Floats results;
  for (int64_t o = 0; o < shown; ++o) {
    double sum = 0;
    for (int64_t m = 0; m < middle; ++m)
      sum += static_cast<double>(100 * o + m) * static_cast<double>(300 * m + 3);
    results.insert(results.end(), 2, static_cast<float>(sum));
  }
  return results;
}

TEST(OnnxOptimised, weights_in_blocks_come_into_order) {
  for (const auto& [block, middle, shown] :
       {std::tuple(8, 24, 20), std::tuple(16, 16, 5), std::tuple(16, 48, 33)}) {
    const Model model = optimised_model(two_convolutions(block, middle, shown));
    const auto y = model({Tensor::ones({1, 3, 1, 2})})[0].to_vector<float>();
    const Floats wanted = expected_channels(middle, shown);
    ASSERT_EQ(y.size(), wanted.size());
    for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], wanted[i], 1e-5 * wanted[i]) << block;
  }
}

TEST(OnnxOptimised, blocks_that_sizes_do_not_tell_are_said_to_be_those_of_this_processor) {
  std::string said;
  set_log_sink([](std::string_view text, void* to) { *static_cast<std::string*>(to) += text; },
               &said);
  optimised_model(two_convolutions(8, 32, 32));
  const std::string of_any = std::exchange(said, "");
  optimised_model(two_convolutions(8, 24, 24));
  set_log_sink(nullptr, nullptr);
  EXPECT_THAT(of_any, HasSubstr("weights in the order of one kind of processor"));
  EXPECT_EQ(said, "");
  EXPECT_THROW(optimised_model(two_convolutions(4, 12, 12)), Error);
}

TEST(OnnxOptimised, channels_go_to_the_front_and_back) {
  const Message last = attribute("channels_last", int64_t{1});
  const Model model = optimised_model(
      Message()
          .message(1, node("ReorderInput", {"x"}, {"a"}).text(7, kBlocks).message(5, last))
          .message(1, node("GlobalMaxPool", {"a"}, {"b"}).text(7, kBlocks))
          .message(1, node("ReorderOutput", {"b"}, {"y"})
                          .text(7, kBlocks)
                          .message(5, attribute("channels", int64_t{3}))
                          .message(5, last))
          .message(11, value("x", {1, 2, 2, 3}))
          .message(12, value("y", {1, 1, 1, 3})));
  EXPECT_THAT(model({Tensor::arange(12, DType::F32).reshape({1, 2, 2, 3})})[0].to_vector<int>(),
              ElementsAre(9, 10, 11));
}

TEST(OnnxRecurrent, without_a_step_the_states_stay) {
  for (const auto& [op, gates] : {std::pair("RNN", 1), std::pair("GRU", 3), std::pair("LSTM", 4)}) {
    const bool has_cells = gates == 4;
    std::vector<std::string> inputs = {"x", "w", "r", "", "", "h"}, outputs = {"y", "y_h"};
    if (has_cells) inputs.emplace_back("c"), outputs.emplace_back("y_c");
    Message graph =
        Message()
            .message(1, node(op, inputs, outputs)
                            .message(5, attribute("hidden_size", int64_t{2}))
                            .message(5, attribute("direction", std::string_view("bidirectional"))))
            .message(11, value("x", {-1, 3, 4}))
            .message(5, constant("w", {2, gates * 2, 4}, Floats(16 * gates, 0.5F)))
            .message(5, constant("r", {2, gates * 2, 2}, Floats(8 * gates, 0.5F)))
            .message(11, value("h", {2, 3, 2}))
            .message(12, value("y", {-1, 2, 3, 2}))
            .message(12, value("y_h", {2, 3, 2}));
    std::vector<Tensor> given = {Tensor::zeros({0, 3, 4}), Tensor::full({2, 3, 2}, 5.0F)};
    if (has_cells) {
      graph.message(11, value("c", {2, 3, 2})).message(12, value("y_c", {2, 3, 2}));
      given.push_back(Tensor::full({2, 3, 2}, 7.0F));
    }
    const auto results = optimised_model(graph)(given);
    EXPECT_EQ(results[0].shape(), (Shape{0, 2, 3, 2})) << op;
    EXPECT_THAT(results[1].to_vector<float>(), Each(5)) << op;
    if (has_cells) {
      EXPECT_THAT(results[2].to_vector<float>(), Each(7)) << op;
    }
  }
}

// One step of each direction, with a state of one element; from its state it reads nothing.
std::vector<float> recurrent_of(std::string_view op, float x, const Floats& weights,
                                const std::vector<std::string>& activations, const Floats& alphas,
                                const Floats& betas, int64_t directions = 1) {
  const auto gates = static_cast<int64_t>(weights.size()) / directions;
  const std::string_view direction = directions == 2 ? "bidirectional" : "forward";
  const Message graph =
      Message()
          .message(1, node(op, {"x", "w", "r"}, {"y"})
                          .message(5, attribute("hidden_size", int64_t{1}))
                          .message(5, attribute("direction", direction))
                          .message(5, attribute("activations", activations))
                          .message(5, attribute("activation_alpha", alphas))
                          .message(5, attribute("activation_beta", betas)))
          .message(11, value("x", {1, 1, 1}))
          .message(5, constant("w", {directions, gates, 1}, weights))
          .message(5, constant("r", {directions, gates, 1}, Floats(weights.size(), 0)))
          .message(12, value("y", {1, directions, 1, 1}));
  return optimised_model(graph)({Tensor::full({1, 1, 1}, x)})[0].to_vector<float>();
}

// The values are those of onnxruntime 1.23.
TEST(OnnxRecurrent, activations_that_take_a_number_take_the_next_of_its_list) {
  const auto near = [](const Floats& values) {
    return testing::Pointwise(testing::FloatNear(1e-5F), values);
  };
  EXPECT_THAT(recurrent_of("RNN", -2, {1, 1}, {"Tanh", "LeakyRelu"}, {0.3F}, {}, 2),
              near({-0.96403F, -0.6F}));
  EXPECT_THAT(
      recurrent_of("RNN", -2, {1, 1}, {"LeakyRelu", "HardSigmoid"}, {0.5F, 0.1F}, {0.4F}, 2),
      near({-1, 0.2F}));
  EXPECT_THAT(recurrent_of("GRU", -1, {0, 0, 1}, {"Sigmoid", "LeakyRelu"}, {0.3F}, {}),
              near({-0.15F}));
  EXPECT_THAT(recurrent_of("LSTM", -1, {0, 0, 0, 1}, {"Sigmoid", "Tanh", "LeakyRelu"}, {0.3F}, {}),
              near({-0.0571196F}));
  EXPECT_THAT(recurrent_of("LSTM", -1, {0, 0, 0, 1}, {"HardSigmoid", "LeakyRelu", "Affine"},
                           {0.3F, 0.2F, 0.5F}, {0.4F, 0.1F}),
              near({0.024F}));
}

TEST(OnnxRecurrent, activations_in_any_case_have_their_defaults) {
  EXPECT_FLOAT_EQ(recurrent_of("RNN", -1, {1}, {"leakyrelu"}, {}, {})[0], -0.01F);
  EXPECT_FLOAT_EQ(recurrent_of("RNN", -1, {1}, {"HARDSIGMOID"}, {}, {})[0], 0.3F);
}

}  // namespace
}  // namespace plugrad::onnx

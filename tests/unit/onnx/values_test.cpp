// Inputs and outputs of models that are no tensors of numbers, and types without a dtype.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "plugrad/onnx.h"
#include "plugrad/plugrad.h"
#include "unit/base/temporary_directory.h"
#include "unit/onnx/model_bytes.h"

namespace plugrad::onnx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kBool = 9, kFloat8e4m3fn = 17, kInt4 = 22;

class OnnxValues : public testing::Test {
 protected:
  Model model_of(const Message& graph, int64_t opset = 21) {
    const std::string path = directory_ / "m.onnx";
    std::ofstream(path, std::ios::binary) << model_of_bytes(graph, 10, opset);
    return Model::load(path);
  }
  TemporaryDirectory directory_;
};

std::string value_error(const Model& model, const std::vector<Data>& inputs) {
  try {
    model.run(inputs);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

template <class T>
const T& as(const Data& data) {
  return std::get<T>(data.value);
}
std::vector<float> floats(const Data& data) {
  return as<Tensor>(data).to_vector<float>();
}

Message inserting() {
  const Message type = sequence_type(tensor_type(kFloat, {2}));
  return Message()
      .message(1, node("SequenceInsert", {"s", "x"}, {"longer"}))
      .message(1, node("SequenceLength", {"longer"}, {"count"}))
      .message(11, value("s", type))
      .message(11, value("x", {2}))
      .message(12, value("longer", type))
      .message(12, value("count", tensor_type(kInt64, {})));
}

TEST_F(OnnxValues, a_sequence_goes_in_and_comes_out) {
  const Model model = model_of(inserting());
  EXPECT_EQ(to_string(model.inputs().at(0)), "s: sequence of float");
  const Tensor x = Tensor::from({1.0F, 2.0F});
  const auto once = model.run({Sequence(), x});
  const auto twice = model.run({as<Sequence>(once[0]), x * 3});
  EXPECT_EQ(as<Tensor>(twice[1]).item<int>(), 2);
  EXPECT_THAT(floats(as<Sequence>(twice[0]).elements.at(1)), ElementsAre(3, 6));
}

TEST_F(OnnxValues, data_of_another_kind_is_answered_with_what_the_model_expects) {
  const Model model = model_of(inserting());
  const Tensor x = Tensor::zeros({2});
  EXPECT_THAT(
      value_error(model, {x, x}),
      HasSubstr("input \"s\" is no sequence, the model expects:\n  s: sequence of float\n"));
  EXPECT_THAT(value_error(model, {Sequence{{x, Tensor::zeros({3})}}, x}),
              HasSubstr("has an element 1 that has the shape (3,)"));
  EXPECT_THAT(value_error(model, {Sequence(), Strings{{1}, {"a"}}}),
              HasSubstr("is no tensor of numbers"));
  EXPECT_THAT(value_error(model, {Sequence()}), HasSubstr("1 inputs are given"));
  EXPECT_THROW(model(std::vector<Tensor>{x, x}), Error);
}

TEST_F(OnnxValues, outputs_of_another_type_than_the_model_declares_are_refused) {
  const auto with_output = [&](const Message& type) {
    return model_of(Message()
                        .message(1, node("Relu", {"x"}, {"y"}))
                        .message(11, value("x", {2}))
                        .message(12, value("y", type)));
  };
  const Tensor x = Tensor::zeros({2});
  EXPECT_EQ(value_error(with_output(tensor_type(kFloat, {2})), {x}), "no error");
  EXPECT_EQ(value_error(with_output(Message()), {x}), "no error");
  EXPECT_THAT(value_error(with_output(tensor_type(kInt64, {2})), {x}),
              HasSubstr("output \"y\" is f32, the model declares:\n  y: int64 (2,)"));
  EXPECT_THAT(value_error(with_output(tensor_type(kString, {2})), {x}),
              HasSubstr("is no tensor of strings"));
  EXPECT_THAT(value_error(with_output(sequence_type(tensor_type(kFloat, {2}))), {x}),
              HasSubstr("is no sequence"));
}

TEST_F(OnnxValues, an_optional_may_be_empty) {
  const Model model =
      model_of(Message()
                   .message(1, node("OptionalHasElement", {"x"}, {"y"}))
                   .message(11, value("x", optional_type(sequence_type(tensor_type(kFloat, {})))))
                   .message(12, value("y", tensor_type(kBool, {}))));
  EXPECT_EQ(model.inputs().at(0).type, "optional sequence of float");
  EXPECT_FALSE(as<Tensor>(model.run({Data()})[0]).item<bool>());
  EXPECT_TRUE(as<Tensor>(model.run({Sequence()})[0]).item<bool>());
}

TEST_F(OnnxValues, a_loop_carries_a_sequence) {
  const Message type = sequence_type(tensor_type(kInt64, {}));
  const Message body = Message()
                           .message(1, node("SequenceInsert", {"s", "i"}, {"longer"}))
                           .message(1, node("Identity", {"goes_on"}, {"goes_on_still"}))
                           .message(11, value("i", tensor_type(kInt64, {})))
                           .message(11, value("goes_on", tensor_type(kBool, {})))
                           .message(11, value("s", type))
                           .message(12, value("goes_on_still", tensor_type(kBool, {})))
                           .message(12, value("longer", type));
  const Model model = model_of(
      Message()
          .message(1, node("SequenceEmpty", {}, {"none"}).message(5, attribute("dtype", kInt64)))
          .message(1,
                   node("Loop", {"steps", "", "none"}, {"all"}).message(5, attribute("body", body)))
          .message(1, node("ConcatFromSequence", {"all"}, {"y"})
                          .message(5, attribute("axis", int64_t{0}))
                          .message(5, attribute("new_axis", int64_t{1})))
          .message(11, value("steps", tensor_type(kInt64, {})))
          .message(12, value("y", tensor_type(kInt64, {-1}))));
  for (const int64_t steps : {3, 5}) {
    const Tensor y = model({Tensor(steps).cast(DType::I64)})[0];
    EXPECT_EQ(y.size(0), steps);
    EXPECT_EQ(y.to_vector<int64_t>().back(), steps - 1);
  }
}

TEST_F(OnnxValues, operators_that_move_elements_move_strings) {
  const Model model = model_of(Message()
                                   .message(1, node("Transpose", {"x"}, {"turned"}))
                                   .message(1, node("StringConcat", {"turned", "x"}, {"y"}))
                                   .message(1, node("Equal", {"turned", "x"}, {"same"}))
                                   .message(11, value("x", tensor_type(kString, {2, 2})))
                                   .message(12, value("y", tensor_type(kString, {2, 2})))
                                   .message(12, value("same", tensor_type(kBool, {2, 2}))));
  const auto results = model.run({Strings{{2, 2}, {"a", "b", "", "ä"}}});
  EXPECT_THAT(as<Strings>(results[0]).elements, ElementsAre("aa", "b", "b", "ää"));
  EXPECT_THAT(as<Tensor>(results[1]).to_vector<int>(), ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(value_error(model, {Strings{{2, 2}, {"a"}}}),
              HasSubstr("has 1 strings in the shape"));
  EXPECT_THAT(value_error(model, {Tensor::zeros({2, 2})}), HasSubstr("is no tensor of strings"));
}

TEST_F(OnnxValues, four_bits_are_unpacked_wrapped_and_named) {
  // -1, 7 and -8, the low half of a byte first.
  const Message packed = Message().integer(1, 3).integer(2, kInt4).text(8, "c").text(9, "\x7f\x08");
  const Model model =
      model_of(Message()
                   .message(1, node("Cast", {"x"}, {"y"}).message(5, attribute("to", kInt4)))
                   .message(1, node("Cast", {"c"}, {"z"}).message(5, attribute("to", kFloat)))
                   .message(5, packed)
                   .message(11, value("x", {4}))
                   .message(12, value("y", tensor_type(kInt4, {4})))
                   .message(12, value("z", {3})));
  const auto results = model.run({Tensor::from({7.0F, 8.0F, -8.0F, 17.0F})});
  EXPECT_EQ(results[0].type, "int4");
  EXPECT_THAT(floats(results[0]), ElementsAre(7, -8, -8, 1));
  EXPECT_EQ(results[1].type, "");
  EXPECT_THAT(floats(results[1]), ElementsAre(-1, 7, -8));
}

TEST_F(OnnxValues, eight_bit_floats_round_halves_to_even_and_saturate_if_asked_to) {
  const auto cast = [&](int64_t saturate) {
    return model_of(Message()
                        .message(1, node("Cast", {"x"}, {"y"})
                                        .message(5, attribute("to", kFloat8e4m3fn))
                                        .message(5, attribute("saturate", saturate)))
                        .message(11, value("x", {5}))
                        .message(12, value("y", tensor_type(kFloat8e4m3fn, {5}))));
  };
  const Tensor x = Tensor::from({17.0F, 19.0F, 464.0F, -465.0F, 0.0009765625F});
  const auto saturated = cast(1).run({x});
  EXPECT_EQ(saturated[0].type, "float8e4m3fn");
  EXPECT_THAT(floats(saturated[0]), ElementsAre(16, 20, 448, -448, 0));
  const auto results = floats(cast(0).run({x})[0]);
  EXPECT_EQ(results[2], 448);
  EXPECT_TRUE(std::isnan(results[3]));
}

// y = the node's result on x, of integers.
Message of_integers(const Message& node, const std::vector<int64_t>& shape) {
  return Message()
      .message(1, node)
      .message(11, value("x", tensor_type(kInt64, shape)))
      .message(12, value("y", tensor_type(kInt64, std::vector<int64_t>(shape.size(), -1))));
}
std::vector<int64_t> integers(const Data& data) {
  return as<Tensor>(data).to_vector<int64_t>();
}

TEST_F(OnnxValues, integers_to_the_power_of_floats_are_exact) {
  const Model model =
      model_of(of_integers(node("Pow", {"x", "e"}, {"y"}), {6}).message(11, value("e", {6})));
  EXPECT_THAT(integers(model.run({Tensor::from<int64_t>({10, 6, 3, 9, 10, -2}),
                                  Tensor::from({2.0F, 1.0F, 39.0F, 0.5F, -1.0F, 3.0F})})[0]),
              ElementsAre(100, 6, 4052555153018976267, 3, 0, -8));
  const Message two = node("Constant", {}, {"e"}).message(5, attribute("value_float", 2.0F));
  const Model square = model_of(of_integers(two, {2}).message(1, node("Pow", {"x", "e"}, {"y"})));
  EXPECT_THAT(integers(square.run({Tensor::from<int64_t>({3037000499, -5})})[0]),
              ElementsAre(9223372030926249001, 25));
}

TEST_F(OnnxValues, a_constant_exponent_is_a_number) {
  const Message exponent =
      node("Constant", {}, {"e"}).message(5, attribute("value_int", int64_t{2}));
  const Model model = model_of(Message()
                                   .message(1, exponent)
                                   .message(1, node("Pow", {"x", "e"}, {"y"}))
                                   .message(11, value("x", {3}))
                                   .message(12, value("y", {3})));
  EXPECT_THAT(floats(model.run({Tensor::from({5.0F, -3.0F, 4097.0F})})[0]),
              ElementsAre(25, 9, 4097.0F * 4097.0F));
}

TEST_F(OnnxValues, reductions_and_products_of_integers_do_not_pass_through_floats) {
  const auto reduced = [&](const char* op, const std::vector<int64_t>& x) {
    const Model model = model_of(of_integers(node(op, {"x"}, {"y"}), {std::ssize(x)}));
    return integers(model.run({Tensor::from(x)})[0]);
  };
  EXPECT_THAT(reduced("ReduceMean", {100000001}), ElementsAre(100000001));
  EXPECT_THAT(reduced("ReduceMean", {3, -4, -4}), ElementsAre(-1));
  EXPECT_THAT(reduced("ReduceL2", {16777217}), ElementsAre(16777217));
  EXPECT_THAT(reduced("Shrink", {16777217, -16777217}), ElementsAre(16777217, -16777217));
  const int64_t big = (int64_t{1} << 53) + 1;
  const Message gemm = node("Gemm", {"x", "x"}, {"y"}).message(5, attribute("alpha", 2.0F));
  EXPECT_THAT(
      integers(
          model_of(of_integers(gemm, {1, 1})).run({Tensor::full({1, 1}, 94906267, DType::I64)})[0]),
      ElementsAre(2 * int64_t{94906267} * 94906267));
  const Model range = model_of(Message()
                                   .message(1, node("Range", {"a", "b", "c"}, {"y"}))
                                   .message(11, value("a", tensor_type(kInt64, {})))
                                   .message(11, value("b", tensor_type(kInt64, {})))
                                   .message(11, value("c", tensor_type(kInt64, {})))
                                   .message(12, value("y", tensor_type(kInt64, {-1}))));
  EXPECT_THAT(
      integers(range.run({Tensor(big), Tensor(big + 3), Tensor(int64_t{2}).cast(DType::I64)})[0]),
      ElementsAre(big, big + 2));
  EXPECT_THAT(integers(range.run(
                  {Tensor(INT64_MAX - 2), Tensor(INT64_MAX), Tensor(1).cast(DType::I64)})[0]),
              ElementsAre(INT64_MAX - 2, INT64_MAX - 1));
}

TEST_F(OnnxValues, a_seed_gives_the_same_numbers_at_each_call) {
  const auto drawing = [&](float seed) {
    return model_of(
        Message()
            .message(1, node("RandomUniformLike", {"x"}, {"y"}).message(5, attribute("seed", seed)))
            .message(11, value("x", {100}))
            .message(12, value("y", {100})));
  };
  const Tensor x = Tensor::zeros({100});
  const Model model = drawing(3);
  const auto numbers = model({x})[0].to_vector<float>();
  EXPECT_EQ(model({x})[0].to_vector<float>(), numbers);
  EXPECT_NE(drawing(4)({x})[0].to_vector<float>(), numbers);
  for (const float number : numbers) EXPECT_TRUE(number >= 0 && number < 1) << number;
  EXPECT_NEAR(model({x})[0].mean().item<float>(), 0.5F, 0.15F);
}

}  // namespace
}  // namespace plugrad::onnx

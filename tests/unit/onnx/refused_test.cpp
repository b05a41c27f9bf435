// Invalid models are refused by name: faulty graphs when they are loaded, faulty nodes and inputs
// when they are called.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>

#include "ir/facts.h"
#include "plugrad/onnx.h"
#include "plugrad/plugrad.h"
#include "unit/onnx/model_bytes.h"

namespace plugrad::onnx {
namespace {

using testing::HasSubstr;

std::string error_of(const Message& graph) {
  const std::string bytes = model_of_bytes(graph);
  try {
    Model::from_bytes(std::as_bytes(std::span(bytes)));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// y = op(inputs), and the model's input is x.
Message graph_of(const Message& of_y) {
  return Message()
      .message(1, of_y)
      .text(2, "g")
      .message(11, value("x", {2}))
      .message(12, value("y", {2}));
}

TEST(OnnxRefused, names_that_nothing_computes_or_that_are_given_twice) {
  EXPECT_EQ(error_of(graph_of(node("Relu", {"x"}, {"y"}))), "no error");
  EXPECT_THAT(error_of(graph_of(node("Relu", {"z"}, {"y"}))),
              HasSubstr("Relu node \"the Relu\" needs \"z\""));
  EXPECT_THAT(error_of(graph_of(node("Relu", {"x"}, {"z"}))), HasSubstr("its output \"y\""));
  EXPECT_THAT(error_of(graph_of(node("Relu", {"x"}, {"x"}))), HasSubstr("computes \"x\""));
  Message twice = graph_of(node("Relu", {"x"}, {"y"}));
  EXPECT_THAT(error_of(twice.message(11, value("x", {3}))),
              HasSubstr("graph \"g\" declares its input \"x\" twice"));
  Message constants = graph_of(node("Relu", {"x"}, {"y"}));
  constants.message(5, constant("b", {1}, {1})).message(5, constant("b", {1}, {2}));
  EXPECT_THAT(error_of(constants), HasSubstr("two initialisers named \"b\""));
  const Message indices = Message().integer(1, 1).integer(2, 7).text(9, std::string(8, '\0'));
  const Message sparse =
      Message().message(1, constant("b", {1}, {1})).message(2, indices).integer(3, 2);
  Message other = graph_of(node("Relu", {"x"}, {"y"}));
  other.message(5, constant("b", {1}, {1})).message(15, sparse);
  EXPECT_THAT(error_of(other), HasSubstr("two initialisers named \"b\""));
}

TEST(OnnxRefused, nodes_with_what_their_operators_do_not_have) {
  EXPECT_THAT(error_of(graph_of(node("Relu", {"x", "x"}, {"y"}))),
              HasSubstr("has 2 inputs, Relu takes at most 1"));
  EXPECT_THAT(error_of(graph_of(node("Relu", {"x"}, {"y", "z"}))),
              HasSubstr("has 2 outputs, Relu gives at most 1"));
  const Message softmax = node("Softmax", {"x"}, {"y"}).message(5, attribute("axes", int64_t{0}));
  EXPECT_THAT(error_of(graph_of(softmax)),
              HasSubstr("the attribute \"axes\", which Softmax does not have"));
  const Message axis = attribute("axis", int64_t{0});
  const Message two = node("Softmax", {"x"}, {"y"}).message(5, axis).message(5, axis);
  EXPECT_THAT(error_of(graph_of(two)), HasSubstr("the attribute \"axis\" twice"));
}

TEST(OnnxRefused, meshes) {
  const std::string bytes = model_of_bytes(graph_of(node("Relu", {"x"}, {"y"})));
  const auto file = std::as_bytes(std::span(bytes));
  const Mesh mesh({{"data", 2}}, {"CPU", "CPU"});
  const Tensor x = Tensor::from<float>({-1, 2}, {2}, "CPU");
  const Tensor sharded = x.shard(mesh, {"data"});
  const auto error_of_call = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  const Model model = Model::from_bytes(file);
  EXPECT_THAT(
      error_of_call([&] { model({sharded}); }),
      HasSubstr("an input is on mesh data=2 (CPU, CPU), but a model runs on one device, CPU"));
  EXPECT_EQ(model({sharded.unshard()})[0].to_vector<float>(), (std::vector<float>{0, 2}));
  EXPECT_EQ(model({sharded.shards()[1].reshape({1}).expand({2})})[0].to_vector<float>(),
            (std::vector<float>{2, 2}));
  EXPECT_THAT(error_of_call([&] { Model::from_bytes(file, mesh.device()); }),
              HasSubstr("a model runs on one device, not on mesh data=2 (CPU, CPU)"));
}

TEST(OnnxRefused, graphs_of_branches_see_the_names_around_them_only) {
  const auto if_of = [](const std::string& from) {
    Message made = node("If", {"x"}, {"y"});
    for (const char* branch : {"then_branch", "else_branch"})
      made.message(5, attribute(branch, Message()
                                            .message(1, node("Relu", {from}, {"inner"}))
                                            .text(2, "branch")
                                            .message(12, value("inner", {2}))));
    return graph_of(made);
  };
  EXPECT_EQ(error_of(if_of("x")), "no error");
  EXPECT_THAT(error_of(if_of("y")), HasSubstr("needs \"y\""));
}

TEST(OnnxRefused, functions_with_names_that_nothing_computes_or_that_are_given_twice) {
  const auto error_with = [](const Message& function) {
    const Message call = node("Own", {"x"}, {"y"}).text(7, "own");
    const std::string bytes =
        model_of_bytes(graph_of(call)) + Message().message(25, function).bytes();
    try {
      Model::from_bytes(std::as_bytes(std::span(bytes)));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const auto function = [](const std::string& reads, const std::string& gives) {
    return Message().text(1, "Own").text(4, "a").text(5, gives).text(10, "own").message(
        7, node("Relu", {reads}, {"b"}));
  };
  EXPECT_EQ(error_with(function("a", "b")), "no error");
  EXPECT_THAT(error_with(function("a", "c")),
              HasSubstr("no node of function \"Own\" computes its output \"c\""));
  EXPECT_THAT(error_with(function("x", "b")), HasSubstr("needs \"x\""));
  EXPECT_THAT(error_with(function("a", "b").text(4, "a")),
              HasSubstr("function \"Own\" declares its input \"a\" twice"));
}

TEST(OnnxRefused, a_name_of_a_million_bytes_is_shown_in_part) {
  std::string name(1'000'000, 'n');
  name.push_back('\x1b');
  const std::string text = error_of(graph_of(node("Relu", {name}, {"y"})));
  EXPECT_THAT(text, HasSubstr("nnn... (1000001 bytes)"));
  EXPECT_LT(text.size(), 400u);
}

// A node, and its inputs by name and shape: float initialisers of zeros behind the first one.
struct NodeOfShapes {
  Message node;
  std::vector<std::pair<std::string, std::vector<int64_t>>> inputs;
};

// Of a call with zeros.
std::string error_of_call(const NodeOfShapes& of) {
  Message graph = Message().message(1, of.node).text(2, "g");
  for (const auto& [name, shape] : of.inputs) {
    if (name == of.inputs[0].first) continue;
    const auto count = static_cast<size_t>(element_count(shape));
    graph.message(5, constant(name, shape, std::vector<float>(count)));
  }
  graph.message(11, value(of.inputs[0].first, of.inputs[0].second));
  graph.message(12, value("y", Message().message(1, Message().integer(1, 1))));
  const std::string bytes = model_of_bytes(graph);
  try {
    Model::from_bytes(std::as_bytes(std::span(bytes)))({Tensor::zeros(of.inputs[0].second)});
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(OnnxRefused, recurrent_inputs_of_other_shapes) {
  const auto error_with = [](const std::string& op, const std::string& changed,
                             const std::vector<int64_t>& shape) {
    const int64_t gates = op == "LSTM" ? 4 : op == "GRU" ? 3 : 1;
    NodeOfShapes lstm{node(op, {"x", "w", "r", "b", "", "h"}, {"y"}),
                      {{"x", {5, 2, 3}},
                       {"w", {1, gates * 4, 3}},
                       {"r", {1, gates * 4, 4}},
                       {"b", {1, gates * 8}},
                       {"h", {1, 2, 4}}}};
    for (auto& [name, old] : lstm.inputs)
      if (name == changed) old = shape;
    return error_of_call(lstm);
  };
  for (const std::string op : {"LSTM", "GRU", "RNN"}) {
    EXPECT_EQ(error_with(op, "", {}), "no error");
    EXPECT_THAT(error_with(op, "h", {1, 1, 4}),
                HasSubstr(op + " node \"the " + op +
                          "\": initial_h has the shape (1, 1, 4), not (1, 2, 4)"));
    EXPECT_THAT(error_with(op, "x", {5, 1, 3}),
                HasSubstr("initial_h has the shape (1, 2, 4), not"));
    EXPECT_THAT(error_with(op, "x", {5, 2, 1}), HasSubstr("W has the shape"));
    EXPECT_THAT(error_with(op, "b", {1, 1}), HasSubstr("B has the shape (1, 1), not"));
    EXPECT_THAT(error_with(op, "x", {5, 2}), HasSubstr("X has the shape (5, 2)"));
  }
}

TEST(OnnxRefused, lengths_that_a_sequence_does_not_have) {
  const auto error_with = [](const std::vector<int64_t>& lengths) {
    Message of = Message().integer(1, std::ssize(lengths)).integer(2, 6).text(8, "lengths");
    for (const int64_t length : lengths) of.integer(5, length);
    const Message graph = Message()
                              .message(1, node("RNN", {"x", "w", "r", "", "lengths"}, {"y"}))
                              .text(2, "g")
                              .message(5, constant("w", {1, 4, 3}, std::vector<float>(12)))
                              .message(5, constant("r", {1, 4, 4}, std::vector<float>(16)))
                              .message(5, of)
                              .message(11, value("x", {5, 2, 3}))
                              .message(12, value("y", {5, 1, 2, 4}));
    const std::string bytes = model_of_bytes(graph);
    try {
      Model::from_bytes(std::as_bytes(std::span(bytes)))({Tensor::zeros({5, 2, 3})});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(error_with({5, 0}), "no error");
  EXPECT_THAT(error_with({5}), HasSubstr("sequence_lens has the shape (1,), not (2,)"));
  EXPECT_THAT(error_with({5, 6}), HasSubstr("sequence_lens has 6, but X has 5 steps"));
  EXPECT_THAT(error_with({-1, 5}), HasSubstr("sequence_lens has -1"));
}

TEST(OnnxRefused, parameters_that_broadcasting_would_accept) {
  const auto batch_norm = [](std::vector<int64_t> scale, std::vector<int64_t> mean) {
    return error_of_call({node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y"}),
                          {{"x", {2, 3, 4}}, {"s", scale}, {"b", {3}}, {"m", mean}, {"v", {3}}}});
  };
  EXPECT_EQ(batch_norm({3}, {3}), "no error");
  EXPECT_THAT(batch_norm({1}, {3}), HasSubstr("scale has the shape (1,), not (3,)"));
  EXPECT_THAT(batch_norm({3}, {1}), HasSubstr("input_mean has the shape (1,), not (3,)"));
  EXPECT_THAT(error_of_call({node("InstanceNormalization", {"x", "s", "b"}, {"y"}),
                             {{"x", {2, 3, 4}}, {"s", {3}}, {"b", {1}}}}),
              HasSubstr("B has the shape (1,), not (3,)"));
  const auto of_two = [](const std::string& op, std::vector<int64_t> second) {
    return error_of_call({node(op, {"x", "s"}, {"y"}), {{"x", {2, 1}}, {"s", second}}});
  };
  EXPECT_EQ(of_two("LayerNormalization", {1}), "no error");
  EXPECT_THAT(of_two("LayerNormalization", {3}),
              HasSubstr("the shape (3,), which cannot be broadcast to (2, 1)"));
  EXPECT_EQ(of_two("Clip", {1}), "no error");
  EXPECT_THAT(of_two("Clip", {3}), HasSubstr("a bound has the shape (3,)"));
  EXPECT_THAT(of_two("DequantizeLinear", {3}), HasSubstr("a scale or zero point has 3 elements"));
  const auto gemm = [](std::vector<int64_t> c) {
    return error_of_call(
        {node("Gemm", {"x", "b", "c"}, {"y"}), {{"x", {2, 3}}, {"b", {3, 1}}, {"c", c}}});
  };
  EXPECT_EQ(gemm({2, 1}), "no error");
  EXPECT_THAT(gemm({1, 4}),
              HasSubstr("C has the shape (1, 4), which cannot be broadcast to (2, 1)"));
}

}  // namespace
}  // namespace plugrad::onnx

// Files whose graphs no model can have are refused while they are loaded, by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>

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

TEST(OnnxRefused, graphs_of_branches_see_the_names_around_them_only) {
  const auto branch = [](const std::string& from) {
    return attribute("then_branch", Message()
                                        .message(1, node("Relu", {from}, {"inner"}))
                                        .text(2, "branch")
                                        .message(12, value("inner", {2})));
  };
  Message graph = graph_of(node("If", {"x"}, {"y"}).message(5, branch("x")));
  EXPECT_EQ(error_of(graph), "no error");
  EXPECT_THAT(error_of(graph_of(node("If", {"x"}, {"y"}).message(5, branch("y")))),
              HasSubstr("needs \"y\""));
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

}  // namespace
}  // namespace plugrad::onnx

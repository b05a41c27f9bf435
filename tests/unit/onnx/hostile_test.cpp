// Files that no exporter writes: attributes that operators do not take, and work without an end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <span>

#include "plugrad/binding.h"
#include "plugrad/onnx.h"
#include "plugrad/plugrad.h"
#include "unit/onnx/model_bytes.h"

namespace plugrad::onnx {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

Model model_of(const std::string& bytes) {
  return Model::from_bytes(std::as_bytes(std::span(bytes)));
}

// "no error" if the model gives a result.
std::string error_of_file(const std::string& bytes, const Shape& of_input) {
  try {
    for (const Tensor& y : model_of(bytes)({Tensor::zeros(of_input)})) y.to_bytes();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// The node reads x, and constants behind it.
Message graph_of_node(const Message& node, const Shape& of_input,
                      const std::vector<Message>& constants) {
  Message graph = Message().message(1, node).text(2, "g");
  for (const Message& each : constants) graph.message(5, each);
  return graph.message(11, value("x", of_input)).message(12, Message().text(1, "y"));
}

std::string error_of_node(const Message& node, const Shape& of_input,
                          const std::vector<Message>& constants = {}, int64_t opset = 17) {
  return error_of_file(model_of_bytes(graph_of_node(node, of_input, constants), 8, opset),
                       of_input);
}

using Integers = std::vector<int64_t>;

TEST(OnnxHostile, attributes_have_the_values_of_their_operators) {
  const auto pool = [](const Message& given) {
    const Message kernel = attribute("kernel_shape", Integers{2});
    return error_of_node(node("MaxPool", {"x"}, {"y"}).message(5, kernel).message(5, given),
                         {1, 1, 4});
  };
  EXPECT_EQ(pool(attribute("strides", Integers{1})), "no error");
  EXPECT_THAT(
      pool(attribute("strides", Integers{0})),
      StartsWith("[onnx] MaxPool node \"the MaxPool\": strides is 0, it must be from 1 to"));
  EXPECT_THAT(pool(attribute("auto_pad", "BOGUS")),
              HasSubstr("auto_pad is \"BOGUS\", it must be one of NOTSET, SAME_UPPER, SAME_LOWER"));
  EXPECT_THAT(pool(attribute("strides", int64_t{1})),
              HasSubstr("strides is an integer, it must be a list of integers"));
  EXPECT_THAT(pool(attribute("strides", Integers{1, 1})), HasSubstr("has 2 numbers, the kernel 1"));
  EXPECT_THAT(pool(attribute("dilations", Integers{4})),
              HasSubstr("a window reaches over 5 elements, axis 2 has 4"));
  const auto of = [](const std::string& op, const Message& given, const Shape& x) {
    return error_of_node(node(op, {"x"}, {"y"}).message(5, given), x);
  };
  EXPECT_THAT(of("DepthToSpace", attribute("blocksize", int64_t{0}), {1, 4, 2, 2}),
              HasSubstr("blocksize is 0"));
  EXPECT_THAT(of("DepthToSpace", attribute("mode", "DCR"), {1, 4, 2, 2}),
              HasSubstr("lacks the attribute \"blocksize\""));
  EXPECT_THAT(of("DepthToSpace", attribute("blocksize", int64_t{3}), {1, 4, 2, 2}),
              HasSubstr("4 channels are no blocks of 3 x 3"));
  EXPECT_THAT(of("Hardmax", attribute("axis", int64_t{99}), {2, 2}), HasSubstr("axis is 99"));
  EXPECT_THAT(of("Hardmax", attribute("axis", int64_t{2}), {2, 2}),
              HasSubstr("axis 2 is out of range for 2 axes"));
  EXPECT_THAT(error_of_node(node("Det", {"x"}, {"y"}), {2, 3}),
              HasSubstr("the shape (2, 3) is not that of square matrices"));
}

// ONNX Runtime refuses these too.
TEST(OnnxHostile, what_the_specification_excludes) {
  const auto expand = [](const Integers& to) {
    return error_of_node(node("Expand", {"x", "s"}, {"y"}), {2, 3},
                         {integer_constant("s", {std::ssize(to)}, to)});
  };
  EXPECT_EQ(expand({1, 1, 3}), "no error");
  for (const Integers& to : std::vector<Integers>{{-1, 3}, {5, -1, 1}, {-2, 3}})
    EXPECT_THAT(expand(to), HasSubstr("shape has the size -"));
  for (const auto& [op, gates] : {std::pair("RNN", 1), {"GRU", 3}, {"LSTM", 4}}) {
    const auto clipped = [&](float clip) {
      const std::vector<float> zeros(static_cast<size_t>(gates));
      return error_of_node(
          node(op, {"x", "w", "r"}, {"y"}).message(5, attribute("clip", clip)), {1, 1, 1},
          {constant("w", {1, gates, 1}, zeros), constant("r", {1, gates, 1}, zeros)});
    };
    EXPECT_EQ(clipped(0.5F), "no error");
    for (const float clip : {-1.0F, NAN})
      EXPECT_THAT(clipped(clip), HasSubstr("it must be at least 0"));
  }
}

TEST(OnnxHostile, weights_and_lists_fit_one_another) {
  Message conv = node("Conv", {"x", "w"}, {"y"});
  conv.message(5, attribute("kernel_shape", Integers{3}));
  EXPECT_THAT(error_of_node(conv, {1, 1, 4}, {constant("w", {1, 1, 2}, {1, 1})}),
              HasSubstr("kernel_shape is (3,), but W has the shape (1, 1, 2)"));
  Message lstm = node("LSTM", {"x", "w", "r"}, {"y"});
  lstm.message(5, attribute("direction", "sideways"));
  EXPECT_THAT(error_of_node(
                  lstm, {1, 1, 1},
                  {constant("w", {1, 4, 1}, {0, 0, 0, 0}), constant("r", {1, 4, 1}, {0, 0, 0, 0})}),
              HasSubstr("direction is \"sideways\", it must be one of forward, reverse"));
  Message labels = node("LabelEncoder", {"x"}, {"y"}).text(7, "ai.onnx.ml");
  labels.message(5, attribute("keys_floats", std::vector<float>{1, 2, 3}));
  EXPECT_THAT(
      error_of_node(Message(labels).message(5, attribute("values_int64s", Integers{7})), {2}),
      HasSubstr("there are 3 keys and 1 values"));
  EXPECT_EQ(error_of_node(labels.message(5, attribute("values_int64s", Integers{7, 8, 9})), {2}),
            "no error");
}

// `op` of x, of this shape, and of lists of integers.
std::string error_with_lists(const std::string& op, const Shape& x,
                             const std::vector<Integers>& lists, const Shape& of_first = {}) {
  std::vector<std::string> inputs = {"x"};
  std::vector<Message> constants;
  for (const Integers& list : lists) {
    const bool is_shaped = constants.empty() && !of_first.empty();
    inputs.push_back("list " + std::to_string(constants.size()));
    constants.push_back(
        integer_constant(inputs.back(), is_shaped ? of_first : Shape{std::ssize(list)}, list));
  }
  return error_of_node(node(op, inputs, {"y"}), x, constants);
}

TEST(OnnxHostile, indices_that_the_host_knows) {
  for (const int64_t at : {-2, 1}) {
    EXPECT_EQ(error_with_lists("Gather", {2, 3}, {{0, at}}), "no error");
    EXPECT_EQ(error_with_lists("GatherND", {2, 3}, {{0, at}}, {1, 2}), "no error");
  }
  for (const int64_t at : {-3, 2})
    EXPECT_THAT(error_with_lists("Gather", {2, 3}, {{0, at}}),
                HasSubstr("is out of range for axis 0 of 2 elements"));
  // An element of another row has the same place in memory.
  EXPECT_THAT(error_with_lists("GatherND", {2, 3}, {{0, 3}}, {1, 2}),
              HasSubstr("index 3 is out of range for axis 1 of 3 elements"));
  EXPECT_THAT(error_with_lists("GatherElements", {2}, {{0, 5}}), HasSubstr("index 5 is out of"));
  const Message scatter = node("ScatterND", {"x", "i", "u"}, {"y"});
  EXPECT_THAT(
      error_of_node(scatter, {2}, {integer_constant("i", {1, 1}, {9}), constant("u", {1}, {1})}),
      HasSubstr("index 9 is out of range for axis 0 of 2 elements"));
  EXPECT_THAT(error_with_lists("ReverseSequence", {4, 2}, {{9, 1}}),
              HasSubstr("sequence_lens has 9, which is not from 0 to 4"));
  const Message roi = node("RoiAlign", {"x", "r", "b"}, {"y"});
  EXPECT_THAT(error_of_node(roi, {1, 1, 4, 4},
                            {constant("r", {1, 4}, {0, 0, 1, 1}), integer_constant("b", {1}, {3})}),
              HasSubstr("batch_indices has 3, which is not from 0 to 0"));
}

// Indices that a device computes: outside of x GatherND reads 0, and not another row.
TEST(OnnxHostile, computed_indices_outside) {
  Message graph = Message()
                      .message(1, node("Add", {"i", "zero"}, {"at"}))
                      .message(1, node("GatherND", {"x", "at"}, {"y"}))
                      .text(2, "g")
                      .message(5, integer_constant("zero", {1, 1}, {0}))
                      .message(5, constant("x", {2, 3}, {1, 2, 3, 4, 5, 6}))
                      .message(11, value("i", tensor_type(kInt64, {4, 2})))
                      .message(12, Message().text(1, "y"));
  const Model model = model_of(model_of_bytes(graph));
  const Tensor at = Tensor::from<int64_t>({0, 3, 1, 2, -3, 0, -1, -1}, {4, 2});
  EXPECT_EQ(model({at})[0].to_vector<float>(), (std::vector<float>{0, 6, 0, 6}));
}

TEST(OnnxHostile, axes_that_do_not_fit) {
  EXPECT_EQ(error_with_lists("Squeeze", {2, 1}, {{1}}), "no error");
  EXPECT_THAT(error_with_lists("Squeeze", {2, 1}, {{0}}), HasSubstr("axis 0 of (2, 1) is not of"));
  const std::string twice = "an axis is named twice in ";
  EXPECT_THAT(error_with_lists("Unsqueeze", {2}, {{0, -3}}), HasSubstr(twice + "(0, 0)"));
  EXPECT_THAT(error_with_lists("Slice", {4, 4}, {{0, 1}, {4, 4}, {0, 0}}), HasSubstr(twice));
  Message pad = node("Pad", {"x", "p", "", "a"}, {"y"});
  EXPECT_THAT(
      error_of_node(pad, {2, 3},
                    {integer_constant("p", {4}, {1, 1, 1, 1}), integer_constant("a", {2}, {1, -1})},
                    18),
      HasSubstr(twice + "(1, 1)"));
  const Message pool = node("MaxPool", {"x"}, {"y"})
                           .message(5, attribute("kernel_shape", Integers{2}))
                           .message(5, attribute("pads", Integers{3, 3}));
  EXPECT_THAT(error_of_node(pool, {1, 1, 4}), HasSubstr("a window would lie in the pads alone"));
  const Message resize = node("Resize", {"x", "", "s", "n"}, {"y"});
  EXPECT_THAT(
      error_of_node(resize, {2}, {constant("s", {1}, {2}), integer_constant("n", {1}, {4})}),
      HasSubstr("it has both scales and sizes"));
}

TEST(OnnxHostile, sizes_of_resized_images) {
  const auto resized = [](int64_t size, const std::string& mode) {
    const Message resize = node("Resize", {"x", "", "", "sizes"}, {"y"});
    return error_of_node(Message(resize).message(5, attribute("mode", mode)), {2},
                         {integer_constant("sizes", {1}, {size})});
  };
  EXPECT_EQ(resized(3, "linear"), "no error");
  EXPECT_THAT(resized(-2, "linear"), HasSubstr("an axis would have -2 elements"));
  for (const std::string mode : {"linear", "nearest"})
    EXPECT_THAT(resized(1'000'000'000'000, mode),
                AllOf(StartsWith("[onnx] Resize node \"the Resize\": the host would compute"),
                      HasSubstr("more than 67108864")));
}

TEST(OnnxHostile, operator_sets_below_1) {
  const Message graph = graph_of_node(node("Relu", {"x"}, {"y"}), {2}, {});
  EXPECT_THAT(error_of_file(model_of_bytes(graph, 8, -5), {2}), HasSubstr("operator set -5"));
  EXPECT_EQ(error_of_file(model_of_bytes(graph, 8, 1), {2}), "no error");
}

TEST(OnnxHostile, attributes_that_a_call_of_a_function_gives) {
  const auto error_with = [](int64_t axis) {
    const Message referring = Message().text(1, "axis").integer(20, 2).text(21, "way");
    const Message function = Message()
                                 .text(1, "Own")
                                 .text(4, "a")
                                 .text(5, "b")
                                 .text(6, "way")
                                 .message(7, node("Softmax", {"a"}, {"b"}).message(5, referring))
                                 .text(10, "own");
    const Message call =
        node("Own", {"x"}, {"y"}).text(7, "own").message(5, attribute("way", axis));
    return error_of_file(
        model_of_bytes(graph_of_node(call, {2}, {})) + Message().message(25, function).bytes(),
        {2});
  };
  EXPECT_EQ(error_with(0), "no error");
  EXPECT_THAT(error_with(99), HasSubstr("Softmax node \"the Softmax\": axis is 99"));
}

TEST(OnnxHostile, elements_that_the_host_computes) {
  const Message length = integer_constant("n", {}, {int64_t{1} << 45});
  EXPECT_THAT(error_of_node(node("HannWindow", {"n"}, {"y"}), {2}, {length}),
              StartsWith("[onnx] HannWindow node \"the HannWindow\": the host would compute "
                         "35184372088832 elements"));
  EXPECT_THAT(error_of_node(node("DFT", {"x", "n"}, {"y"}), {1, 4, 1},
                            {integer_constant("n", {}, {int64_t{1} << 40})}),
              HasSubstr("DFT node \"the DFT\": the host would compute"));
}

// `depth` functions, each of which calls the next one ten times.
std::string nested_functions(int depth) {
  std::string bytes =
      model_of_bytes(graph_of_node(node("F0", {"x"}, {"y"}).text(7, "own"), {2}, {}));
  for (int i = 0; i < depth; ++i) {
    Message function = Message().text(1, "F" + std::to_string(i)).text(10, "own");
    function.text(4, "v0").text(5, "v10");
    for (int call = 0; call < 10; ++call) {
      const std::string from = "v" + std::to_string(call), to = "v" + std::to_string(call + 1);
      const bool is_last = i + 1 == depth;
      Message each = node(is_last ? "Relu" : "F" + std::to_string(i + 1), {from}, {to});
      function.message(7, is_last ? each : each.text(7, "own"));
    }
    bytes += Message().message(25, function).bytes();
  }
  return bytes;
}

TEST(OnnxHostile, functions_that_expand_to_many_nodes) {
  EXPECT_EQ(error_of_file(nested_functions(2), {2}), "no error");
  EXPECT_THAT(error_of_file(nested_functions(10), {2}),
              HasSubstr("the graph has more than 1000000 nodes once its functions"));
}

// A tree that is a chain: x goes on at node i if it is larger than i.
Message deep_tree(int64_t depth) {
  Integers ids, features, yes, no, trees;
  std::vector<float> values;
  std::vector<std::string> modes;
  for (int64_t i = 0; i <= 2 * depth; ++i) {
    const bool is_leaf = i >= depth;
    ids.push_back(i);
    trees.push_back(0);
    features.push_back(0);
    values.push_back(static_cast<float>(i));
    modes.push_back(is_leaf ? "LEAF" : "BRANCH_LEQ");
    yes.push_back(is_leaf ? 0 : depth + i);
    no.push_back(is_leaf ? 0 : i + 1 < depth ? i + 1 : 2 * depth);
  }
  Integers nodes_of_votes, of_one;
  std::vector<float> weights;
  for (int64_t i = 0; i <= depth; ++i) {
    nodes_of_votes.push_back(depth + i);
    of_one.push_back(0);
    weights.push_back(static_cast<float>(i));
  }
  Message tree = node("TreeEnsembleRegressor", {"x"}, {"y"}).text(7, "ai.onnx.ml");
  for (const auto& [name, list] : {std::pair("nodes_nodeids", ids),
                                   {"nodes_treeids", trees},
                                   {"nodes_featureids", features},
                                   {"nodes_truenodeids", yes},
                                   {"nodes_falsenodeids", no},
                                   {"target_nodeids", nodes_of_votes},
                                   {"target_treeids", of_one},
                                   {"target_ids", of_one}})
    tree.message(5, attribute(name, list));
  return tree.message(5, attribute("nodes_values", values))
      .message(5, attribute("target_weights", weights))
      .message(5, attribute("nodes_modes", modes))
      .message(5, attribute("n_targets", int64_t{1}));
}

TEST(OnnxHostile, deep_trees) {
  for (const int64_t depth : {3, 300, 20'000}) {
    const Model model = model_of(model_of_bytes(graph_of_node(deep_tree(depth), {2, 1}, {})));
    const auto last = static_cast<float>(depth);
    EXPECT_EQ(model({Tensor::from({{1.5F}, {last}})})[0].to_vector<float>(),
              (std::vector<float>{2, last}));
  }
}

// A loop of as many steps as M says, while its state is below 10.
Message counting_loop(bool is_endless) {
  Message body = Message()
                     .message(1, node("Add", {"n", "one"}, {"next"}))
                     .message(1, is_endless ? node("Identity", {"c"}, {"goes_on"})
                                            : node("Less", {"next", "ten"}, {"goes_on"}))
                     .text(2, "body");
  body.message(11, value("i", tensor_type(7, {})))
      .message(11, value("c", tensor_type(9, {})))
      .message(11, value("n", Integers{}));
  body.message(12, value("goes_on", tensor_type(9, {}))).message(12, value("next", Integers{}));
  return node("Loop", {is_endless ? "" : "most", "", "x"}, {"y"})
      .message(5, attribute("body", body));
}

std::string loop_model(bool is_endless) {
  return model_of_bytes(
      graph_of_node(counting_loop(is_endless), {},
                    {constant("one", {}, {1}), constant("ten", {}, {10}),
                     integer_constant("most", {}, {std::numeric_limits<int64_t>::max()})}));
}

TEST(OnnxHostile, loops_that_only_their_condition_ends) {
  EXPECT_EQ(model_of(loop_model(false))({Tensor(0.0F)})[0].item<float>(), 10);
  EXPECT_THAT(error_of_file(loop_model(true), {}),
              AllOf(StartsWith("[onnx] Loop node \"the Loop\": "),
                    HasSubstr("the call ran more than 1000000 nodes")));
}

struct Interrupted {};
using Clock = std::chrono::steady_clock;
std::atomic<Clock::time_point> due;

// How many seconds after the interruption, 0.2 s from now, the work ends.
double seconds_to_end(const std::function<void()>& work) {
  due = Clock::now() + std::chrono::milliseconds(200);
  set_interruption_check([] {
    if (Clock::now() >= due.load()) throw Interrupted();
  });
  bool was_interrupted = false;
  try {
    work();
  } catch (const Interrupted&) {
    was_interrupted = true;
  }
  set_interruption_check(nullptr);
  EXPECT_TRUE(was_interrupted) << "the work ended";
  return std::chrono::duration<double>(Clock::now() - due.load()).count();
}

TEST(OnnxHostile, interruptions_end_long_work) {
  constexpr double kMostSeconds = 1;
  const auto run = [](const std::string& bytes, const Shape& x) {
    return [=] { error_of_file(bytes, x); };
  };
  EXPECT_LT(seconds_to_end(run(loop_model(true), {})), kMostSeconds);
  EXPECT_LT(seconds_to_end(run(nested_functions(5), {2})), kMostSeconds);
  const Message window = graph_of_node(node("HannWindow", {"n"}, {"y"}), {2},
                                       {integer_constant("n", {}, {int64_t{1} << 26})});
  EXPECT_LT(seconds_to_end(run(model_of_bytes(window), {2})), kMostSeconds);
}

}  // namespace
}  // namespace plugrad::onnx

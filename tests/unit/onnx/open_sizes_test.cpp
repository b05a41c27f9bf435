// Models whose sizes differ from call to call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>

#include "base/log.h"
#include "engine/session.h"
#include "plugrad/onnx.h"
#include "plugrad/plugrad.h"
#include "tensor/size_arithmetic.h"
#include "unit/onnx/model_bytes.h"

namespace plugrad::onnx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Model loaded(const Message& graph, const SizeBounds& bounds = {}) {
  const std::string bytes = model_of_bytes(graph);
  return Model::from_bytes(std::as_bytes(std::span(bytes)), {}, bounds);
}

// A float tensor's declaration; sizes are numbers or names.
Message named_value(std::string_view name, const std::vector<std::string>& sizes) {
  Message dims;
  for (const std::string& size : sizes) {
    const bool is_number = std::isdigit(size.front()) != 0;
    dims.message(1, is_number ? Message().integer(1, std::stoll(size)) : Message().text(2, size));
  }
  return value(name, Message().message(1, Message().integer(1, 1).message(2, dims)));
}

// A model for the sizes of one call, on a device that compiles nothing.
Model exact(const Message& graph) {
  const std::string bytes = model_of_bytes(graph);
  return Model::from_bytes(std::as_bytes(std::span(bytes)), "REFERENCE");
}

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

uint64_t plans() {
  const engine::Statistics seen = engine::Session::current().statistics();
  return seen.plans_made + seen.plan_cache_hits;
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

// A model with one output, "y", of any shape; the inputs for a length.
struct LengthCase {
  const char* name;
  Message graph;
  std::vector<Shape> inputs;  // -1: the length
};

Message graph_of(const std::vector<Message>& nodes, const std::vector<Message>& inputs,
                 const std::vector<Message>& constants = {}) {
  Message graph;
  for (const Message& each : nodes) graph.message(1, each);
  graph.text(2, "graph");
  for (const Message& each : constants) graph.message(5, each);
  for (const Message& each : inputs) graph.message(11, each);
  return graph.message(12, value("y", Message().message(1, Message().integer(1, 1))));
}

Message one_integer(std::string_view name, int64_t number) {
  return integer_constant(name, {1}, {number});
}

// Slices a table or x with bounds that are computed of the number n of x's rows.
Message sliced(const std::string& from, const std::string& start, const std::string& end,
               const std::string& step = "one") {
  std::vector<float> table(120);
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i);
  return graph_of(
      {node("Shape", {"x"}, {"n"}).message(5, attribute("end", int64_t{1})),
       node("Add", {"n", "two"}, {"n + 2"}), node("Sub", {"n", "one"}, {"n - 1"}),
       node("Mul", {"n", "two"}, {"2n"}), node("Slice", {from, start, end, "zero", step}, {"y"})},
      {value("x", {-1, 2})},
      {constant("table", {40, 3}, table), one_integer("zero", 0), one_integer("one", 1),
       one_integer("two", 2), one_integer("last", -1), one_integer("-3", -3), one_integer("9", 9),
       one_integer("end", INT64_MAX)});
}

std::vector<LengthCase> length_cases() {
  const Shape heads = {1, 2, -1, 4}, rows = {-1, 2};
  const std::vector<Message> of_heads = {value("x", heads)}, of_rows = {value("x", rows)};
  const Message apart = node("Unsqueeze", {"x", "two"}, {"apart"}),
                joined = node("Reshape", {"repeated", "joined"}, {"y"});
  const std::vector<Message> sizes = {one_integer("two", 2),
                                      integer_constant("joined", {4}, {1, 6, -1, 4}),
                                      integer_constant("three", {5}, {1, 1, 3, 1, 1})};
  return {
      {"heads repeated by Expand",
       graph_of({apart, node("Expand", {"apart", "three"}, {"repeated"}), joined}, of_heads, sizes),
       {heads}},
      {"heads repeated by Expand to sizes",
       graph_of(
           {apart, node("Shape", {"x"}, {"all"}), node("Slice", {"all", "zero", "two"}, {"front"}),
            node("Slice", {"all", "two", "four"}, {"back"}),
            node("Concat", {"front", "count", "back"}, {"wanted"})
                .message(5, attribute("axis", int64_t{0})),
            node("Expand", {"apart", "wanted"}, {"repeated"}), joined},
           of_heads,
           {sizes[0], sizes[1], one_integer("zero", 0), one_integer("four", 4),
            one_integer("count", 3)}),
       {heads}},
      {"heads repeated by Tile",
       graph_of({apart, node("Tile", {"apart", "three"}, {"repeated"}), joined}, of_heads, sizes),
       {heads}},
      {"Tile along the axis",
       graph_of({node("Tile", {"x", "by"}, {"y"})}, of_rows, {integer_constant("by", {2}, {3, 2})}),
       {rows}},
      {"Tile of no copies",
       graph_of({node("Tile", {"x", "by"}, {"none"}), node("ReduceSum", {"none"}, {"y"})}, of_rows,
                {integer_constant("by", {2}, {1, 0})}),
       {rows}},
      {"a constant of the sizes",
       graph_of({node("Shape", {"x"}, {"all"}), node("ConstantOfShape", {"all"}, {"zeros"}),
                 node("Add", {"zeros", "x"}, {"sum"}), node("Expand", {"seven", "all"}, {"sevens"}),
                 node("Mul", {"sum", "sevens"}, {"y"})},
                of_rows, {constant("seven", {1, 1}, {7})}),
       {rows}},
      {"table from n to n + 2", sliced("table", "n", "n + 2"), {rows}},
      {"table to n", sliced("table", "zero", "n"), {rows}},
      {"table from n", sliced("table", "n", "end"), {rows}},
      {"table from 2 to n + 2", sliced("table", "two", "n + 2"), {rows}},
      {"table from n to 2n", sliced("table", "n", "2n"), {rows}},
      {"last row", sliced("x", "last", "end"), {rows}},
      {"last rows, of which there may be fewer", sliced("x", "-3", "end"), {rows}},
      {"without the last row", sliced("x", "zero", "last"), {rows}},
      {"all but the first row", sliced("x", "one", "end"), {rows}},
      {"first rows, of which there may be fewer", sliced("x", "zero", "9"), {rows}},
      {"from n - 1", sliced("x", "n - 1", "n"), {rows}},
      {"every second row", sliced("x", "zero", "end", "two"), {rows}},
      {"a cache that grows",
       graph_of({node("Concat", {"x", "new"}, {"grown"}).message(5, attribute("axis", int64_t{0})),
                 node("Softmax", {"grown"}, {"y"}).message(5, attribute("axis", int64_t{0}))},
                {value("x", rows), value("new", {1, 2})}),
       {rows, {1, 2}}},
      {"sums along the axis",
       graph_of({node("CumSum", {"x", "zero"}, {"y"})}, of_rows, {one_integer("zero", 0)}),
       {rows}},
      {"sums along another axis",
       graph_of({node("CumSum", {"x", "one"}, {"y"})}, of_rows, {one_integer("one", 1)}),
       {rows}},
      {"the largest of a row", graph_of({node("Hardmax", {"x"}, {"y"})}, of_rows), {rows}},
      {"what Dropout keeps",
       graph_of({node("Dropout", {"x"}, {"same", "kept"}),
                 node("Cast", {"kept"}, {"y"}).message(5, attribute("to", int64_t{1}))},
                of_rows),
       {rows}},
  };
}

std::vector<Tensor> inputs_of(const LengthCase& one, int64_t length) {
  std::vector<Tensor> inputs;
  for (Shape shape : one.inputs) {
    std::ranges::replace(shape, int64_t{-1}, length);
    inputs.push_back((Tensor::arange(element_count(shape), DType::F32) * 0.7)
                         .sin()
                         .reshape(shape)
                         .contiguous()
                         .realize());
  }
  return inputs;
}

void expect_same(const Tensor& got, const Tensor& wanted, const std::string& what) {
  EXPECT_EQ(got.shape(), wanted.shape()) << what;
  const auto values = got.to_vector<float>(), exact = wanted.to_vector<float>();
  EXPECT_THAT(values, testing::Pointwise(testing::FloatNear(1e-5F), exact)) << what;
}

TEST(OpenSizes, a_recording_of_all_lengths_gives_what_those_of_each_give) {
  for (const LengthCase& one : length_cases()) {
    const Model inferred = loaded(one.graph), bounded = loaded(one.graph, {{"n", {1, 12}}});
    std::set<int64_t> seen;
    for (const int64_t length : {3, 5, 4, 9, 1, 12, 2}) {
      const std::string what = fmt::format("{} of length {}", one.name, length);
      const std::vector<Tensor> inputs = inputs_of(one, length);
      const Tensor wanted = exact(one.graph)(inputs)[0];
      for (const Model* model : {&inferred, &bounded}) {
        const uint64_t before = plans();
        const Tensor got = (*model)(inputs)[0].realize();
        if (seen.size() >= (model == &bounded ? 1 : 3)) EXPECT_EQ(plans() - before, 0u) << what;
        expect_same(got, wanted, what);
      }
      seen.insert(length);
    }
    expect_same(inferred(inputs_of(one, 70))[0], exact(one.graph)(inputs_of(one, 70))[0],
                fmt::format("{} above the bound", one.name));
  }
}

// Attention over a cache of two layers, whose lengths are "past", and a mask of "total" positions, as
// exporters of language models name them.
Message decoder() {
  std::vector<Message> nodes, outputs;
  std::vector<Message> inputs = {named_value("x", {"sequence", "4"}),
                                 named_value("mask", {"total"})};
  std::string x = "x";
  for (const std::string layer : {"0", "1"}) {
    const auto in = [&](const std::string& name) { return name + layer; };
    inputs.push_back(named_value(in("past"), {in("past"), "4"}));
    nodes.push_back(
        node("Concat", {in("past"), x}, {in("keys")}).message(5, attribute("axis", int64_t{0})));
    nodes.push_back(node("Transpose", {in("keys")}, {in("columns")}));
    nodes.push_back(node("MatMul", {x, in("columns")}, {in("scores")}));
    nodes.push_back(node("Add", {in("scores"), "mask"}, {in("masked")}));
    nodes.push_back(node("Softmax", {in("masked")}, {in("weights")}));
    nodes.push_back(node("MatMul", {in("weights"), in("keys")}, {in("mixed")}));
    nodes.push_back(node("Add", {in("mixed"), x}, {in("y")}));
    outputs.push_back(named_value(in("keys"), {in("total"), "4"}));
    x = in("y");
  }
  Message graph;
  for (const Message& each : nodes) graph.message(1, each);
  graph.text(2, "decoder").message(12, named_value(x, {"sequence", "4"}));
  for (const Message& each : inputs) graph.message(11, each);
  for (const Message& each : outputs) graph.message(12, each);
  return graph;
}

std::vector<Tensor> decoder_inputs(int64_t sequence, int64_t past) {
  std::vector<Tensor> inputs;
  for (const Shape& shape :
       {Shape{sequence, 4}, Shape{past + sequence}, Shape{past, 4}, Shape{past, 4}})
    inputs.push_back((Tensor::arange(element_count(shape), DType::F32) * 0.3)
                         .cos()
                         .reshape(shape)
                         .contiguous()
                         .realize());
  return inputs;
}

// The cache's sizes are one, and that of the mask is the sum of two: each alone, the operands of
// the sum of scores and mask would have sizes of their own.
TEST(OpenSizes, sizes_that_are_sums_vary_together) {
  const Model model = loaded(decoder());
  const std::vector<std::pair<int64_t, int64_t>> calls = {
      {5, 0}, {1, 5}, {1, 6}, {1, 7}, {1, 8},  {3, 0},  {1, 3},  {1, 4},  {4, 0}, {1, 4},
      {2, 9}, {6, 0}, {1, 6}, {7, 0}, {3, 11}, {4, 20}, {1, 60}, {60, 1}, {1, 9}};
  std::vector<size_t> recorded;
  for (size_t call = 0; call < calls.size(); ++call) {
    const auto [sequence, past] = calls[call];
    const std::vector<Tensor> inputs = decoder_inputs(sequence, past);
    const uint64_t before = plans();
    const std::vector<Tensor> got = model(inputs);
    Tensor::realize(got);
    if (plans() > before) recorded.push_back(call);
    const std::vector<Tensor> wanted = exact(decoder())(inputs);
    for (size_t i = 0; i < wanted.size(); ++i)
      expect_same(got[i], wanted[i], fmt::format("output {} of {} after {}", i, sequence, past));
  }
  EXPECT_THAT(recorded, ElementsAre(0, 1, 2, 5, 6))
      << "alone, alone; the cache varies; the sequence varies without a cache, and with one";
}

uint64_t kernels_made() {
  return engine::Session::current().statistics().kernels_compiled;
}

// The results of a call are views of memory for the bound, which the next call takes and a read
// cuts, without a kernel for each size.
TEST(OpenSizes, caches_that_are_results_compile_nothing) {
  const Model model = loaded(decoder()), wanted = exact(decoder());
  std::vector<Tensor> given = decoder_inputs(1, 3), copy = given;
  const Tensor weights = decoder_inputs(1, 200)[1];
  for (int64_t token = 0; token < 72; ++token) {
    const uint64_t before = kernels_made();
    std::vector<Tensor> got = model(given);
    const auto read = got[1].to_vector<float>();
    if (token > 2 && token != 62) EXPECT_EQ(kernels_made(), before) << "token " << token;
    const std::vector<Tensor> other = wanted(copy);
    EXPECT_EQ(read.size(), static_cast<size_t>(4 * (token + 4)));
    for (size_t i = 0; i < got.size(); ++i)
      expect_same(got[i], other[i], fmt::format("output {} of token {}", i, token));
    const Tensor mask = weights.slice(0, {0, token + 5}).contiguous().realize();
    given = {given[0], mask, got[1], got[2]};
    copy = {copy[0], mask, other[1], other[2]};
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

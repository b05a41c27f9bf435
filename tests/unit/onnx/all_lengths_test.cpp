// One recording for all lengths gives what a recording for each length gives.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "plugrad/plugrad.h"
#include "unit/onnx/open_sizes.h"

namespace plugrad::onnx {
namespace {

using testing::ElementsAre;

// A model for the sizes of one call, on a device that compiles nothing.
Model exact(const Message& graph) {
  const std::string bytes = model_of_bytes(graph);
  return Model::from_bytes(std::as_bytes(std::span(bytes)), "REFERENCE");
}

// A model with one output, "y", of any shape; the inputs for a length.
struct LengthCase {
  const char* name;
  Message graph;
  std::vector<Shape> inputs;  // -1: the length
};

Message graph_with(const std::vector<Message>& nodes, const std::vector<Message>& inputs,
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
  return graph_with(
      {node("Shape", {"x"}, {"n"}).message(5, attribute("end", int64_t{1})),
       node("Add", {"n", "two"}, {"n + 2"}), node("Sub", {"n", "one"}, {"n - 1"}),
       node("Mul", {"n", "two"}, {"2n"}), node("Slice", {from, start, end, "zero", step}, {"y"})},
      {value("x", {-1, 2})},
      {constant("table", {40, 3}, table), one_integer("zero", 0), one_integer("one", 1),
       one_integer("two", 2), one_integer("last", -1), one_integer("-3", -3), one_integer("9", 9),
       one_integer("end", INT64_MAX)});
}

std::vector<LengthCase> repeated_cases() {
  const Shape heads = {1, 2, -1, 4}, rows = {-1, 2};
  const std::vector<Message> of_heads = {value("x", heads)}, of_rows = {value("x", rows)};
  const Message apart = node("Unsqueeze", {"x", "two"}, {"apart"}),
                joined = node("Reshape", {"repeated", "joined"}, {"y"});
  const std::vector<Message> sizes = {one_integer("two", 2),
                                      integer_constant("joined", {4}, {1, 6, -1, 4}),
                                      integer_constant("three", {5}, {1, 1, 3, 1, 1})};
  return {
      {"heads repeated by Expand",
       graph_with({apart, node("Expand", {"apart", "three"}, {"repeated"}), joined}, of_heads,
                  sizes),
       {heads}},
      {"heads repeated by Expand to sizes",
       graph_with(
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
       graph_with({apart, node("Tile", {"apart", "three"}, {"repeated"}), joined}, of_heads, sizes),
       {heads}},
      {"Tile along the axis",
       graph_with({node("Tile", {"x", "by"}, {"y"})}, of_rows,
                  {integer_constant("by", {2}, {3, 2})}),
       {rows}},
      {"Tile of no copies",
       graph_with({node("Tile", {"x", "by"}, {"none"}), node("ReduceSum", {"none"}, {"y"})},
                  of_rows, {integer_constant("by", {2}, {1, 0})}),
       {rows}},
      {"a constant of the sizes",
       graph_with(
           {node("Shape", {"x"}, {"all"}), node("ConstantOfShape", {"all"}, {"zeros"}),
            node("Add", {"zeros", "x"}, {"sum"}), node("Expand", {"seven", "all"}, {"sevens"}),
            node("Mul", {"sum", "sevens"}, {"y"})},
           of_rows, {constant("seven", {1, 1}, {7})}),
       {rows}},
  };
}

std::vector<LengthCase> sliced_cases() {
  const Shape rows = {-1, 2};
  return {
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
  };
}

std::vector<LengthCase> further_cases() {
  const Shape rows = {-1, 2};
  const std::vector<Message> of_rows = {value("x", rows)};
  return {
      {"a cache that grows",
       graph_with(
           {node("Concat", {"x", "new"}, {"grown"}).message(5, attribute("axis", int64_t{0})),
            node("Softmax", {"grown"}, {"y"}).message(5, attribute("axis", int64_t{0}))},
           {value("x", rows), value("new", {1, 2})}),
       {rows, {1, 2}}},
      {"sums along the axis",
       graph_with({node("CumSum", {"x", "zero"}, {"y"})}, of_rows, {one_integer("zero", 0)}),
       {rows}},
      {"sums along another axis",
       graph_with({node("CumSum", {"x", "one"}, {"y"})}, of_rows, {one_integer("one", 1)}),
       {rows}},
      {"the largest of a row", graph_with({node("Hardmax", {"x"}, {"y"})}, of_rows), {rows}},
      {"what Dropout keeps",
       graph_with({node("Dropout", {"x"}, {"same", "kept"}),
                   node("Cast", {"kept"}, {"y"}).message(5, attribute("to", int64_t{1}))},
                  of_rows),
       {rows}},
  };
}

// The 4 largest elements of the axis, of which there may be fewer, as detectors choose their boxes.
std::vector<LengthCase> top_cases() {
  const Shape rows = {-1, 2};
  const auto top = [&](const std::vector<Message>& to_k, const std::string& k,
                       const std::string& result, int64_t largest = 1) {
    std::vector<Message> nodes = {
        node("Shape", {"x"}, {"n"}).message(5, attribute("end", int64_t{1}))};
    nodes.insert(nodes.end(), to_k.begin(), to_k.end());
    nodes.push_back(node("TopK", {"x", k}, {"values", "places"})
                        .message(5, attribute("axis", int64_t{0}))
                        .message(5, attribute("largest", largest)));
    nodes.push_back(node("Cast", {result}, {"y"}).message(5, attribute("to", int64_t{1})));
    return graph_with(nodes, {value("x", rows)}, {one_integer("four", 4), one_integer("one", 1)});
  };
  const std::vector<Message> least = {node("Min", {"n", "four"}, {"k"})};
  const std::vector<Message> reduced = {
      node("Concat", {"four", "n"}, {"both"}).message(5, attribute("axis", int64_t{0})),
      node("ReduceMin", {"both"}, {"k"}).message(5, attribute("keepdims", int64_t{1}))};
  return {
      {"the largest", top(least, "k", "values"), {rows}},
      {"where the largest are", top(least, "k", "places"), {rows}},
      {"the smallest", top(least, "k", "values", 0), {rows}},
      {"the largest, by ReduceMin", top(reduced, "k", "values"), {rows}},
      {"all in order", top({}, "n", "values"), {rows}},
      {"the largest one", top({}, "one", "values"), {rows}},
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

void expect_one_recording(const std::vector<LengthCase>& cases) {
  for (const LengthCase& one : cases) {
    const Model inferred = loaded(one.graph), bounded = loaded(one.graph, {{"n", {1, 12}}});
    std::set<int64_t> seen;
    for (const int64_t length : {3, 5, 4, 9, 1, 12, 2}) {
      const std::string what = fmt::format("{} of length {}", one.name, length);
      const std::vector<Tensor> inputs = inputs_of(one, length);
      const Tensor wanted = exact(one.graph)(inputs)[0];
      for (const Model* model : {&inferred, &bounded}) {
        const uint64_t before = plans();
        const Tensor got = (*model)(inputs)[0].realize();
        EXPECT_TRUE(plans() == before || seen.size() < (model == &bounded ? 1u : 3u)) << what;
        expect_same(got, wanted, what);
      }
      seen.insert(length);
    }
    expect_same(inferred(inputs_of(one, 70))[0], exact(one.graph)(inputs_of(one, 70))[0],
                fmt::format("{} above the bound", one.name));
  }
}

TEST(AllLengths, repeats_and_constants) {
  expect_one_recording(repeated_cases());
}
TEST(AllLengths, slices) {
  expect_one_recording(sliced_cases());
}
TEST(AllLengths, the_largest_elements) {
  expect_one_recording(top_cases());
}
TEST(AllLengths, caches_sums_and_masks) {
  expect_one_recording(further_cases());
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
TEST(AllLengths, sizes_that_are_sums_vary_together) {
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

// Memory for the bound keeps what calls before left in it.
TEST(AllLengths, nothing_behind_a_size_is_used) {
  const Model model = loaded(decoder());
  for (const int64_t past : {3, 4, 5, 6}) Tensor::realize(model(decoder_inputs(1, past)));
  for (const int64_t past : {9, 1, 30}) {
    std::vector<Tensor> poison = decoder_inputs(1, 60);
    for (Tensor& each : poison) each = (each * NAN).realize();
    EXPECT_TRUE(std::isnan(model(poison)[0].to_vector<float>()[0]));
    poison.clear();
    const std::vector<Tensor> inputs = decoder_inputs(1, past);
    const uint64_t before = plans();
    const std::vector<Tensor> got = model(inputs);
    Tensor::realize(got);
    EXPECT_EQ(plans(), before);
    const std::vector<Tensor> wanted = exact(decoder())(inputs);
    for (size_t i = 0; i < wanted.size(); ++i)
      expect_same(got[i], wanted[i], fmt::format("output {} after {}", i, past));
  }
}

uint64_t kernels_made() {
  return engine::Session::current().statistics().kernels_compiled;
}

// The results of a call are views of memory for the bound, which the next call takes and a read
// cuts, without a kernel for each size.
TEST(AllLengths, caches_that_are_results_compile_nothing) {
  const Model model = loaded(decoder()), wanted = exact(decoder());
  std::vector<Tensor> given = decoder_inputs(1, 3), copy = given;
  const Tensor weights = decoder_inputs(1, 200)[1];
  for (int64_t token = 0; token < 72; ++token) {
    const uint64_t before = kernels_made();
    std::vector<Tensor> got = model(given);
    const auto read = got[1].to_vector<float>();
    EXPECT_TRUE(kernels_made() == before || token < 3 || token == 62) << "token " << token;
    const std::vector<Tensor> other = wanted(copy);
    EXPECT_EQ(read.size(), static_cast<size_t>(4 * (token + 4)));
    for (size_t i = 0; i < got.size(); ++i)
      expect_same(got[i], other[i], fmt::format("output {} of token {}", i, token));
    const Tensor mask = weights.slice(0, {0, token + 5}).contiguous().realize();
    given = {given[0], mask, got[1], got[2]};
    copy = {copy[0], mask, other[1], other[2]};
  }
}

}  // namespace
}  // namespace plugrad::onnx

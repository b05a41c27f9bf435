// Operators of models that scikit-learn's converter writes: labels, probabilities by label, support
// vectors, words of texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugrad/onnx.h"
#include "plugrad/plugrad.h"
#include "unit/onnx/model_bytes.h"

namespace plugrad::onnx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Model model_from(const Message& graph) {
  const std::string bytes = model_of_bytes(graph, 10, 17);
  return Model::from_bytes(std::as_bytes(std::span(bytes)));
}
std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// One node on x.
Message node_of(std::string_view domain, std::string_view op, const Message& x,
                const std::vector<std::string>& outputs, const std::vector<Message>& attributes) {
  Message made = node(op, {"x"}, outputs).text(7, domain);
  for (const Message& each : attributes) made.message(5, each);
  Message graph = Message().message(1, made).message(11, value("x", x));
  for (const std::string& name : outputs) graph.message(12, value(name, Message()));
  return graph;
}
Message learned(std::string_view op, const Message& x, const std::vector<std::string>& outputs,
                const std::vector<Message>& attributes) {
  return node_of("ai.onnx.ml", op, x, outputs, attributes);
}

using Texts = std::vector<std::string>;
using Integers = std::vector<int64_t>;
using Floats = std::vector<float>;

TEST(OnnxClassifiers, zip_map_gives_a_map_for_each_row) {
  const Message x = tensor_type(kFloat, {-1, 2});
  const auto maps_of = [](const Model& model, const Tensor& rows) {
    return std::get<Sequence>(model.run({rows})[0].value).elements;
  };
  const Tensor rows = Tensor::from({0.25F, 0.75F, 1.0F, 0.0F}, {2, 2});
  const Model named = model_from(
      learned("ZipMap", x, {"y"}, {attribute("classlabels_strings", Texts{"spam", "ham"})}));
  const auto by_name = maps_of(named, rows);
  ASSERT_EQ(by_name.size(), 2);
  EXPECT_THAT((std::get<std::map<std::string, float>>(std::get<Map>(by_name[0].value).entries)),
              ElementsAre(testing::Pair("ham", 0.75F), testing::Pair("spam", 0.25F)));
  const Model numbered =
      model_from(learned("ZipMap", x, {"y"}, {attribute("classlabels_int64s", Integers{7, 3})}));
  const auto by_number = maps_of(numbered, rows);
  EXPECT_THAT((std::get<std::map<int64_t, float>>(std::get<Map>(by_number[1].value).entries)),
              ElementsAre(testing::Pair(3, 0.0F), testing::Pair(7, 1.0F)));
  EXPECT_TRUE(maps_of(named, Tensor::zeros({0, 2})).empty());
  EXPECT_THAT(refusal([&] { named({rows}); }),
              HasSubstr("output \"y\" is no tensor of numbers; call the model with run()"));
  const Model three =
      model_from(learned("ZipMap", x, {"y"}, {attribute("classlabels_int64s", Integers{1, 2, 3})}));
  EXPECT_THAT(refusal([&] { three.run({rows}); }),
              HasSubstr("0 names and 3 integers are no labels for an input of shape (2, 2)"));
}

// Three classes with one vector each, and two features.
std::vector<Message> three_classes() {
  return {attribute("classlabels_ints", Integers{10, 20, 30}),
          attribute("vectors_per_class", Integers{1, 1, 1}),
          attribute("support_vectors", Floats{1, 0, 0, 1, -1, -1}),
          attribute("coefficients", Floats{1, -1, -1, 1, 1, -1}),
          attribute("rho", Floats{0, 0.5F, 0})};
}

TEST(OnnxClassifiers, pairs_of_classes_vote_with_their_support_vectors) {
  const Message x = tensor_type(kFloat, {-1, 2});
  const Model model = model_from(learned("SVMClassifier", x, {"label", "scores"}, three_classes()));
  const auto results = model({Tensor::from({2.0F, 1.0F, -4.0F, 1.0F}, {2, 2})});
  // The products with the vectors are 2, 1, -3 and -4, 1, 3.
  EXPECT_THAT(results[0].to_vector<int>(), ElementsAre(10, 30));
  EXPECT_THAT(results[1].to_vector<float>(), ElementsAre(1, 5.5F, 4, -5, -6.5F, -2));
  auto attributes = three_classes();
  attributes.push_back(attribute("prob_a", Floats{-1, -1, -1}));
  attributes.push_back(attribute("prob_b", Floats{0, 0, 0}));
  const Model probable = model_from(learned("SVMClassifier", x, {"label", "scores"}, attributes));
  const auto p = probable({Tensor::from({2.0F, 1.0F}, {1, 2})})[1].to_vector<float>();
  EXPECT_NEAR(p[0] + p[1] + p[2], 1, 1e-5);
  EXPECT_TRUE(p[0] > p[1] && p[1] > p[2]) << p[0] << " " << p[1] << " " << p[2];
  attributes.back() = attribute("prob_b", Floats{0});
  EXPECT_THAT(
      refusal([&] {
        model_from(learned("SVMClassifier", x, {"l", "s"}, attributes))({Tensor::zeros({1, 2})});
      }),
      HasSubstr("prob_b has 1 numbers, it needs 3"));
}

TEST(OnnxClassifiers, a_regressor_sums_its_support_vectors) {
  const auto regressor = [](std::string_view kernel, const std::vector<Message>& more = {}) {
    std::vector<Message> attributes = {
        attribute("n_supports", int64_t{2}),      attribute("support_vectors", Floats{1, 0, 0, 1}),
        attribute("coefficients", Floats{2, -1}), attribute("rho", Floats{0.5F}),
        attribute("kernel_type", kernel),         attribute("kernel_params", Floats{0.5F, 1, 2})};
    attributes.insert(attributes.end(), more.begin(), more.end());
    return model_from(learned("SVMRegressor", tensor_type(kFloat, {1, 2}), {"y"}, attributes))(
               {Tensor::from({3.0F, 4.0F}, {1, 2})})[0]
        .item<float>();
  };
  EXPECT_FLOAT_EQ(regressor("LINEAR"), 2.5F);
  EXPECT_FLOAT_EQ(regressor("POLY"), 2 * 6.25F - 9 + 0.5F);
  EXPECT_FLOAT_EQ(regressor("RBF"), 2 * std::exp(-10.0F) - std::exp(-9.0F) + 0.5F);
  EXPECT_FLOAT_EQ(regressor("SIGMOID"), 2 * std::tanh(2.5F) - std::tanh(3.0F) + 0.5F);
  EXPECT_EQ(regressor("LINEAR", {attribute("one_class", int64_t{1})}), 1);
}

TEST(OnnxClassifiers, an_element_of_no_category_is_refused_where_zeros_is_0) {
  const auto encoder = [](int64_t type, const Message& categories, int64_t zeros) {
    return model_from(learned("OneHotEncoder", tensor_type(type, {2}), {"y"},
                              {categories, attribute("zeros", zeros)}));
  };
  const Message numbers = attribute("cats_int64s", Integers{4, 5}),
                names = attribute("cats_strings", Texts{"a", "b"});
  const Tensor x = Tensor::from<int64_t>({5, 6});
  EXPECT_THAT(encoder(kInt64, numbers, 1)({x})[0].to_vector<int>(), ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(refusal([&] { encoder(kInt64, numbers, 0)({x}); }),
              HasSubstr("\"6\" is in no category, and zeros is 0"));
  EXPECT_THAT(encoder(kInt64, numbers, 0)({x.minimum(5)})[0].to_vector<int>(),
              ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(refusal([&] { encoder(kString, names, 0).run({Strings{{2}, {"b", "c"}}}); }),
              HasSubstr("\"c\" is in no category"));
}

TEST(OnnxClassifiers, a_tokenizer_splits_at_separators_matches_and_characters) {
  const auto tokens = [](const std::vector<Message>& how, const Texts& texts) {
    std::vector<Message> attributes = {attribute("pad_value", std::string_view("#"))};
    attributes.insert(attributes.end(), how.begin(), how.end());
    const auto results = model_from(node_of("com.microsoft", "Tokenizer",
                                            tensor_type(kString, {-1}), {"y"}, attributes))
                             .run({Strings{{std::ssize(texts)}, texts}});
    return std::get<Strings>(results[0].value);
  };
  const auto with = [](std::string_view name, const auto& given, int64_t least, int64_t mark) {
    return std::vector<Message>{attribute(name, given), attribute("mincharnum", least),
                                attribute("mark", mark)};
  };
  const Strings words = tokens(with("separators", Texts{" ", ","}, 2, 0), {"ab c,def", "gh"});
  EXPECT_EQ(words.shape, (Shape{2, 2}));
  EXPECT_THAT(words.elements, ElementsAre("ab", "def", "gh", "#"));
  EXPECT_THAT(tokens(with("separators", Texts{""}, 1, 1), {"ä", "bc"}).elements,
              ElementsAre("\x02", "ä", "\x03", "#", "\x02", "b", "c", "\x03"));
  EXPECT_THAT(tokens(with("tokenexp", std::string_view("[a-z]+|ä"), 1, 0), {"ab9ä-c"}).elements,
              ElementsAre("ab", "ä", "c"));
  EXPECT_EQ(tokens(with("separators", Texts{"x"}, 1, 1), {"x", ""}).shape, (Shape{2, 0}));
  EXPECT_THAT(refusal([&] { tokens(with("separators", Texts{"x*"}, 1, 0), {"ab"}); }),
              HasSubstr("the separator \"x*\" matches an empty text"));
  EXPECT_THAT(refusal([&] { tokens(with("separators", Texts{"("}, 1, 0), {"ab"}); }),
              HasSubstr("\"(\" is no RE2 pattern"));
}

}  // namespace
}  // namespace plugrad::onnx

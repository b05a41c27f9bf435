// Tests the corpus: its rows are complete, distinct and computable; its results are saved and
// summarised.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include "bench/corpus/model.h"
#include "bench/corpus/rows.h"
#include "bench/corpus/summary.h"
#include "bench/rows/kinds.h"
#include "plugrad/error.h"
#include "unit/base/temporary_directory.h"

namespace plugrad::bench {
namespace {

using ::testing::HasSubstr;

const std::vector<CorpusRow>& all_rows() {
  static const std::vector<CorpusRow> rows = corpus_rows();
  return rows;
}

std::vector<std::string> all_rows_of(const std::string& family) {
  std::vector<std::string> names;
  for (const CorpusRow& row : all_rows())
    if (row.family == family) names.push_back(row.item.name);
  return names;
}

const CorpusRow& row_named(const std::string& name) {
  for (const CorpusRow& row : all_rows())
    if (row.item.name == name) return row;
  throw std::invalid_argument("no row " + name);
}

// The error of corpus_rows() for a folder with this file.
std::string refusal(const std::string& text) {
  const TemporaryDirectory folder;
  std::ofstream(folder / "net.json") << text;
  try {
    corpus_rows(folder.path());
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::User);
    return error.what();
  }
  return "accepted";
}

std::string refusal_of_rows(const std::string& rows) {
  return refusal(R"({"title": "test", "rows": [)" + rows + "]}");
}

TEST(Corpus, EachFamilyHasItsRows) {
  std::map<std::string, int> rows;
  for (const CorpusRow& row : all_rows()) ++rows[row.family];
  const std::map<std::string, int> expected = {
      {"products", 40}, {"convolutions", 98}, {"attention", 19}, {"norms", 23},
      {"softmax", 10},  {"pooling", 19},      {"embedding", 9},  {"elementwise", 46}};
  EXPECT_EQ(rows, expected);
  EXPECT_EQ(corpus_families().size(), expected.size());
}

TEST(Corpus, NetworksBatchesAndWindows_AreAllThere) {
  std::set<std::string> networks;
  std::map<int64_t, int> batches;
  std::set<int64_t> kernels, dilations;
  std::set<std::string> strides;
  int trained = 0, grouped = 0, depthwise = 0;
  for (const CorpusRow& row : all_rows()) {
    networks.insert(row.network);
    const Case& item = row.item;
    trained += item.options.value("gradients", false);
    if (item.shapes[0].size() == 4) ++batches[item.shapes[0][0]];
    if (item.kind != "conv2d") continue;
    kernels.insert(item.shapes[1][3]);
    dilations.insert(item.options.value("dilation", int64_t{1}));
    strides.insert(item.options.value("stride", nlohmann::json(1)).dump());
    const int64_t groups = item.options.value("groups", int64_t{1});
    (groups == item.shapes[0][1] ? depthwise : grouped) += groups > 1;
  }
  EXPECT_EQ(networks,
            (std::set<std::string>{"resnet18", "resnet50", "mobilenet_v2", "efficientnet_b0",
                                   "yolo_nano", "unet", "vit_tiny", "minilm", "gpt2", "smollm_135m",
                                   "speech_activity", "ocr_detector"}));
  EXPECT_GE(batches[1], 80);
  EXPECT_GE(batches[8], 40);
  EXPECT_GE(batches[32], 10);
  EXPECT_GE(trained, 40);
  EXPECT_GE(grouped, 2);
  EXPECT_GE(depthwise, 15);
  EXPECT_THAT(kernels, ::testing::IsSupersetOf({1, 2 + 1, 5, 7}));
  EXPECT_THAT(dilations, ::testing::IsSupersetOf({1, 2, 4}));
  EXPECT_THAT(strides, ::testing::IsSupersetOf({"1", "2", "[1,2]"}));
}

TEST(Corpus, WorkOfARow_IsCounted) {
  const CorpusRow& first = row_named("resnet18/conv2d/1x3x224x224,64x3x7x7/padding:3/stride:2");
  EXPECT_EQ(first.item.flops, 2.0 * 64 * 112 * 112 * 3 * 49);
  EXPECT_EQ(first.item.unit, "GFLOP/s");
  EXPECT_EQ(first.count, 1);
  const CorpusRow& product = row_named("resnet18/matmul/32x512,1000x512/gradients/transpose:b");
  EXPECT_EQ(product.item.flops, 3 * 2.0 * 32 * 512 * 1000);
  EXPECT_EQ(product.item.shapes.back(), (std::vector<int64_t>{32, 1000}));
  const CorpusRow& up = row_named("unet/conv_transpose2d/1x512x16x16,512x256x2x2/stride:2");
  EXPECT_EQ(up.item.flops, 2.0 * 256 * 32 * 32 * 512);
  const CorpusRow& pool = row_named("resnet18/global_avg_pool/32x512x7x7");
  EXPECT_EQ(pool.item.bytes, 4.0 * (32 * 512 * 49 + 32 * 512));
  EXPECT_EQ(pool.item.unit, "GB/s");
  const CorpusRow& words = row_named("minilm/embedding/30522x384,1x128");
  EXPECT_EQ(words.item.bytes, 4.0 * (2 * 128 * 384 + 128)) << "the rows that are read alone";
}

TEST(Corpus, TheSmallestRowOfEachKind_Runs) {
  std::map<std::string, const CorpusRow*> least;
  for (const CorpusRow& row : all_rows()) {
    const std::string key = row.item.kind + (row.item.options.contains("gradients") ? "'" : "");
    auto [place, added] = least.try_emplace(key, &row);
    if (row.item.bytes < place->second->item.bytes) place->second = &row;
  }
  for (const auto& [key, row] : least) {
    if (row->item.bytes > 6e7 || row->item.flops > 6e8) continue;  // too slow for a measured run
    std::vector<Tensor> inputs;
    for (const auto& shape : row->item.shapes)
      inputs.push_back(static_cast<int64_t>(inputs.size()) == find_kind(row->item.kind)->integers
                           ? Tensor::zeros(Shape(shape), DType::I32)
                           : Tensor::full(Shape(shape), 0.25));
    for (const Tensor& result : compute_case(row->item, inputs)) {
      const auto values = result.to_vector<float>();
      ASSERT_FALSE(values.empty()) << row->item.name;
      EXPECT_TRUE(std::isfinite(values.front())) << row->item.name;
    }
  }
}

std::vector<float> computed(const std::string& kind, const std::vector<Tensor>& inputs,
                            const nlohmann::json& options = nlohmann::json::object()) {
  Case row;
  row.kind = kind, row.options = options;
  std::vector<float> all;
  for (const Tensor& result : compute_case(row, inputs))
    for (const float value : result.to_vector<float>()) all.push_back(value);
  return all;
}

TEST(CorpusKinds, ComputeWhatTheyAreCalled) {
  using ::testing::ElementsAre;
  using ::testing::FloatNear;
  const Tensor pair = Tensor::from<float>({2, 3}).reshape({1, 2});
  const auto weight = [](std::initializer_list<float> values) {
    return Tensor::from<float>(values);
  };
  EXPECT_THAT(computed("rope", {pair, Tensor::from<float>({0.5, 0.25}).reshape({1, 2}),
                                Tensor::from<float>({1, 10}).reshape({1, 2})}),
              ElementsAre(2 * 0.5f - 3, 3 * 0.25f + 20));
  // All gates 0 except a large cell gate: o f c + o i tanh(large), each gate a half.
  EXPECT_THAT(computed("lstm_cell", {Tensor::from<float>({0, 0, 50, 0}).reshape({1, 4}),
                                     Tensor::from<float>({1}).reshape({1, 1})}),
              ElementsAre(FloatNear(0.5f * std::tanh(0.5f + 0.5f), 1e-6f)));
  EXPECT_THAT(computed("swiglu", {weight({0, 60}), weight({7, 2})}), ElementsAre(0, 120));
  EXPECT_THAT(computed("gate", {weight({4, 6}), weight({0, 60})}), ElementsAre(2, 6));
  EXPECT_THAT(computed("add_relu", {weight({1, -3}), weight({1, 1})}), ElementsAre(2, 0));
  EXPECT_THAT(computed("embedding", {Tensor::from<float>({1, 2, 3, 4}).reshape({2, 2}),
                                     Tensor::from<int>({1, 0, 1})}),
              ElementsAre(3, 4, 1, 2, 3, 4));
  EXPECT_THAT(
      computed("matmul", {pair, Tensor::from<float>({5, 7}).reshape({1, 2})}, {{"transpose", "b"}}),
      ElementsAre(31));
}

TEST(CorpusKinds, GradientsFollowTheResult_AndSkipIndices) {
  using ::testing::ElementsAre;
  const Tensor x = Tensor::from<float>({2, -3}), seed = Tensor::from<float>({10, 100});
  EXPECT_THAT(computed("relu", {x, seed}, {{"gradients", true}}), ElementsAre(2, 0, 10, 0));
  const Tensor table = Tensor::from<float>({1, 2}).reshape({2, 1});
  EXPECT_THAT(
      computed("embedding",
               {table, Tensor::from<int>({1, 1}), Tensor::from<float>({3, 4}).reshape({2, 1})},
               {{"gradients", true}}),
      ElementsAre(2, 2, 0, 7));
}

TEST(Corpus, AMalformedRow_IsRefusedWithItsPlace) {
  EXPECT_THAT(refusal("[]"), HasSubstr("net.json: not an object of title and rows"));
  const std::string good = R"({"kind": "relu", "inputs": [[4]], "count": 1})";
  EXPECT_EQ(refusal_of_rows(good), "accepted");
  EXPECT_THAT(refusal_of_rows(good + "," + good), HasSubstr("net.json: relu/4 is there twice"));
  EXPECT_THAT(refusal_of_rows(good + R"(, {"kind": "fly", "inputs": [[4]], "count": 1})"),
              HasSubstr("net.json, row 2: there is no kind \"fly\""));
  EXPECT_THAT(refusal_of_rows(R"({"kind": "relu", "inputs": [[4]]})"), HasSubstr("count"));
  EXPECT_THAT(refusal_of_rows(R"({"kind": "relu", "inputs": [[0]], "count": 1})"),
              HasSubstr("no list of shapes"));
  EXPECT_THAT(refusal_of_rows(R"({"kind": "relu", "inputs": [[99999999999]], "count": 1})"),
              HasSubstr("too large"));
  EXPECT_THAT(refusal_of_rows(R"({"kind": "add", "inputs": [[4]], "count": 1})"),
              HasSubstr("wrong number of inputs"));
  EXPECT_THAT(refusal_of_rows(R"({"kind": "add", "inputs": [[4], [5]], "count": 1})"),
              HasSubstr("row 1"));
  EXPECT_THAT(
      refusal_of_rows(R"({"kind": "relu", "inputs": [[4]], "count": 1, "options": {"axis": 1}})"),
      HasSubstr("relu has no option axis"));
  EXPECT_THAT(refusal_of_rows(R"({"kind": "relu", "inputs": [[4]], "count": 1, "times": 2})"),
              HasSubstr("unknown key times"));
}

CorpusResult result_of(const std::string& name, const std::string& family, double ratio,
                       int threads = 1) {
  CorpusResult out{
      .name = name, .network = "net", .family = family, .threads = threads, .result = {}};
  out.result.name = name;
  out.result.value = ratio * 10, out.result.unit = "GB/s";
  out.result.peer = Peer{"Rival", 10};
  out.result.peers = {{"Rival", 10}, {"Slow", 1}};
  return out;
}

TEST(CorpusSummary, AFamilyHasItsGeometricMean) {
  CorpusResult wrong = result_of("e", "norms", 9);
  wrong.is_wrong = true;
  CorpusResult alone = result_of("f", "norms", 9);
  alone.result.peer.reset();
  const auto families =
      summarise({result_of("a", "norms", 4), result_of("b", "norms", 0.25),
                 result_of("c", "norms", 0.5, 2), result_of("d", "products", 0.8), wrong, alone});
  ASSERT_EQ(families.size(), 3u);
  EXPECT_EQ(families[0].family, "products");
  EXPECT_EQ(families[0].below, 0u) << "0.8 is not below the floor";
  EXPECT_EQ(families[1].family, "norms");
  EXPECT_EQ(families[1].rows, 2u);
  EXPECT_DOUBLE_EQ(families[1].mean, 1.0);
  EXPECT_DOUBLE_EQ(families[1].least, 0.25);
  EXPECT_EQ(families[1].below, 1u);
  EXPECT_EQ(families[1].wrong, 1u);
  EXPECT_EQ(families[2].threads, 2);
  EXPECT_DOUBLE_EQ(families[2].mean, 0.5);
}

TEST(CorpusSummary, TheWorstComeFirst_AndTheMiddleRunCounts) {
  std::vector<CorpusResult> rows;
  for (const double ratio : {0.9, 0.3, 2.0, 0.7}) rows.push_back(result_of("r", "norms", ratio));
  const auto worst = worst_rows(rows, 2);
  ASSERT_EQ(worst.size(), 2u);
  EXPECT_DOUBLE_EQ(worst[0].result.ratio(), 0.3);
  EXPECT_DOUBLE_EQ(worst[1].result.ratio(), 0.7);
  EXPECT_EQ(worst_rows(rows, 9).size(), 4u);
  const CorpusResult middle = middle_run({rows[1], rows[2], rows[3]});
  EXPECT_DOUBLE_EQ(middle.result.ratio(), 0.7);
  EXPECT_EQ(middle.runs, 3);
}

TEST(CorpusModel, RanksAreCorrelatedAsSpearmanDefinesIt) {
  const std::vector<double> a = {1, 2, 3, 4, 5};
  EXPECT_DOUBLE_EQ(rank_correlation(a, std::vector<double>{10, 20, 30, 40, 1000}), 1);
  EXPECT_DOUBLE_EQ(rank_correlation(a, std::vector<double>{5, 4, 3, 2, 1}), -1);
  // Ranks 1 2 3 5 4: 1 - 6 * 2 / (5 * 24).
  EXPECT_DOUBLE_EQ(rank_correlation(a, std::vector<double>{5, 6, 7, 9, 8}), 0.9);
  // Ranks 1 2 3 4.5 4.5: both 9.5, of b 9.5, of a 10.
  EXPECT_NEAR(rank_correlation(a, std::vector<double>{5, 6, 7, 8, 8}), 9.5 / std::sqrt(95.0),
              1e-12);
  EXPECT_TRUE(std::isnan(rank_correlation({}, {})));
}

TEST(CorpusModel, FamiliesAndAllAreSummedUp) {
  const auto row = [](const char* family, double predicted, double measured) {
    return ModelRow{"r", family, 1, predicted, measured};
  };
  const auto summaries = summarise(
      std::vector<ModelRow>{row("norms", 1, 2), row("norms", 2, 8), row("softmax", 3, 1)});
  ASSERT_EQ(summaries.size(), 3u);
  EXPECT_EQ(summaries[0].family, "norms");
  EXPECT_DOUBLE_EQ(summaries[0].rank_correlation, 1);
  EXPECT_NEAR(summaries[0].ratio, std::sqrt(1 / 8.0), 1e-12);
  EXPECT_NEAR(summaries[0].spread, std::sqrt(2.0), 1e-12);
  EXPECT_EQ(summaries[2].family, "all");
  EXPECT_EQ(summaries[2].rows, 3u);
  EXPECT_DOUBLE_EQ(summaries[2].rank_correlation, -0.5);
}

// The prediction uses the schedules of the row's kernels.
TEST(CorpusModel, ARowIsPredictedAndMeasured) {
  std::vector<ModelRow> rows;
  run_model({.family = "softmax", .filter = all_rows_of("softmax")[0], .threads = {1}},
            [&](const ModelRow& r) { rows.push_back(r); });
  ASSERT_EQ(rows.size(), 1u);
  ASSERT_FALSE(rows[0].kernels.empty());
  EXPECT_FALSE(rows[0].kernels[0].optimisations.empty());
  EXPECT_GT(rows[0].measured, 0);
  // A prediction off by a factor of 100 indicates a broken model or unit.
  EXPECT_GT(rows[0].predicted, rows[0].measured / 100);
  EXPECT_LT(rows[0].predicted, rows[0].measured * 100);
}

TEST(CorpusResults, AnInterruptedRunGoesOnWhereItEnded) {
  const TemporaryDirectory folder;
  const std::string path = folder / "results.jsonl";
  const nlohmann::ordered_json run = {{"machine", "this"}, {"isa", "v3"}};
  {
    ResultFile file(path, run, false);
    file.add(result_of("a", "norms", 1.5));
    file.add(result_of("a", "norms", 0.5, 2));
  }
  std::ofstream(path, std::ios::app) << R"({"name": "b", "netw)";  // cut off
  {
    ResultFile file(path, run, true);
    ASSERT_EQ(file.results().size(), 2u);
    EXPECT_TRUE(file.has("a", 1) && file.has("a", 2));
    EXPECT_FALSE(file.has("b", 1) || file.has("a", 4));
    EXPECT_DOUBLE_EQ(file.results()[1].result.ratio(), 0.5);
    EXPECT_EQ(file.results()[0].result.peers.size(), 2u);
    file.add(result_of("b", "norms", 3));
  }
  EXPECT_EQ(ResultFile(path, run, true).results().size(), 3u);
  EXPECT_TRUE(ResultFile(path, run, false).results().empty()) << "without it, begun anew";
}

TEST(CorpusResults, OfAnotherMachineOrInstructionSet_AreNotMixed) {
  const TemporaryDirectory folder;
  const std::string path = folder / "results.jsonl";
  ResultFile(path, {{"isa", "v3"}}, false).add(result_of("a", "norms", 1));
  try {
    ResultFile(path, {{"isa", "native"}}, true);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("results of another run"));
  }
  EXPECT_EQ(ResultFile(path, {{"isa", "v3"}}, true).results().size(), 1u) << "nothing was lost";
}

}  // namespace
}  // namespace plugrad::bench

#include "bench/corpus/rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/check.h"
#include "bench/rows/kinds.h"

namespace plugrad::bench {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using AxisSizes = std::vector<int64_t>;

constexpr int64_t kMostInputElements = int64_t{1} << 28;  // per input: 1 GiB

std::string text_of(const AxisSizes& shape) {
  return fmt::format("{}", fmt::join(shape, "x"));
}

// "conv2d/1x3x224x224,64x3x7x7/padding:3/stride:2/gradients"
std::string case_name(const Case& row) {
  std::string name = row.kind + "/";
  for (size_t i = 0; i < row.shapes.size(); ++i)
    name += (i > 0 ? "," : "") + text_of(row.shapes[i]);
  for (const auto& [option, value] : row.options.items())
    name += value == true ? "/" + option : fmt::format("/{}:{}", option, value.dump());
  std::erase(name, '"');
  return name;
}

AxisSizes result_shape(const Case& row) {
  std::vector<Tensor> inputs;
  const int64_t integers = find_kind(row.kind)->integers;
  for (size_t i = 0; i < row.shapes.size(); ++i)
    inputs.push_back(Tensor::zeros(Shape(row.shapes[i]),
                                   static_cast<int64_t>(i) == integers ? DType::I32 : DType::F32));
  const auto shape = compute_case(row, inputs)[0].shape();
  return {shape.begin(), shape.end()};
}

double flops_of(const Case& row, const AxisSizes& result) {
  const AxisSizes& first = row.shapes[0];
  if (row.kind == "matmul") return 2 * count(row.shapes[0]) * static_cast<double>(result.back());
  if (row.kind == "conv2d") return 2 * count(result) * count(row.shapes[1]) / count({result[1]});
  if (row.kind == "conv_transpose2d")
    return 2 * count(first) * count(row.shapes[1]) / count({first[1]});
  if (row.kind != "attention") return 0;
  const auto keys = static_cast<double>(row.shapes[1][row.shapes[1].size() - 2]);
  return 4 * count(first) * keys * (row.options.value("causal", false) ? 0.5 : 1.0);
}

double bytes_of(const Case& row, const AxisSizes& result) {
  double elements = count(result);
  for (size_t i = 0; i < row.shapes.size(); ++i)
    elements += row.kind == "embedding" && i == 0 ? count(result) : count(row.shapes[i]);
  return 4 * elements;
}

class Reader {
 public:
  explicit Reader(const fs::path& file) : network_(file.stem()), file_(file.filename()) {
    std::ifstream text(file);
    const json document = json::parse(text, nullptr, false);
    require(document.is_object() && document.contains("title") && document.contains("rows") &&
                document.size() == 2 && document["rows"].is_array(),
            "[corpus] {}: not an object of title and rows", file_);
    for (const json& row : document["rows"]) read(row);
  }
  std::vector<CorpusRow> take() { return std::move(rows_); }

 private:
  void need(bool holds, const std::string& what) const {
    require(holds, "[corpus] {}, row {}: {}", file_, rows_.size() + 1, what);
  }

  void read(const json& row) {
    need(row.is_object(), "no object");
    for (const auto& [key, value] : row.items())
      need(std::set<std::string>{"kind", "inputs", "options", "count", "gradients"}.contains(key),
           "unknown key " + key);
    const std::string name = row.value("kind", "");
    const Kind* kind = find_kind(name);
    need(kind != nullptr, "there is no kind \"" + name + "\"");
    CorpusRow out;
    out.network = network_, out.family = kind->family;
    out.count = row.value("count", int64_t{0});
    need(out.count >= 1, "count is not at least 1");
    out.item.kind = name;
    out.item.options = row.value("options", json::object());
    for (const auto& [option, value] : out.item.options.items())
      need(std::ranges::any_of(kind->options, [&](const char* o) { return option == o; }),
           name + " has no option " + option);
    out.item.shapes = shapes_of(row.value("inputs", json()));
    need(
        out.item.shapes.size() >= kind->least_inputs && out.item.shapes.size() <= kind->most_inputs,
        "wrong number of inputs");
    complete(out, row.value("gradients", false));
    rows_.push_back(std::move(out));
  }

  std::vector<AxisSizes> shapes_of(const json& inputs) const {
    need(inputs.is_array(), "inputs is no list of shapes");
    std::vector<AxisSizes> shapes;
    for (const json& shape : inputs) {
      need(shape.is_array() && !shape.empty() &&
               std::ranges::all_of(shape,
                                   [](const json& n) { return n.is_number_unsigned() && n > 0; }),
           "inputs is no list of shapes");
      shapes.push_back(shape.get<AxisSizes>());
      need(count(shapes.back()) <= static_cast<double>(kMostInputElements),
           "an input is too large");
    }
    return shapes;
  }

  // Derives the result, its gradient and the work from the row.
  void complete(CorpusRow& out, bool gradients) const {
    Case& row = out.item;
    AxisSizes result;
    try {
      result = result_shape(row);
    } catch (const Error& error) {
      need(false, error.what());
    }
    row.flops = flops_of(row, result) * (gradients ? 3 : 1);
    row.bytes = bytes_of(row, result) * (gradients ? 2 : 1);
    row.unit = row.flops > 0 ? "GFLOP/s" : "GB/s";
    if (gradients) row.options["gradients"] = true;
    row.name = network_ + "/" + case_name(row);
    if (gradients) row.shapes.push_back(result);
    row.judges = {"openblas", "blis", "onednn", "pytorch", "pytorch-tuned"};
    row.tolerance = gradients || out.family == "attention" ? 1e-3 : 1e-4;
    row.turn_seconds = 0.02;
    row.least_turns = 7;
    row.is_jitted = true;
  }

  std::string network_, file_;
  std::vector<CorpusRow> rows_;
};

}  // namespace

std::vector<CorpusRow> corpus_rows(const std::string& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder.empty() ? PLUGRAD_BENCH_CORPUS : folder))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<CorpusRow> rows;
  std::set<std::string> seen;
  for (const fs::path& file : files)
    for (CorpusRow& row : Reader(file).take()) {
      const std::string computed = row.item.name.substr(row.network.size() + 1);
      require(seen.insert(computed).second, "[corpus] {}: {} is there twice",
              file.filename().string(), computed);
      rows.push_back(std::move(row));
    }
  return rows;
}

const std::vector<std::string>& corpus_families() {
  static const std::vector<std::string> families = {"products",  "convolutions", "attention",
                                                    "norms",     "softmax",      "pooling",
                                                    "embedding", "elementwise"};
  return families;
}

}  // namespace plugrad::bench

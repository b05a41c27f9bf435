// The tables of rows measured against peers.
#include <fmt/format.h>

#include "base/settings.h"
#include "bench/rows/case.h"

namespace plugrad::bench {
namespace {

using ShapeOfCase = std::vector<int64_t>;

std::vector<std::string> libraries() {
  return {"openblas", "blis", "onednn"};
}
std::vector<std::string> torch() {
  return {"pytorch", "pytorch-tuned"};
}

// (batch, m, k) times (batch, k, n), without the batch axis if it is 1; `transpose` names the
// operands that are stored transposed.
Case product_case(std::string name, int64_t batch, int64_t m, int64_t n, int64_t k, int threads,
                  const std::string& transpose = {}) {
  const bool ta = transpose.find('a') != std::string::npos,
             tb = transpose.find('b') != std::string::npos;
  ShapeOfCase a = ta ? ShapeOfCase{k, m} : ShapeOfCase{m, k},
              b = tb ? ShapeOfCase{n, k} : ShapeOfCase{k, n};
  if (batch > 1) a.insert(a.begin(), batch), b.insert(b.begin(), batch);
  Case row{.name = std::move(name),
           .kind = "matmul",
           .shapes = {a, b},
           .threads = threads,
           .unit = "GFLOP/s",
           .judges = libraries()};
  if (!transpose.empty()) row.options["transpose"] = transpose;
  row.flops = 2 * count({batch, m, n, k});
  row.bytes = 4 * (count(a) + count(b) + count({batch, m, n}));
  return row;
}

Case matvec(int threads) {
  const int64_t n = 4096;
  return {.name = fmt::format("matvec/{}/threads:{}", n, threads),
          .kind = "matvec",
          .shapes = {{n, n}, {n}},
          .threads = threads,
          .flops = 2 * count({n, n}),
          .bytes = 4 * count({n, n}),
          .unit = "GB/s",
          .judges = {"c"}};
}

struct Window {
  const char* name;
  int64_t channels, features, size, kernel, stride, padding, groups;
};
// Batches of 32 images of 28 x 28.
constexpr Window kWindows[] = {
    {"conv3x3_n32c32k64", 32, 64, 28, 3, 1, 1, 1},
    {"conv1x1_n32c64k64", 64, 64, 28, 1, 1, 0, 1},
    {"conv5x5_n32c32k32", 32, 32, 28, 5, 1, 2, 1},
    {"conv3x3s2_n32c32k64", 32, 64, 28, 3, 2, 1, 1},
    {"depthwise3x3_n32c64", 64, 64, 28, 3, 1, 1, 64},
};

Case convolution_case(const Window& w, bool backward) {
  constexpr int64_t kBatch = 32;
  const int64_t side = (w.size + 2 * w.padding - w.kernel) / w.stride + 1;
  const ShapeOfCase x{kBatch, w.channels, w.size, w.size};
  const ShapeOfCase weight{w.features, w.channels / w.groups, w.kernel, w.kernel};
  const ShapeOfCase y{kBatch, w.features, side, side};
  Case row{.name = fmt::format("{}/{}", w.name, backward ? "forward_backward" : "forward"),
           .kind = "conv2d",
           .shapes = {x, weight},
           .options = {{"stride", w.stride}, {"padding", w.padding}, {"groups", w.groups}},
           .unit = "GFLOP/s",
           .judges = torch()};
  row.flops = 2 * count(y) * count(weight) / static_cast<double>(w.features);
  row.bytes = 4 * (count(x) + count(weight) + count(y));
  if (backward) {
    row.shapes.push_back(y);  // the gradient of the result
    row.options["gradients"] = true;
    row.flops *= 3;
    row.bytes *= 2;
  }
  return row;
}

Case streaming(const char* name, const char* kind, std::vector<ShapeOfCase> shapes, double bytes,
               int threads) {
  return {.name = threads == 0 ? name : fmt::format("{}/threads:{}", name, threads),
          .kind = kind,
          .shapes = std::move(shapes),
          .threads = threads,
          .bytes = bytes,
          .unit = "GB/s",
          .judges = {"c"}};
}

}  // namespace

std::vector<Case> gemm_cases() {
  std::vector<Case> rows;
  for (int64_t n : {256, 512, 1024, 2048})
    for (int threads : {1, 2})
      rows.push_back(
          product_case(fmt::format("sgemm/{}/threads:{}", n, threads), 1, n, n, n, threads));
  for (int64_t n : {256, 512, 1024, 2048})
    for (int threads : {1, 2}) {
      const std::string name = fmt::format("sgemm/{}/threads:{}/beam", n, threads);
      rows.push_back(product_case(name, 1, n, n, n, threads));
      rows.back().is_searched = true;
    }
  for (const char* transpose : {"a", "b", "ab"})
    rows.push_back(product_case(fmt::format("sgemm/1024/transposed:{}/threads:2", transpose), 1,
                                1024, 1024, 1024, 2, transpose));
  rows.push_back(product_case("sgemm/1000/threads:2", 1, 1000, 1000, 1000, 2));
  rows.push_back(product_case("sgemm/64x4096x512/threads:2", 1, 64, 4096, 512, 2));
  rows.push_back(product_case("sgemm/128/batch:32/threads:2", 32, 128, 128, 128, 2));
  rows.back().judges = {"openblas", "blis", "onednn", "pytorch", "pytorch-tuned"};
  for (int threads : {1, 2}) rows.push_back(matvec(threads));
  return rows;
}

std::vector<Case> conv_cases() {
  std::vector<Case> rows;
  for (const Window& window : kWindows)
    for (bool backward : {false, true}) rows.push_back(convolution_case(window, backward));
  return rows;
}

std::vector<Case> elementwise_cases() {
  constexpr int64_t kCount = 16 << 20;
  std::vector<Case> rows;
  for (int threads : {0, 1}) {
    rows.push_back(streaming("map_reduce", "map_reduce", {{kCount}, {kCount}, {kCount}},
                             12.0 * kCount, threads));
    rows.back().flops = 4.0 * kCount;
    rows.push_back(streaming("softmax", "softmax", {{4096, 4096}}, 8.0 * kCount, threads));
    rows.back().flops = 20.0 * kCount;  // mostly for the exponential's polynomial
    rows.push_back(streaming("layernorm", "layernorm", {{4096, 1024}}, 2.0 * kCount, threads));
    rows.back().flops = 6.0 * kCount / 4;
  }
  const ShapeOfCase heads{8, 1024, 64};
  Case attention{.name = "attention",
                 .kind = "attention",
                 .shapes = {heads, heads, heads},
                 .flops = 4 * count({8, 1024, 1024, 64}),
                 .bytes = 16 * count(heads),
                 .unit = "GFLOP/s",
                 .judges = torch()};
  attention.tolerance = 1e-3;
  rows.push_back(attention);
  return rows;
}

std::vector<Case> network_cases() {
  struct Call {
    const char* network;
    int64_t batch;
  };
  constexpr Call kCalls[] = {{"resnet18", 1},     {"resnet18", 8}, {"resnet50", 1},
                             {"mobilenet_v2", 1}, {"unet", 1},     {"minilm", 1},
                             {"minilm", 8},       {"vit_tiny", 1}, {"gpt2_decode", 1}};
  std::vector<Case> rows;
  for (const Call& call : kCalls)
    for (int threads : {1, 2}) {
      Case row{.name = fmt::format("{}/batch:{}/threads:{}", call.network, call.batch, threads),
               .kind = "network",
               .shapes = {},
               .options = {{"network", call.network}, {"batch", call.batch}},
               .threads = threads,
               .unit = "ms",
               .judges = {"pytorch", "pytorch-tuned", "onnxruntime"}};
      row.tolerance = 1e-3;
      row.turn_seconds = 0.15;
      row.least_turns = 7;
      rows.push_back(row);
    }
  return rows;
}

std::vector<Case> model_cases() {
  Case mnist{.name = "mnist_step",
             .kind = "mnist_step",
             .shapes = {},
             .options = {{"batch", 512}},
             .flops = 40e9,
             .unit = "ms",
             .judges = torch()};
  // PyTorch's channels-last batchnorm accumulates its statistics sequentially
  mnist.tolerance = 1e-2;
  mnist.turn_seconds = 0.4;
  Case transformer{.name = "transformer_step",
                   .kind = "transformer_step",
                   .shapes = {},
                   .options = {{"batch", 16}, {"length", 128}, {"width", 256}, {"heads", 4}},
                   .flops = 10.5e9,
                   .unit = "ms",
                   .judges = torch()};
  transformer.tolerance = 1e-3;
  transformer.turn_seconds = 0.2;
  return {mnist, transformer};
}

}  // namespace plugrad::bench

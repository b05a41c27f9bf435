// Compares small floats with f32: each row is a function of the same shapes and values in two
// dtypes, timed alternately.
#include <fmt/format.h>

#include <span>

#include "bench/harness.h"
#include "bench/networks/unet_step.h"
#include "bench/row.h"
#include "plugrad/jit.h"
#include "plugrad/plugrad.h"

namespace plugrad::bench {
namespace {

using Inputs = std::vector<Tensor>;

struct Family {
  const char* name;
  std::vector<Shape> shapes;
  Tensor (*compute)(const Inputs& in);
};

Tensor norm_of(const Inputs& in) {
  return in[0].layernorm();
}
Tensor convolve(const Inputs& in) {
  return conv2d(in[0], in[1], {}, {.padding = in[1].shape()[2] / 2});
}
Tensor product_of(const Inputs& in) {
  return matmul(in[0], in[1]);
}
Tensor pool(const Inputs& in) {
  return max_pool2d(in[0]);
}

// Streams of 8 MB in f32; odd rows; channels that do not fill a vector; strided views.
std::span<const Family> families() {
  static const Family all[] = {
      {"matmul/512", {{512, 512}, {512, 512}}, product_of},
      {"matmul/512/transposed",
       {{512, 512}, {512, 512}},
       [](const Inputs& in) { return matmul(in[0], in[1].transpose()); }},
      {"matmul/33x1000x7", {{33, 1000}, {1000, 7}}, product_of},
      {"matvec/4096", {{4096}, {4096, 4096}}, product_of},
      {"conv3x3/n4c32k64", {{4, 32, 28, 28}, {64, 32, 3, 3}}, convolve},
      {"conv3x3/n4c3k20", {{4, 3, 28, 28}, {20, 3, 3, 3}}, convolve},
      {"conv1x1/n4c64k64", {{4, 64, 28, 28}, {64, 64, 1, 1}}, convolve},
      {"max_pool/n4c32", {{4, 32, 56, 56}}, pool},
      {"max_pool/n4c3", {{4, 3, 57, 57}}, pool},
      {"relu", {{1 << 21}}, [](const Inputs& in) { return in[0].relu(); }},
      {"multiply_add",
       {{1 << 21}, {1 << 21}},
       [](const Inputs& in) { return in[0] * in[1] + in[0]; }},
      {"silu", {{1 << 21}}, [](const Inputs& in) { return in[0].silu(); }},
      {"gelu", {{1 << 21}}, [](const Inputs& in) { return in[0].gelu(); }},
      {"every_second",
       {{1 << 11, 1 << 10}},
       [](const Inputs& in) { return in[0].transpose().contiguous() * 2; }},
      {"sum/2097152", {{1 << 21}}, [](const Inputs& in) { return in[0].sum(); }},
      {"sum/rows:1000", {{2000, 1000}}, [](const Inputs& in) { return in[0].sum(-1); }},
      {"max/rows:1000", {{2000, 1000}}, [](const Inputs& in) { return in[0].max(-1); }},
      {"softmax/rows:1000", {{2000, 1000}}, [](const Inputs& in) { return in[0].softmax(); }},
      {"softmax/rows:7", {{2000, 7}}, [](const Inputs& in) { return in[0].softmax(); }},
      {"layernorm/rows:7", {{2000, 7}}, norm_of},
      {"layernorm/rows:33", {{500, 33}}, norm_of},
      {"layernorm/rows:64", {{64, 64}}, norm_of},
      {"layernorm/rows:512", {{128, 512}}, norm_of},
      {"layernorm/rows:4097", {{200, 4097}}, norm_of},
  };
  return all;
}

const DType kSmall[] = {DType::F16, DType::BF16};

Inputs inputs_of(const Family& family, DType dtype) {
  Inputs inputs;
  for (const Shape& shape : family.shapes) inputs.push_back(Tensor::randn(shape).cast(dtype));
  Tensor::realize(inputs);
  return inputs;
}

Round round_of(const Family& family, DType dtype) {
  return realizing(
      [inputs = inputs_of(family, dtype), &family] { return std::vector{family.compute(inputs)}; });
}

std::string row_name(const Family& family, DType dtype) {
  return fmt::format("{}/{}", family.name, name_of(dtype));
}

void measure_family(const Family& family, int threads, const Report& report) {
  const ThreadScope scope(threads);
  std::vector<Round> rounds = {round_of(family, DType::F32)};
  for (DType dtype : kSmall) rounds.push_back(round_of(family, dtype));
  const auto timings = measure(rounds, {.least = 11});
  const double f32 = timings[0].median * 1e3;
  for (size_t i = 0; i < std::size(kSmall); ++i)
    report({.name = row_name(family, kSmall[i]),
            .value = timings[i + 1].median * 1e3,
            .unit = "ms",
            .peer = Peer{"f32", f32},
            .higher_is_better = false});
}

std::string unet_name(DType dtype, int threads) {
  return fmt::format("unet_step/{}/threads:{}", name_of(dtype), threads);
}

// A whole training step, replayed.
void measure_unet(int threads, const Report& report) {
  const ThreadScope scope(threads);
  UNetStep f32(DType::F32), f16(DType::F16), bf16(DType::BF16);
  const auto round = [](UNetStep& step) { return [&] { return time_of([&] { step.run(); }); }; };
  const auto timings = measure({round(f32), round(f16), round(bf16)}, {.warm_up = 4, .least = 11});
  const double peer = timings[0].median * 1e3;
  for (size_t i : {size_t{1}, size_t{2}})
    report({.name = unet_name(i == 1 ? DType::F16 : DType::BF16, threads),
            .value = timings[i].median * 1e3,
            .unit = "ms",
            .peer = Peer{"f32", peer},
            .higher_is_better = false});
}

}  // namespace

std::vector<Row> half_rows() {
  std::vector<Row> rows;
  for (const Family& family : families()) {
    Row row{{}, 1, [&family](Peers&, const Report& report) {
              measure_family(family, 1, report);
              return true;
            }};
    for (DType dtype : kSmall) row.names.push_back(row_name(family, dtype));
    rows.push_back(std::move(row));
  }
  for (int threads : {1, 2})
    rows.push_back({{unet_name(DType::F16, threads), unet_name(DType::BF16, threads)},
                    threads,
                    [threads](Peers&, const Report& report) {
                      measure_unet(threads, report);
                      return true;
                    }});
  return rows;
}

}  // namespace plugrad::bench

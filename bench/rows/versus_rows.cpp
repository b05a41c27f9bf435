// The rows measured alternately with peers: products, convolutions, streaming kernels.
#include <fmt/format.h>

#include "bench/row.h"
#include "bench/rows/subject.h"
#include "bench/rows/versus.h"
#include "plugrad/device.h"

namespace plugrad::bench {
namespace {

std::vector<Row> rows_of(const std::vector<Case>& cases) {
  std::vector<Row> rows;
  for (const Case& one : cases)
    rows.push_back({{one.name}, one.threads, [one](Peers& peers, const Report& report) {
                      const auto result = measure_case(one, peers);
                      if (result) report(*result);
                      return result.has_value();
                    }});
  return rows;
}

// A device that does not use the host's threads, against the one that does.
Row row_beside_cpu(int64_t n) {
  Case square;
  square.name = fmt::format("sgemm/{}", n), square.kind = "matmul";
  square.shapes = {{n, n}, {n, n}};
  square.flops = 2.0 * static_cast<double>(n * n * n);
  square.unit = "GFLOP/s";
  return {{square.name}, 0, [square](Peers&, const Report& report) {
            const Subject ours = make_subject(square), cpu = make_subject(square, "CPU");
            const auto timings = measure({ours.round, cpu.round});
            report({.name = square.name,
                    .value = square.value(timings[0].median),
                    .unit = square.unit,
                    .peer = Peer{"plugrad on CPU", square.value(timings[1].median)}});
            return true;
          }};
}

}  // namespace

std::vector<Row> gemm_rows() {
  if (Device::default_device() == "CPU") return rows_of(gemm_cases());
  return {row_beside_cpu(256), row_beside_cpu(512)};
}

std::vector<Row> conv_rows() {
  return rows_of(conv_cases());
}
std::vector<Row> elementwise_rows() {
  return rows_of(elementwise_cases());
}

std::vector<Row> network_rows() {
  return rows_of(network_cases());
}

std::vector<Row> step_rows() {
  return rows_of(model_cases());
}

}  // namespace plugrad::bench

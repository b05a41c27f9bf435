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
Row row_beside_cpu(const Case& one) {
  return {{one.name}, 0, [one](Peers&, const Report& report) {
            const Subject ours = make_subject(one), cpu = make_subject(one, "CPU");
            const auto timings = measure({ours.round, cpu.round});
            report({.name = one.name,
                    .value = one.value(timings[0].median),
                    .unit = one.unit,
                    .peer = Peer{"plugrad on CPU", one.value(timings[1].median)},
                    .higher_is_better = one.higher_is_better()});
            return true;
          }};
}

Case square_product(int64_t n) {
  Case square;
  square.name = fmt::format("sgemm/{}", n), square.kind = "matmul";
  square.shapes = {{n, n}, {n, n}};
  square.flops = 2.0 * static_cast<double>(n * n * n);
  square.unit = "GFLOP/s";
  return square;
}

bool measures_cpu() {
  return Device::default_device() == "CPU";
}

}  // namespace

std::vector<Row> gemm_rows() {
  if (measures_cpu()) return rows_of(gemm_cases());
  return {row_beside_cpu(square_product(256)), row_beside_cpu(square_product(512))};
}

std::vector<Row> conv_rows() {
  return rows_of(conv_cases());
}
std::vector<Row> elementwise_rows() {
  return rows_of(elementwise_cases());
}

std::vector<Row> network_rows() {
  if (measures_cpu()) return rows_of(network_cases());
  std::vector<Row> rows;
  for (Case one : network_cases()) {
    if (one.threads != 1) continue;  // another device does not use the host's threads
    one.name.resize(one.name.rfind("/threads:"));
    one.threads = 0;
    rows.push_back(row_beside_cpu(one));
  }
  return rows;
}

std::vector<Row> step_rows() {
  return rows_of(model_cases());
}

}  // namespace plugrad::bench

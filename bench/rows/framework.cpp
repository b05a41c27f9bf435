// Measures the framework's overhead: nodes, rewrites, plans, calls, compilation.
#include "bench/micro/micro.h"

namespace plugrad::bench {
namespace {

void append(std::vector<Row>& rows, const std::vector<Micro>& micros) {
  for (const Micro& micro : micros) rows.push_back(micro_row(micro));
}

}  // namespace

std::vector<Row> framework_rows() {
  std::vector<Row> rows;
  append(rows, loading_micros());
  append(rows, graph_micros());
  append(rows, call_micros());
  for (Row& row : dispatch_rows()) rows.push_back(std::move(row));
  rows.push_back(beside_row());
  append(rows, compile_micros());
  append(rows, cold_micros());
  return rows;
}

}  // namespace plugrad::bench

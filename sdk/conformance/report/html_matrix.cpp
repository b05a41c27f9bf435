// The op x dtype matrix: a cell has the colour of its tests' worst status and the text of their
// worst error.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "conformance/report/html.h"
#include "plugrad/sdk/op_info.h"

namespace plugrad::conformance::html {
namespace {

struct Cell {
  std::vector<const TestResult*> tests;
  const TestResult* worst_test = nullptr;   // has the worst status
  const TestResult* worst_value = nullptr;  // has the largest measure
};
using Row = std::map<std::string, Cell>;

// Priority of statuses in a cell, worst highest.
int severity(Status status) {
  constexpr int kSeverity[] = {1, 5, 0, 2, 4, 3};  // by the order of Status
  return kSeverity[static_cast<size_t>(status)];
}

void add(Cell& cell, const TestResult& test) {
  cell.tests.push_back(&test);
  if (!cell.worst_test || severity(test.status) > severity(cell.worst_test->status))
    cell.worst_test = &test;
  if (test.metric.empty()) return;
  const bool larger =
      !cell.worst_value || std::isnan(test.worst) || test.worst > cell.worst_value->worst;
  if (larger) cell.worst_value = &test;
}

// Dtypes in the order of the ABI's numbers, followed by unknown names.
std::vector<std::string> columns_of(const std::map<std::string, Row>& rows) {
  std::vector<std::string> used, sorted;
  for (const auto& [op, row] : rows)
    for (const auto& [dtype, cell] : row) used.push_back(dtype);
  for (uint32_t number = 0; sdk::dtype_info(number); ++number)
    if (std::ranges::count(used, std::string(sdk::dtype_name(number))))
      sorted.emplace_back(sdk::dtype_name(number));
  for (const std::string& dtype : used)
    if (!std::ranges::count(sorted, dtype)) sorted.push_back(dtype);
  return sorted;
}

std::string short_value(const Cell& cell) {
  const Status status = cell.worst_test->status;
  if (status == Status::Unsupported) return "–";
  if (!cell.worst_value) return status == Status::Pass ? "✓" : "✗";
  const double worst = cell.worst_value->worst;
  if (worst == 0 && status == Status::Pass) return "0";
  return fmt::format("{:.3g}", worst);
}

std::string cell_title(const std::string& op, const std::string& dtype, const Cell& cell) {
  std::string title = fmt::format("{} {}: {}", op, dtype, to_string(cell.worst_test->status));
  if (cell.tests.size() > 1) title += fmt::format(", {}", counted(cell.tests.size(), "test"));
  if (cell.worst_value) {
    title += fmt::format("\nworst {}", describe_measure(*cell.worst_value));
    if (!cell.worst_value->worst_input.empty()) title += " at " + cell.worst_value->worst_input;
  }
  if (cell.worst_test->status != Status::Pass)
    title += "\n" + cell.worst_test->message.substr(0, cell.worst_test->message.find('\n'));
  return title + "\n" + cell.worst_test->id;
}

Values row_of_op(const std::string& op, const Row& row, const std::vector<std::string>& columns) {
  Values cells = Values::array();
  for (const std::string& dtype : columns) {
    const auto found = row.find(dtype);
    if (found == row.end()) {
      cells.push_back({{"status", nullptr}});
      continue;
    }
    const Cell& cell = found->second;
    cells.push_back({{"status", to_string(cell.worst_test->status)},
                     {"title", cell_title(op, dtype, cell)},
                     {"value", short_value(cell)}});
  }
  return {{"op", op}, {"cells", std::move(cells)}};
}

}  // namespace

Values matrix(const Report& report) {
  std::map<std::string, Row> rows;
  std::vector<std::string> order;
  for (const TestResult& test : report.tests) {
    if (test.op.empty() || test.dtype.empty()) continue;
    if (!rows.count(test.op)) order.push_back(test.op);
    add(rows[test.op][test.dtype], test);
  }
  if (rows.empty()) return {};
  const std::vector<std::string> columns = columns_of(rows);
  Values ops = Values::array();
  for (const std::string& op : order) ops.push_back(row_of_op(op, rows[op], columns));
  return {{"dtypes", columns}, {"ops", std::move(ops)}};
}

}  // namespace plugrad::conformance::html

// Names the operations of a small kernel.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "runtime/checks/compare/shrink_kernel.h"

namespace plugrad::runtime {
namespace {

// Lines on which `lines` depend, through values and arrays but not through addresses.
std::vector<bool> values_of_stores(const KernelLines& kernel) {
  std::vector<bool> out(kernel.lines.size());
  const auto need = [&](const KernelLines::Line& line, std::size_t first) {
    for (std::size_t i = first; i < line.sources.size(); ++i) out[line.sources[i]] = true;
  };
  for (uint32_t i = static_cast<uint32_t>(kernel.lines.size()); i-- > 0;) {
    const KernelLines::Line& line = kernel.lines[i];
    const bool waits =
        line.op == PGR_OP_BARRIER || line.op == PGR_OP_ASYNC_WAIT || line.op == PGR_OP_ASYNC_COPY;
    if (kernel.writes(i)) {
      out[i] = line.op == PGR_OP_ATOMIC_ADD;
      need(line, 2);
    } else if (line.op == PGR_OP_IF) {
      need(line, 0);
    } else if (waits) {
      out[i] = true;
    } else if (out[i] && line.op == PGR_OP_LOAD) {
      need(line, 2);
    } else if (out[i]) {
      need(line, 0);
    }
  }
  return out;
}

bool computes(const KernelLines& kernel, uint32_t line) {
  const uint32_t op = kernel.lines[line].op, kind = op_class(op);
  return kind == PGR_OP_CLASS_ALU || op == PGR_OP_WMMA ||
         (kind == PGR_OP_CLASS_MEMORY && op != PGR_OP_LOAD && op != PGR_OP_STORE &&
          op != PGR_OP_ASYNC_COMMIT);
}

void add(std::vector<std::string>& out, const KernelLines& kernel, uint32_t line) {
  const uint32_t op = kernel.lines[line].op;
  const bool has_no_dtype = op == PGR_OP_BARRIER || op == PGR_OP_ASYNC_WAIT ||
                            op == PGR_OP_GROUP_ID || op == PGR_OP_LOCAL_ID;
  std::string text = has_no_dtype ? op_name(op) : operation_text(kernel, line);
  if (kernel.writes(line) && kernel.lines[line].sources.size() == 4) text += " with a gate";
  if (std::ranges::find(out, text) == out.end()) out.push_back(std::move(text));
}

}  // namespace

std::string suite_filter(const KernelLines& kernel) {
  const std::vector<bool> values = values_of_stores(kernel);
  std::vector<std::string> out;
  for (uint32_t i = 0; i < kernel.lines.size(); ++i) {
    const KernelLines::Line& line = kernel.lines[i];
    if (!values[i] || op_class(line.op) != PGR_OP_CLASS_ALU) continue;
    const std::string dtype = dtype_name(claimed_dtype(kernel, i));
    std::string op = op_name(line.op);
    std::ranges::transform(op, op.begin(), [](unsigned char c) { return std::tolower(c); });
    const bool is_cast = line.op == PGR_OP_CAST || line.op == PGR_OP_BITCAST;
    const std::string id = is_cast ? fmt::format("l2.{}.{}.{}", op, dtype, dtype_name(line.dtype))
                                   : fmt::format("l2.alu.{}.{}", op, dtype);
    if (std::ranges::find(out, id) == out.end()) out.push_back(id);
  }
  return fmt::format("{}", fmt::join(out, ","));
}

std::string operations_text(const KernelLines& kernel) {
  const std::vector<bool> values = values_of_stores(kernel);
  std::vector<std::string> out;
  for (uint32_t i = 0; i < kernel.lines.size(); ++i)
    if (values[i] && computes(kernel, i)) add(out, kernel, i);
  for (uint32_t i = 0; i < kernel.lines.size(); ++i)
    if (kernel.writes(i) && kernel.lines[i].sources.size() == 4) add(out, kernel, i);
  if (!out.empty()) return fmt::format("{}", fmt::join(out, ", "));
  for (uint32_t i = 0; i < kernel.lines.size(); ++i) {
    const uint32_t op = kernel.lines[i].op, kind = op_class(op);
    if (kind == PGR_OP_CLASS_ALU || kind == PGR_OP_CLASS_MEMORY || kind == PGR_OP_CLASS_LANES ||
        op == PGR_OP_GROUP_ID || op == PGR_OP_LOCAL_ID)
      add(out, kernel, i);
  }
  return fmt::format("{}", fmt::join(out, ", "));
}

}  // namespace plugrad::runtime

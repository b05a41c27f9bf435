#include "ir/text/printer.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "ir/facts.h"
#include "ir/range.h"

namespace plugrad {
namespace {

std::string constant_text(const Node& n) {
  if (!is_float(n.dtype)) {
    if (n.dtype == DType::U64) return fmt::format("{}", n.arg);
    return fmt::format("{}", static_cast<int64_t>(n.arg));
  }
  const double value = std::bit_cast<double>(n.arg);
  if (std::isnan(value))
    return n.arg == std::bit_cast<uint64_t>(std::nan("")) ? "nan" : fmt::format("bits:{:x}", n.arg);
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return fmt::format("{}", value);
}

std::string list_text(const Graph& g, Id id) {
  const auto list = g.arg_list(id);
  std::string text = "[";
  for (size_t i = 0; i < list.size(); ++i) {
    if (i != 0) text += ", ";
    const bool is_op = g[id].op == Op::Reduce && i == 0;
    text += is_op ? printed_name(static_cast<Op>(list[i])) : fmt::format("{}", list[i]);
  }
  return text + "]";
}

std::string arg_text(const Graph& g, Id id) {
  const Node& n = g[id];
  if (n.op == Op::Range) {
    return fmt::format(" axis={} kind={}", range_axis(n),
                       kAxisKindNames[static_cast<size_t>(range_kind(n))]);
  }
  switch (op_info(n.op).arg) {
    case ArgKind::Bits:
      return " " + constant_text(n);
    case ArgKind::List:
      return " " + list_text(g, id);
    case ArgKind::Int:
      return fmt::format(" #{}", n.arg);
    default:
      return n.arg == 0 ? "" : fmt::format(" #{}", n.arg);
  }
}

template <class Number>
std::string line(const Graph& g, Id id, Number number) {
  const Node& n = g[id];
  std::string text = fmt::format("%{} = {} {}", number(id), printed_name(n.op), name_of(n.dtype));
  bool first = true;
  for (Id s : g.sources(n)) {
    text += fmt::format("{}%{}", first ? " " : ", ", number(s));
    first = false;
  }
  return text + arg_text(g, id);
}

}  // namespace

std::string printed_name(Op op) {
  std::string name(op_info(op).name);
  if (name.empty()) return fmt::format("op{}", static_cast<int>(op));
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return name;
}

std::string printed_arg(const Graph& graph, Id id) {
  std::string text = arg_text(graph, id);
  if (text.starts_with(' ')) text.erase(0, 1);
  return text;
}

std::string print_node(const Graph& graph, Id id) {
  return line(graph, id, [](Id node) { return node; });
}

std::string print(const Graph& graph, std::span<const Id> roots, Numbering numbering) {
  Reachable reachable;
  const auto& ids = reachable.from(graph, roots);
  std::vector<uint32_t> place(graph.size());
  for (size_t i = 0; i < ids.size(); ++i)
    place[ids[i]] = numbering == Numbering::Ids ? ids[i] : static_cast<uint32_t>(i);
  const auto number = [&](Id id) { return place[id]; };
  std::string text;
  for (Id id : ids) text += line(graph, id, number) + "\n";
  text += "return";
  for (size_t i = 0; i < roots.size(); ++i)
    text += fmt::format("{}%{}", i == 0 ? " " : ", ", number(roots[i]));
  return text + "\n";
}

}  // namespace plugrad

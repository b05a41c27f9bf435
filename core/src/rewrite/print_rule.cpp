#include "rewrite/print_rule.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cctype>

namespace plugrad {
namespace {

constexpr std::array<const char*, kNameCount> kNames = {"x", "y",  "z",  "w",  "u",
                                                        "v", "c0", "c1", "c2", "c3"};

struct Class {
  uint8_t bits;
  const char* name;
};
constexpr Class kNamedClasses[] = {
    {kIntegerClass | kBoolClass, "int or bool"},
    {kIntegerClass, "int"},
    {kIntClass, "sized int"},
    {kFloatClass, "float"},
    {kI32Class | kU32Class, "word"},
    {kBoolClass, "bool"},
    {kSmallIntClass, "small int"},
    {kI32Class, "i32"},
    {kU32Class, "u32"},
    {kWideIntClass, "wide int"},
    {kIndexClass, "index"},
    {kSmallFloatClass, "small float"},
    {kRealClass, "real"},
};

std::string class_name(uint8_t classes) {
  std::string text;
  for (const Class& c : kNamedClasses) {
    if ((classes & c.bits) != c.bits) continue;
    text += (text.empty() ? "" : " or ") + std::string(c.name);
    classes = static_cast<uint8_t>(classes & ~c.bits);
  }
  return text;
}

const char* infix(Op op) {
  switch (op) {
    case Op::Add:
      return "+";
    case Op::Sub:
      return "-";
    case Op::Mul:
      return "*";
    case Op::FloorDiv:
      return "/";
    case Op::FloorMod:
      return "%";
    case Op::And:
      return "&";
    case Op::Or:
      return "|";
    case Op::Xor:
      return "^";
    case Op::CmpLt:
      return "<";
    case Op::CmpEq:
      return "==";
    case Op::CmpNe:
      return "!=";
    default:
      return nullptr;
  }
}

std::string op_name(Op op) {
  std::string name(op_info(op).name);
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

std::string set_name(uint64_t ops) {
  std::string text;
  for (uint8_t op = 0; op < 64; ++op)
    if (rules::is_in(ops, static_cast<Op>(op)))
      text += (text.empty() ? "" : "|") + op_name(static_cast<Op>(op));
  return "(" + text + ")";
}

std::string literal_text(const PatternNode& n) {
  if (n.typed) return "nothing";
  if (!n.float_literal) return fmt::format("{}", static_cast<int64_t>(n.literal));
  const std::string text = fmt::format("{}", std::bit_cast<double>(n.literal));
  return text.find_first_of(".einf") == text.npos ? text + ".0" : text;
}

struct Printer {
  const Pattern& p;

  std::string sources(const PatternNode& n) {
    std::string text;
    for (int i = 0; i < n.child_count; ++i) text += (i == 0 ? "" : ", ") + node(n.child[i], false);
    if (n.open) text += text.empty() ? "…" : ", …";
    return "(" + text + ")";
  }

  // An op without its class and name.
  std::string plain(const PatternNode& n, bool nested) {
    const char* sign = n.child_count == 2 && !n.open ? infix(n.op) : nullptr;
    if (sign != nullptr) {
      const std::string text =
          fmt::format("{} {} {}", node(n.child[0], true), sign, node(n.child[1], true));
      return nested ? "(" + text + ")" : text;
    }
    if (n.op == Op::Neg) return "-" + node(n.child[0], true);
    if (n.op == Op::Sink) return sources(n);
    const std::string to =
        n.typed ? fmt::format("<{}>", name_of(static_cast<DType>(n.literal))) : "";
    return op_name(n.op) + to + sources(n);
  }

  std::string unclassed(const PatternNode& n, bool nested) {
    switch (n.kind) {
      case PatternKind::Literal:
        return literal_text(n);
      case PatternKind::Op:
        return plain(n, nested);
      case PatternKind::OpAny:
        return op_name(n.op) + "(…)";
      case PatternKind::OneOf:
        return set_name(n.literal) + (n.child_count == 0 ? "(…)" : sources(n));
      case PatternKind::ClassGuard:
        return fmt::format("{} is {}", node(n.child[0], true), class_name(n.classes));
      default:
        return kNames[n.name];
    }
  }

  std::string node(int at, bool nested) {
    const PatternNode& n = p.nodes[at];
    const bool classed = n.classes != kAnyClass && n.kind != PatternKind::ClassGuard;
    std::string text = unclassed(n, nested && !classed);
    if (classed) text = fmt::format("[{}] {}", class_name(n.classes), text);
    const bool is_op = n.kind == PatternKind::Op || n.kind == PatternKind::OneOf;
    if (is_op && n.name != kNoName) text = fmt::format("{} = {}", kNames[n.name], text);
    const bool prefixed = classed || (is_op && n.name != kNoName);
    return nested && prefixed ? "(" + text + ")" : text;
  }
};

std::string without_namespace(std::string_view name) {
  std::string text(name);
  constexpr std::string_view prefix = "plugrad::";
  for (size_t at; (at = text.find(prefix)) != text.npos;) text.erase(at, prefix.size());
  return text;
}

}  // namespace

std::string to_string(const Pattern& pattern) {
  return Printer{pattern}.node(pattern.count - 1, false);
}

std::string right_side(const Rule& rule) {
  if (rule.function == nullptr) return to_string(rule.right);
  return rule.function_name.empty() ? "code" : without_namespace(rule.function_name);
}

std::string condition(const Rule& rule) {
  std::string text = rule.guard.pattern.count != 0 ? to_string(rule.guard.pattern) : "";
  if (rule.guard.predicate == nullptr) return text;
  const std::string_view name = rule.guard.predicate_name;
  return text + (text.empty() ? "" : " and ") + (name.empty() ? "code" : without_namespace(name));
}

std::string source_file(const Rule& rule) {
  const std::string_view file = rule.file, root = "core/src/";
  const size_t at = file.rfind(root);
  return std::string(at == file.npos ? file : file.substr(at + root.size()));
}

}  // namespace plugrad

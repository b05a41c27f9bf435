// Parses line by line; errors have line and column.
#include "ir/text/parser.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "base/check.h"
#include "ir/range.h"
#include "ir/text/printer.h"

namespace plugrad {
namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

const std::map<std::string, Op, std::less<>>& ops_by_name() {
  static const auto table = [] {
    std::map<std::string, Op, std::less<>> names;
    for (int i = 0; i < 256; ++i)
      if (op_info(static_cast<Op>(i)).known)
        names[printed_name(static_cast<Op>(i))] = static_cast<Op>(i);
    return names;
  }();
  return table;
}

class Parser {
 public:
  Parser(Graph& graph, std::string_view text) : graph_(graph), text_(text) {}

  std::vector<Id> run() {
    while (begin_ < text_.size() && !returned_) {
      const size_t end = std::min(text_.find('\n', begin_), text_.size());
      rest_ = line_text_ = text_.substr(begin_, end - begin_);
      begin_ = end + 1;
      ++line_;
      spaces();
      if (rest_.empty() || rest_.starts_with("//")) continue;
      statement();
      spaces();
      if (!rest_.empty() && !rest_.starts_with("//"))
        fail_here("the line goes on with \"{}\"", rest_);
    }
    if (!returned_ && last_ == kNoId) fail_here("no node was given");
    if (!returned_) roots_.push_back(last_);
    return std::move(roots_);
  }

 private:
  template <class... Args>
  [[noreturn]] void fail_here(fmt::format_string<Args...> format, Args&&... args) {
    const size_t column = static_cast<size_t>(rest_.data() - line_text_.data()) + 1;
    throw_error(ErrorKind::User, fmt::format("[parse] line {}, column {}: {}", line_, column,
                                             fmt::format(format, std::forward<Args>(args)...)));
  }

  void spaces() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t' || rest_[0] == '\r'))
      rest_.remove_prefix(1);
  }
  bool accept(std::string_view token) {
    spaces();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail_here("\"{}\" is expected", token);
  }
  std::string_view word() {
    spaces();
    size_t n = 0;
    while (n < rest_.size() && is_word(rest_[n])) ++n;
    if (n == 0) fail_here("a name is expected");
    const std::string_view result = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return result;
  }
  template <class T>
  T number(int base = 10) {
    spaces();
    T value{};
    std::from_chars_result r{};
    if constexpr (std::is_floating_point_v<T>)
      r = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    else
      r = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, base);
    if (r.ec != std::errc{}) fail_here("a number that fits is expected");
    rest_.remove_prefix(static_cast<size_t>(r.ptr - rest_.data()));
    return value;
  }

  Id node_reference() {
    const auto before = rest_;
    expect("%");
    const auto name = number<uint32_t>();
    const auto at = names_.find(name);
    if (at == names_.end()) {
      rest_ = before;
      fail_here("%{} is not defined above", name);
    }
    return at->second;
  }

  void statement() {
    if (rest_.starts_with("return")) {
      accept("return");
      returned_ = true;
      do roots_.push_back(node_reference());
      while (accept(","));
      return;
    }
    expect("%");
    const auto name = number<uint32_t>();
    expect("=");
    if (names_.contains(name)) fail_here("%{} is defined twice", name);
    names_[name] = last_ = node();
  }

  Op op() {
    spaces();
    const auto before = rest_;
    std::string name(word());
    std::ranges::transform(name, name.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    const auto at = ops_by_name().find(name);
    if (at != ops_by_name().end()) return at->second;
    rest_ = before;
    fail_here("there is no op \"{}\"", name);
  }

  DType dtype() {
    spaces();
    const auto before = rest_;
    const auto name = word();
    const DType found = dtype_from_name(name);
    if (found == DType::Void && name != "void") {
      rest_ = before;
      fail_here("there is no dtype \"{}\"", name);
    }
    return found;
  }

  Id node() {
    const Op o = op();
    const DType type = dtype();
    std::vector<Id> sources;
    spaces();
    if (rest_.starts_with("%")) {
      do sources.push_back(node_reference());
      while (accept(","));
    }
    const OpInfo& info = op_info(o);
    if (sources.size() < info.min_sources ||
        (info.max_sources != 255 && sources.size() > info.max_sources))
      fail_here("{} takes {} to {} sources, here are {}", printed_name(o), info.min_sources,
                info.max_sources, sources.size());
    return graph_.add(o, type, sources, arg(o, type));
  }

  uint64_t arg(Op o, DType type) {
    if (o == Op::Range) return range();
    switch (op_info(o).arg) {
      case ArgKind::Bits:
        return constant(type);
      case ArgKind::List:
        return list(o);
      default:
        return accept("#") ? number<uint64_t>() : 0;
    }
  }

  uint64_t range() {
    expect("axis=");
    const auto axis = number<uint32_t>();
    expect("kind=");
    const auto before = rest_;
    const auto kind = word();
    for (size_t i = 0; i < std::size(kAxisKindNames); ++i)
      if (kind == kAxisKindNames[i]) return range_arg(axis, static_cast<AxisKind>(i));
    rest_ = before;
    fail_here("there is no kind of range \"{}\"", kind);
  }

  uint64_t constant(DType type) {
    spaces();
    if (accept("bits:")) return number<uint64_t>(16);
    if (is_float(type)) return bits_of(number<double>(), type);
    if (type == DType::U64) return number<uint64_t>();
    const auto value = number<int64_t>();
    if (static_cast<int64_t>(bits_of(value, type)) != value)
      fail_here("{} does not fit into {}", value, name_of(type));
    return static_cast<uint64_t>(value);
  }

  uint64_t list(Op o) {
    std::vector<int64_t> values;
    expect("[");
    while (!accept("]")) {
      if (!values.empty()) expect(",");
      spaces();
      const bool is_op = o == Op::Reduce && values.empty();
      values.push_back(is_op ? static_cast<int64_t>(op()) : number<int64_t>());
    }
    return graph_.list(values);
  }

  Graph& graph_;
  std::string_view text_, line_text_, rest_;
  size_t begin_ = 0, line_ = 0;
  std::map<uint32_t, Id> names_;
  std::vector<Id> roots_;
  Id last_ = kNoId;
  bool returned_ = false;
};

}  // namespace

std::optional<Op> op_from_name(std::string_view name) {
  const auto at = ops_by_name().find(name);
  return at == ops_by_name().end() ? std::nullopt : std::optional(at->second);
}

std::vector<Id> parse(Graph& graph, std::string_view text) {
  return Parser(graph, text).run();
}

}  // namespace plugrad

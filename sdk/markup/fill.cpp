#include "markup/fill.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "markup/clean_text.h"

namespace plugrad::markup {
namespace {

enum class Kind { Text, Escaped, Raw, Section, Inverted, End, Comment };

struct Token {
  Kind kind;
  std::string_view text;  // of Kind::Text; otherwise the name
  size_t end = 0;         // of a section: index of its End
};

[[noreturn]] void refuse(std::string_view what, std::string_view name) {
  throw std::logic_error("template: " + std::string(what) + " {{" + std::string(name) + "}}");
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\n");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") + 1 - first);
}

Kind kind_of(char sign) {
  constexpr std::pair<char, Kind> kSigns[] = {
      {'#', Kind::Section}, {'^', Kind::Inverted}, {'/', Kind::End}, {'!', Kind::Comment}};
  for (const auto& [known, kind] : kSigns)
    if (sign == known) return kind;
  return Kind::Escaped;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::vector<Token> parse() {
    for (size_t open; (open = text_.find("{{", at_)) != text_.npos;) {
      tokens_.push_back({Kind::Text, text_.substr(at_, open - at_)});
      parse_tag(open);
    }
    tokens_.push_back({Kind::Text, text_.substr(at_)});
    if (!open_.empty()) refuse("unclosed section", tokens_[open_.back()].text);
    return std::move(tokens_);
  }

 private:
  void parse_tag(size_t open) {
    const bool raw = text_.substr(open).starts_with("{{{");
    const size_t braces = raw ? 3 : 2;
    const size_t close = text_.find(raw ? "}}}" : "}}", open + braces);
    if (close == text_.npos) refuse("unclosed tag", trimmed(text_.substr(open + braces)));
    std::string_view name = trimmed(text_.substr(open + braces, close - open - braces));
    if (name.empty()) refuse("no name in", name);
    const Kind kind = raw ? Kind::Raw : kind_of(name[0]);
    if (kind != Kind::Raw && kind != Kind::Escaped) name = trimmed(name.substr(1));
    at_ = close + braces;
    if (kind != Kind::Raw && kind != Kind::Escaped) remove_line(open);
    if (kind == Kind::Comment) return;
    tokens_.push_back({kind, name});
    if (kind == Kind::Section || kind == Kind::Inverted) open_.push_back(tokens_.size() - 1);
    if (kind == Kind::End) close_section(name);
  }

  void close_section(std::string_view name) {
    if (open_.empty() || tokens_[open_.back()].text != name) refuse("unopened section", name);
    tokens_[open_.back()].end = tokens_.size() - 1;
    open_.pop_back();
  }

  // Removes the blanks around a tag that stands alone on its line, and the line break.
  void remove_line(size_t open) {
    const size_t line = open == 0 ? 0 : text_.rfind('\n', open - 1) + 1;  // npos + 1 is 0
    const size_t end = std::min(text_.find('\n', at_), text_.size());
    if (!trimmed(text_.substr(line, open - line)).empty()) return;
    if (!trimmed(text_.substr(at_, end - at_)).empty()) return;
    tokens_.back().text.remove_suffix(open - line);
    at_ = std::min(end + 1, text_.size());
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<Token> tokens_;
  std::vector<size_t> open_;  // indices of sections that are not closed yet
};

bool is_empty(const Values* value) {
  if (!value || value->is_null()) return true;
  if (value->is_boolean()) return !value->get<bool>();
  if (value->is_string()) return value->get_ref<const std::string&>().empty();
  return value->is_structured() && value->empty();
}

class Filler {
 public:
  explicit Filler(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  std::string fill(const Values& values) {
    fill_with(values, 0, tokens_.size());
    return std::move(out_);
  }

 private:
  void fill_with(const Values& element, size_t begin, size_t end) {
    elements_.push_back(&element);
    for (size_t i = begin; i < end; ++i) {
      const Token& token = tokens_[i];
      switch (token.kind) {
        case Kind::Text:
          out_ += token.text;
          break;
        case Kind::Escaped:
          out_ += escape_markup(text_of(token.text));
          break;
        case Kind::Raw:
          out_ += text_of(token.text);
          break;
        case Kind::Section:
        case Kind::Inverted:
          fill_section(token, i + 1);
          i = token.end;
          break;
        case Kind::End:
        case Kind::Comment:
          break;
      }
    }
    elements_.pop_back();
  }

  void fill_section(const Token& token, size_t begin) {
    const Values* value = find(token.text);
    if (is_empty(value) != (token.kind == Kind::Inverted)) return;
    if (token.kind == Kind::Inverted)
      fill_with(*elements_.back(), begin, token.end);
    else if (!value->is_array())
      fill_with(*value, begin, token.end);
    else
      for (const Values& element : *value) fill_with(element, begin, token.end);
  }

  const Values* find(std::string_view name) const {
    if (name == ".") return elements_.back();
    for (auto element = elements_.rbegin(); element != elements_.rend(); ++element) {
      if (!(*element)->is_object()) continue;
      const auto found = (*element)->find(name);
      if (found != (*element)->end()) return &*found;
    }
    return nullptr;
  }

  std::string text_of(std::string_view name) const {
    const Values* value = find(name);
    if (value && value->is_string()) return value->get<std::string>();
    if (value && value->is_number_integer()) return value->dump();
    refuse(value ? "neither text nor integer:" : "no value of", name);
  }

  std::vector<Token> tokens_;
  std::vector<const Values*> elements_;  // the current one and those around it
  std::string out_;
};

}  // namespace

std::string fill(std::string_view text, const Values& values) {
  return Filler(Parser(text).parse()).fill(values);
}

}  // namespace plugrad::markup

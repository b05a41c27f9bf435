// Splits texts into words or characters. Source of its meaning: ONNX Runtime 1.32.
#include <algorithm>

#include "base/binding.h"
#include "base/check.h"
#include "onnx/ops/tables.h"
#include "onnx/ops/text/patterns.h"

namespace plugrad::onnx {
namespace {

using Tokens = std::vector<std::string_view>;

constexpr std::string_view kStartOfText = "\x02", kEndOfText = "\x03";

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
}
int64_t characters_in(std::string_view text) {
  return std::ranges::count_if(text, begins_character);
}
size_t after_character(std::string_view text, size_t at) {
  do ++at;
  while (at < text.size() && !begins_character(text[at]));
  return at;
}

// The first match from a place on; without data if there is none.
std::string_view first_match(const RE2& pattern, std::string_view text, size_t from) {
  re2::StringPiece found;
  const bool is_found = pattern.Match(re2::StringPiece(text.data(), text.size()), from, text.size(),
                                      RE2::UNANCHORED, &found, 1);
  return is_found ? text.substr(static_cast<size_t>(found.data() - text.data()), found.size())
                  : std::string_view();
}

// How a node makes tokens, which have at least `least` characters.
struct Rules {
  bool takes_characters = false;
  std::vector<std::unique_ptr<const RE2>> separators;
  std::unique_ptr<const RE2> token;
  int64_t least = 1;
};

Rules rules_of(Call& call) {
  Rules rules;
  const Tokens separators = call.texts("separators");
  const std::string_view token = call.text("tokenexp", "");
  rules.least = call.integer("mincharnum", 1);
  rules.takes_characters =
      separators.empty() ? token == "." : separators.size() == 1 && separators[0].empty();
  if (separators.empty() && token.empty()) call.wrong("separators and tokenexp are missing");
  if (rules.takes_characters && rules.least > 1)
    call.wrong(fmt::format("mincharnum is {} for single characters", rules.least));
  if (rules.takes_characters) return rules;
  for (const std::string_view separator : separators)
    rules.separators.push_back(compiled_pattern(call, separator, true));
  if (separators.empty()) rules.token = compiled_pattern(call, token, true);
  return rules;
}

// Adds the parts between the matches of a separator.
void add_parts(Call& call, const Rules& rules, const RE2& separator, std::string_view text,
               Tokens& tokens) {
  const auto add = [&](std::string_view part) {
    if (characters_in(part) >= rules.least) tokens.push_back(part);
  };
  size_t begin = 0;
  for (;;) {
    const std::string_view match = first_match(separator, text, begin);
    if (match.data() == nullptr) break;
    if (match.empty())
      call.wrong(fmt::format("the separator \"{}\" matches an empty text", separator.pattern()));
    const auto at = static_cast<size_t>(match.data() - text.data());
    add(text.substr(begin, at - begin));
    begin = at + match.size();
  }
  add(text.substr(begin));
}

// A match that is too short is looked for again behind its first character.
Tokens matches_in(const Rules& rules, std::string_view text) {
  Tokens tokens;
  for (size_t from = 0; from < text.size();) {
    const std::string_view match = first_match(*rules.token, text, from);
    if (match.data() == nullptr) break;
    from = static_cast<size_t>(match.data() - text.data());
    if (characters_in(match) < rules.least) {
      from = after_character(text, from);
      continue;
    }
    tokens.push_back(match);
    from += match.size();
  }
  return tokens;
}

Tokens tokens_of(Call& call, const Rules& rules, std::string_view text) {
  Tokens tokens;
  if (rules.takes_characters)
    for (size_t at = 0, end = 0; at < text.size(); at = end) {
      end = after_character(text, at);
      tokens.push_back(text.substr(at, end - at));
    }
  if (rules.takes_characters) return tokens;
  if (rules.token) return matches_in(rules, text);
  tokens.push_back(text);
  for (const auto& separator : rules.separators) {
    Tokens parts;
    for (const std::string_view part : tokens) add_parts(call, rules, *separator, part, parts);
    tokens = std::move(parts);
  }
  return tokens;
}

// A further axis with the tokens of each text, between marks and then filled up to the most.
Values tokenizer(Call& call) {
  const Strings& x = call.strings(0);
  if (x.shape.empty() || x.shape.size() > 2)
    call.wrong(fmt::format("the shape is {}, it must be (C,) or (N, C)", to_string(x.shape)));
  const Rules rules = rules_of(call);
  std::vector<Tokens> rows;
  size_t longest = 0;
  for (const std::string& text : x.elements) {
    poll_interruption();
    rows.push_back(tokens_of(call, rules, text));
    longest = std::max(longest, rows.back().size());
  }
  const bool has_marks = call.integer("mark", 0) != 0 && longest > 0;
  if (has_marks) longest += 2;
  Strings result{x.shape, {}};
  result.shape.push_back(static_cast<int64_t>(longest));
  require_host_elements(result.shape);
  for (const Tokens& tokens : rows) {
    const size_t end = result.elements.size() + longest;
    if (has_marks) result.elements.emplace_back(kStartOfText);
    result.elements.insert(result.elements.end(), tokens.begin(), tokens.end());
    if (has_marks) result.elements.emplace_back(kEndOfText);
    result.elements.resize(end, std::string(call.text("pad_value", "")));
  }
  return {std::move(result)};
}

constexpr OperatorRow kTokenizerRows[] = {{"Tokenizer", tokenizer, false, kMicrosoft}};

}  // namespace

std::span<const OperatorRow> tokenizer_operators() {
  return kTokenizerRows;
}

}  // namespace plugrad::onnx

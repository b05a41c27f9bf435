// Operators of strings, which the host computes.
#include <algorithm>
#include <clocale>  // and POSIX: newlocale
#include <cwctype>

#include "base/check.h"
#include "ir/facts.h"
#include "onnx/ops/tables.h"
#include "onnx/ops/text/patterns.h"

namespace plugrad::onnx {
namespace {

// Elements of x for each element of the shape that x broadcasts to.
std::vector<std::string> broadcast(const Strings& x, const Shape& shape) {
  std::vector<std::string> elements;
  const auto count = static_cast<size_t>(element_count(std::span(shape)));
  const size_t missing = shape.size() - x.shape.size();
  for (size_t i = 0; i < count; ++i) {
    size_t rest = i, place = 0, stride = 1;
    for (size_t axis = shape.size(); axis-- > 0;) {
      const auto size = static_cast<size_t>(shape[axis]), at = rest % size;
      rest /= size;
      if (axis < missing) continue;
      const auto own = static_cast<size_t>(x.shape[axis - missing]);
      if (own != 1) place += at * stride;
      stride *= own;
    }
    elements.push_back(x.elements[place]);
  }
  return elements;
}

Shape joint_shape(Call& call, const Shape& x, const Shape& y) {
  Shape shape(std::max(x.size(), y.size()), 1);
  for (const Shape* each : {&x, &y})
    for (size_t i = 0; i < each->size(); ++i) {
      int64_t& size = shape[shape.size() - each->size() + i];
      if (size == 1) size = (*each)[i];
      if ((*each)[i] != 1 && (*each)[i] != size)
        call.wrong(
            fmt::format("the shapes {} and {} do not broadcast", to_string(x), to_string(y)));
    }
  return shape;
}

Values string_concat(Call& call) {
  const Strings &x = call.strings(0), &y = call.strings(1);
  const Shape shape = joint_shape(call, x.shape, y.shape);
  std::vector<std::string> joined = broadcast(x, shape);
  const std::vector<std::string> ends = broadcast(y, shape);
  for (size_t i = 0; i < joined.size(); ++i) joined[i] += ends[i];
  return {Strings{shape, std::move(joined)}};
}

constexpr std::string_view kSpaces = " \t\n\v\f\r";

// At most `most` splits, if it is not negative. Without a delimiter at runs of white space, of which
// those around the text do not count; the rest after the last split stays as it is.
std::vector<std::string> parts_of(std::string_view text, std::string_view delimiter, int64_t most) {
  std::vector<std::string> parts;
  const bool at_spaces = delimiter.empty();
  const auto skip_spaces = [&] {
    text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
  };
  if (at_spaces) skip_spaces();
  if (at_spaces && text.empty()) return parts;
  while (most < 0 || static_cast<int64_t>(parts.size()) < most) {
    const size_t end = at_spaces ? text.find_first_of(kSpaces) : text.find(delimiter);
    if (end == std::string_view::npos) break;
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end + (at_spaces ? 1 : delimiter.size()));
    if (!at_spaces) continue;
    skip_spaces();
    if (text.empty()) return parts;
  }
  parts.emplace_back(text);
  return parts;
}

Values string_split(Call& call) {
  const Strings& x = call.strings(0);
  const int64_t most = call.integer("maxsplit", -1);
  std::vector<std::vector<std::string>> lists;
  size_t longest = 0;
  tensor::HostValues counts{x.shape, DType::I64, {}};
  for (const std::string& text : x.elements) {
    lists.push_back(parts_of(text, call.text("delimiter", ""), most));
    counts.bits.push_back(lists.back().size());
    longest = std::max(longest, lists.back().size());
  }
  Strings all{x.shape, {}};
  all.shape.push_back(static_cast<int64_t>(longest));
  for (auto& list : lists) {
    list.resize(longest);
    for (std::string& part : list) all.elements.push_back(std::move(part));
  }
  return {std::move(all), Value::known(std::move(counts))};
}

Values regex_full_match(Call& call) {
  const Strings& x = call.strings(0);
  const auto pattern = compiled_pattern(call, call.text("pattern", ""));
  tensor::HostValues matches{x.shape, DType::Bool, {}};
  for (const std::string& text : x.elements)
    matches.bits.push_back(RE2::FullMatch(text, *pattern) ? 1 : 0);
  return {Value::known(std::move(matches))};
}

// The letters of a locale, or of one for all languages where the system lacks it.
class Letters {
 public:
  explicit Letters(const std::string& name)
      : locale_(newlocale(LC_CTYPE_MASK, (name + ".UTF-8").c_str(), nullptr)) {
    if (!locale_) locale_ = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    if (!locale_) fail(ErrorKind::Unsupported, "[onnx] the system has no UTF-8 locale");
  }
  Letters(const Letters&) = delete;
  Letters& operator=(const Letters&) = delete;
  ~Letters() { freelocale(locale_); }

  // Bytes that are no UTF-8 stay as they are.
  std::string changed(const std::string& text, bool upper) const {
    std::string result;
    for (size_t at = 0; at < text.size();) {
      size_t length = 1;
      const char32_t letter = decode(text, at, length);
      if (letter == 0)
        result += text[at];
      else
        encode(static_cast<char32_t>(upper ? towupper_l(static_cast<wint_t>(letter), locale_)
                                           : towlower_l(static_cast<wint_t>(letter), locale_)),
               result);
      at += length;
    }
    return result;
  }

 private:
  static char32_t decode(const std::string& text, size_t at, size_t& length) {
    const auto first = static_cast<unsigned char>(text[at]);
    const size_t wanted = first < 0x80       ? 1
                          : first >> 5 == 6  ? 2
                          : first >> 4 == 14 ? 3
                          : first >> 3 == 30 ? 4
                                             : 0;
    if (wanted == 0 || at + wanted > text.size()) return 0;
    auto letter = static_cast<char32_t>(wanted == 1 ? first : first & (0x7f >> wanted));
    for (size_t i = 1; i < wanted; ++i) {
      const auto next = static_cast<unsigned char>(text[at + i]);
      if (next >> 6 != 2) return 0;
      letter = letter << 6 | (next & 0x3f);
    }
    length = wanted;
    return letter;
  }

  static void encode(char32_t letter, std::string& to) {
    if (letter < 0x80) {
      to += static_cast<char>(letter);
      return;
    }
    const int rest = letter < 0x800 ? 1 : letter < 0x10000 ? 2 : 3;
    to += static_cast<char>((0xff00 >> (rest + 1) & 0xff) | letter >> (6 * rest));
    for (int i = rest - 1; i >= 0; --i) to += static_cast<char>(0x80 | (letter >> (6 * i) & 0x3f));
  }

  locale_t locale_;
};

// Removes stop words, then changes the case. Words are compared in one case unless
// is_case_sensitive says otherwise.
Values string_normalizer(Call& call) {
  const Strings& x = call.strings(0);
  if (x.shape.size() != 1 && !(x.shape.size() == 2 && x.shape[0] == 1))
    call.wrong(fmt::format("the shape is {}, it must be (C,) or (1, C)", to_string(x.shape)));
  const std::string_view action = call.text("case_change_action", "NONE");
  const Letters letters(std::string(call.text("locale", "en_US")));
  const bool is_sensitive = call.integer("is_case_sensitive", 0) != 0;
  const auto compared = [&](const std::string& text) {
    return is_sensitive ? text : letters.changed(text, false);
  };
  std::vector<std::string> stop_words;
  for (const std::string_view word : call.texts("stopwords"))
    stop_words.push_back(compared(std::string(word)));
  Strings kept{x.shape, {}};
  for (const std::string& text : x.elements) {
    if (!stop_words.empty() && std::ranges::find(stop_words, compared(text)) != stop_words.end())
      continue;
    kept.elements.push_back(action == "NONE" ? text : letters.changed(text, action == "UPPER"));
  }
  if (kept.elements.empty()) kept.elements.emplace_back();
  kept.shape.back() = static_cast<int64_t>(kept.elements.size());
  return {std::move(kept)};
}

constexpr OperatorRow kStringRows[] = {
    {"RegexFullMatch", regex_full_match},
    {"StringConcat", string_concat},
    {"StringNormalizer", string_normalizer},
    {"StringSplit", string_split},
};

}  // namespace

std::unique_ptr<const RE2> compiled_pattern(Call& call, std::string_view text, bool takes_longest) {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_longest_match(takes_longest);
  auto pattern = std::make_unique<const RE2>(std::string(text), options);
  if (!pattern->ok())
    call.wrong(fmt::format("the pattern \"{}\" is no RE2 pattern: {}", pattern->pattern(),
                           pattern->error()));
  return pattern;
}

std::span<const OperatorRow> string_operators() {
  return kStringRows;
}

}  // namespace plugrad::onnx

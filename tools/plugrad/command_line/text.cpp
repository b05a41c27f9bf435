#include "command_line/text.h"

namespace plugrad::tools {
namespace {

// "arg (=512)" gives 512.
std::string default_in(const std::string& parameter) {
  const size_t begin = parameter.find("(="), end = parameter.rfind(')');
  return begin == parameter.npos ? "" : parameter.substr(begin + 2, end - begin - 2);
}

}  // namespace

std::vector<OptionText> option_texts(const Syntax& syntax) {
  std::vector<OptionText> texts;
  const auto options = all_options(syntax);
  for (const auto& option : options.options())
    texts.push_back({.name = option->long_name(),
                     .meaning = option->description(),
                     .usual = default_in(option->format_parameter()),
                     .takes_value = option->semantic()->max_tokens() > 0});
  return texts;
}

std::string escaped(const std::string& text, const std::map<char, std::string>& replacements) {
  std::string out;
  for (const char c : text) {
    const auto found = replacements.find(c);
    if (found == replacements.end())
      out += c;
    else
      out += found->second;
  }
  return out;
}

}  // namespace plugrad::tools

// Texts of commands and options, for completion and the manual.
#pragma once

#include <map>

#include "command.h"

namespace plugrad::tools {

struct OptionText {
  std::string name;  ///< without dashes
  std::string meaning;
  std::string usual;  ///< the default value; empty: not shown
  bool takes_value = false;
};

/// The options of --help, in its order.
std::vector<OptionText> option_texts(const Syntax& syntax);

/// `text` with each of these characters replaced.
std::string escaped(const std::string& text, const std::map<char, std::string>& replacements);

}  // namespace plugrad::tools

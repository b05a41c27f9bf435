// Commands and options as the writers of completion and of the manual need them.
#pragma once

#include <map>

#include "command.h"

namespace plugrad::tools {

struct OptionText {
  std::string name;  ///< without dashes
  std::string meaning;
  std::string usual;  ///< the default value; empty where there is none to show
  bool takes_value = false;
};

/// Those of --help, in its order.
std::vector<OptionText> option_texts(const Syntax& syntax);

/// The commands that the overview names.
std::vector<Command> listed_commands();

/// `text` with each of these characters replaced.
std::string escaped(const std::string& text, const std::map<char, std::string>& replacements);

}  // namespace plugrad::tools

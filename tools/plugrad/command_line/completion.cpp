// plugrad completion SHELL: a script that completes commands, options and their values.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "command.h"
#include "command_line/text.h"

namespace plugrad::tools {
namespace {

// Possible values of an option, or of a positional argument.
struct Values {
  Arguments choices;
  bool are_paths = false;
};

Values values_of(const Syntax& syntax, const std::string& name) {
  const auto found = syntax.choices.find(name);
  return {found == syntax.choices.end() ? Arguments{} : found->second, syntax.paths.contains(name)};
}

Arguments names_of_commands() {
  Arguments names = {"help"};
  for (const Command& command : commands()) names.emplace_back(command.name);
  return names;
}

// -- bash

std::string bash_reply(const Values& values) {
  std::string text;
  if (!values.choices.empty())
    text += fmt::format("_plugrad_words '{}'; ", fmt::join(values.choices, " "));
  if (values.are_paths) text += "_plugrad_paths; ";
  return text;
}

std::string bash_cases() {
  std::string of_values, of_commands;
  for (const Command& command : commands()) {
    const Syntax syntax = command.syntax();
    Arguments options;
    for (const OptionText& option : option_texts(syntax)) {
      options.push_back("--" + option.name);
      if (option.takes_value)
        of_values += fmt::format("    '{} --{}') {}return ;;\n", command.name, option.name,
                                 bash_reply(values_of(syntax, option.name)));
    }
    const std::string reply = bash_reply(values_of(syntax, syntax.words));
    of_commands += fmt::format("    {}) options='{}'", command.name, fmt::join(options, " "));
    if (!reply.empty())
      of_commands += fmt::format("\n      [[ $current == -* ]] || {{ {}}}", reply);
    of_commands += " ;;\n";
  }
  return fmt::format("  case \"$command $previous\" in\n{}  esac\n  case $command in\n{}  esac\n",
                     of_values, of_commands);
}

constexpr char kBashHead[] =
    R"(# Completion of plugrad for bash; printed by `plugrad completion bash`.
_plugrad_words() { COMPREPLY+=($(compgen -W "$1" -- "$current")); }
_plugrad_paths() {
  local path
  while IFS= read -r path; do COMPREPLY+=("$path"); done < <(compgen -f -- "$current")
  compopt -o filenames 2> /dev/null || true
}
_plugrad() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  local command=${COMP_WORDS[1]} options=
  COMPREPLY=()
  # bash makes three words of --model=cnn
  if [[ $current == = ]]; then current=; elif [[ $previous == = ]]; then
    previous=${COMP_WORDS[COMP_CWORD-2]}
  fi
)";

std::string bash_script() {
  const std::string names = fmt::format("{}", fmt::join(names_of_commands(), " "));
  return fmt::format(
      "{}  if ((COMP_CWORD == 1)); then _plugrad_words '{} --help --version'; return; fi\n"
      "  if [[ $command == help ]]; then _plugrad_words '{}'; return; fi\n"
      "{}  if [[ $current == -* ]]; then _plugrad_words \"$options\"; fi\n"
      "}}\ncomplete -F _plugrad plugrad\n",
      kBashHead, names, names, bash_cases());
}

// -- zsh

std::string zsh_action(const Values& values) {
  if (values.are_paths) return "_files";
  return values.choices.empty() ? " " : fmt::format("({})", fmt::join(values.choices, " "));
}

// Escapes text in the brackets of an option's description, in single quotes.
std::string zsh_text(const std::string& text) {
  return escaped(text, {{'\'', "'\\''"}, {'[', "\\["}, {']', "\\]"}, {':', "\\:"}});
}

std::string zsh_case(const Command& command) {
  const Syntax syntax = command.syntax();
  std::string text = fmt::format("    {}) _arguments", command.name);
  for (const OptionText& option : option_texts(syntax))
    text += fmt::format(" \\\n      '--{}{}[{}]{}'", option.name, option.takes_value ? "=" : "",
                        zsh_text(option.meaning),
                        option.takes_value ? fmt::format(":{}:{}", option.name,
                                                         zsh_action(values_of(syntax, option.name)))
                                           : "");
  const Values words = values_of(syntax, syntax.words);
  if (!words.choices.empty() && words.are_paths)
    text += fmt::format(" \\\n      '*:{0}:{{_values {0} {1}; _files}}'", syntax.words,
                        fmt::join(words.choices, " "));
  else if (!syntax.words.empty())
    text += fmt::format(" \\\n      '*:{}:{}'", syntax.words, zsh_action(words));
  return text + " ;;\n";
}

std::string zsh_script() {
  std::string names = "    'help:tell more of a command'\n", cases;
  for (const Command& command : commands()) {
    names += fmt::format("    '{}:{}'\n", command.name, zsh_text(command.summary));
    cases += zsh_case(command);
  }
  return fmt::format(
      "#compdef plugrad\n# Completion of plugrad for zsh; printed by `plugrad completion zsh`.\n"
      "_plugrad() {{\n  local -a names\n  names=(\n{}  )\n"
      "  if ((CURRENT == 2)) || [[ $words[2] == help ]]; then\n"
      "    _describe command names; return\n  fi\n"
      "  shift words; ((CURRENT--))\n  case $words[1] in\n{}  esac\n}}\n"
      "if [[ $funcstack[1] == _plugrad ]]; then _plugrad \"$@\"; else compdef _plugrad plugrad; "
      "fi\n",
      names, cases);
}

// -- fish

std::string fish_text(const std::string& text) {
  return "'" + escaped(text, {{'\'', "\\'"}, {'\\', "\\\\"}}) + "'";
}

std::string fish_lines(const Command& command) {
  const Syntax syntax = command.syntax();
  const std::string begin =
      fmt::format("complete -c plugrad -n '__fish_seen_subcommand_from {}'", command.name);
  std::string text;
  for (const OptionText& option : option_texts(syntax)) {
    const Values values = values_of(syntax, option.name);
    text += fmt::format("{} -l {} -d {}", begin, option.name, fish_text(option.meaning));
    if (option.takes_value) text += values.are_paths ? " -r -F" : " -x";
    if (!values.choices.empty()) text += fmt::format(" -a '{}'", fmt::join(values.choices, " "));
    text += '\n';
  }
  const Values words = values_of(syntax, syntax.words);
  if (words.are_paths) text += begin + " -F\n";
  if (!words.choices.empty())
    text += fmt::format("{} -a '{}'\n", begin, fmt::join(words.choices, " "));
  return text;
}

std::string fish_script() {
  std::string text =
      "# Completion of plugrad for fish; printed by `plugrad completion fish`.\n"
      "complete -c plugrad -f\n"
      "complete -c plugrad -n __fish_use_subcommand -l version -d 'version, ABI and build'\n";
  text += fmt::format(
      "complete -c plugrad -n '__fish_seen_subcommand_from help' -a '{}'\n"
      "complete -c plugrad -n __fish_use_subcommand -a help -d 'tell more of a command'\n",
      fmt::join(names_of_commands(), " "));
  for (const Command& command : commands()) {
    text += fmt::format("complete -c plugrad -n __fish_use_subcommand -a {} -d {}\n", command.name,
                        fish_text(command.summary));
    text += fish_lines(command);
  }
  return text;
}

Arguments shell_names() {
  return {"bash", "zsh", "fish"};
}

}  // namespace

Syntax completion_syntax() {
  return {.usage = "plugrad completion (bash | zsh | fish)",
          .words = "shell",
          .choices = {{"shell", shell_names()}}};
}

int run_completion(const Arguments& arguments) {
  const Syntax syntax = completion_syntax();
  const Parsed parsed = parse(arguments, syntax);
  if (parsed.help) return kSuccess;
  const auto shells = parsed.get<Arguments>("shell");
  if (shells.size() != 1) throw UsageError("name one shell\nusage: " + syntax.usage);
  require_choice("completion for", shells[0], shell_names(), syntax.usage);
  fmt::print("{}", shells[0] == "bash"  ? bash_script()
                   : shells[0] == "zsh" ? zsh_script()
                                        : fish_script());
  return kSuccess;
}

}  // namespace plugrad::tools

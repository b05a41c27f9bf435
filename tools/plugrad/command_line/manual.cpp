// plugrad man: the manual page in man(7) format.
#include <fmt/format.h>

#include "command.h"
#include "command_line/text.h"
#include "command_line/version.h"

namespace plugrad::tools {
namespace {

// Escapes a line of text: a leading dot would be a request, and a bare minus becomes a hyphen.
std::string man_text(const std::string& text) {
  std::string out = escaped(text, {{'\\', "\\e"}, {'-', "\\-"}});
  for (size_t at = 0; (at = out.find('\n', at)) != out.npos; ++at)
    if (at + 1 < out.size() && (out[at + 1] == '.' || out[at + 1] == '\''))
      out.insert(at + 1, "\\&");
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string option_entry(const OptionText& option) {
  const std::string value = option.takes_value ? " \\fIVALUE\\fR" : "";
  const std::string usual =
      option.usual.empty() ? "" : fmt::format("; default: {}", man_text(option.usual));
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}{}\n", man_text("--" + option.name), value,
                     man_text(option.meaning), usual);
}

std::string command_section(const Command& command) {
  const Syntax syntax = command.syntax();
  std::string text = fmt::format(".SS {}\n{}.\n.PP\n.nf\n{}\n.fi\n", man_text(command.name),
                                 man_text(command.summary), man_text(syntax.usage));
  for (const OptionText& option : option_texts(syntax)) text += option_entry(option);
  return text;
}

constexpr char kEnd[] = R"(.SH EXIT STATUS
.TP
.B 0
success
.TP
.B 1
the job failed
.TP
.B 2
bad usage
.TP
.B 130, 143
the job was ended by SIGINT (Ctrl\-C) or SIGTERM, and what it had was reported
.SH OUTPUT
With \fB\-\-json\fR a command prints one JSON document on one line of stdout and nothing else there;
the report of a conformance run is the document that its file holds.
Progress and errors go to stderr.
.SH ENVIRONMENT
.TP
.B DEV
device that a command uses, such as CPU, CUDA:1 or vulkan
.TP
.B PLUGRAD_DATA
folder that holds the folders of data sets
.TP
.B PLUGRAD_CACHE_DIR
folder of compiled kernels and of data sets that were fetched
.TP
.B PLUGRAD_PLUGIN_PATH
folders that plugins are looked for in
)";

std::string manual() {
  std::string text = fmt::format(
      ".TH PLUGRAD 1 \"\" \"plugrad {}\" \"User Commands\"\n"
      ".SH NAME\nplugrad \\- deep learning on devices that plugins bring\n"
      ".SH SYNOPSIS\n.B plugrad\n\\fICOMMAND\\fR [\\fIOPTION\\fR...]\n.br\n"
      ".B plugrad help\n[\\fICOMMAND\\fR]\n.br\n.B plugrad \\-\\-version\n[\\fB\\-\\-json\\fR]\n"
      ".SH COMMANDS\n",
      version());
  for (const Command& command : commands()) text += command_section(command);
  return text + kEnd;
}

}  // namespace

Syntax man_syntax() {
  return {.usage = "plugrad man"};
}

int run_man(const Arguments& arguments) {
  if (parse(arguments, man_syntax()).help) return kSuccess;
  fmt::print("{}", manual());
  return kSuccess;
}

}  // namespace plugrad::tools

// Parses a subcommand's line with Boost.Program_options; suggests similar names.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "base/text.h"
#include "command.h"
#include "plugrad/device.h"

namespace plugrad::tools {
namespace {

namespace po = boost::program_options;

Arguments long_names(const po::options_description& options) {
  Arguments names;
  for (const auto& option : options.options()) names.push_back("--" + option->long_name());
  return names;
}

po::variables_map read_line(const Arguments& arguments, const Syntax& syntax) {
  po::options_description all = all_options(syntax);
  po::positional_options_description positional;
  if (!syntax.words.empty()) {
    const char* words = syntax.words.c_str();
    all.add_options()(words, po::value<Arguments>()->default_value({}, ""));
    positional.add(words, -1);
  }
  // Disabled: adding an option could make an existing abbreviation ambiguous.
  const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  po::variables_map values;
  po::store(
      po::command_line_parser(arguments).options(all).positional(positional).style(style).run(),
      values);
  po::notify(values);
  return values;
}

}  // namespace

std::string did_you_mean(const std::string& given, const Arguments& known) {
  std::string nearest = nearest_name(given, known);
  if (nearest.empty() && given.size() >= 3) {
    const auto longer = std::ranges::find_if(
        known, [&](const std::string& name) { return name.starts_with(given); });
    if (longer != known.end()) nearest = *longer;
  }
  return nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest);
}

std::map<std::string, std::string> parse_key_values(const Arguments& given, const char* option) {
  std::map<std::string, std::string> options;
  for (const std::string& text : given) {
    const size_t equals = text.find('=');
    if (equals == text.npos || equals == 0)
      throw UsageError(fmt::format("--{} {}: not key=value", option, text));
    const auto [at, is_new] = options.emplace(text.substr(0, equals), text.substr(equals + 1));
    if (!is_new) throw UsageError(fmt::format("--{} {} is given twice", option, at->first));
  }
  return options;
}

void require_choice(const char* kind, const std::string& given, const Arguments& known,
                    const std::string& usage) {
  if (std::ranges::find(known, given) == known.end())
    throw UsageError(fmt::format("there is no {} {}{}\nit is one of: {}\nusage: {}", kind, given,
                                 did_you_mean(given, known), fmt::join(known, ", "), usage));
}

po::options_description all_options(const Syntax& syntax) {
  po::options_description options = syntax.options;
  options.add_options()("help,h", "show this");
  return options;
}

Parsed parse(const Arguments& arguments, const Syntax& syntax) {
  Parsed parsed;
  try {
    parsed.values = read_line(arguments, syntax);
  } catch (const po::unknown_option& error) {
    const std::string advice =
        did_you_mean(error.get_option_name(), long_names(all_options(syntax)));
    throw UsageError(fmt::format("{}{}\nusage: {}", error.what(), advice, syntax.usage));
  } catch (const po::error& error) {
    throw UsageError(fmt::format("{}\nusage: {}", error.what(), syntax.usage));
  }
  if (parsed.has("help")) {
    std::ostringstream options;
    options << all_options(syntax);
    fmt::print("usage: {}\n{}", syntax.usage, options.str());
    parsed.help = true;
  }
  return parsed;
}

void choose_device(const std::string& selection) {
  if (!selection.empty()) Device::set_default_device(selection);
}

void print_json(const nlohmann::ordered_json& document) {
  // Names of files may have any bytes.
  fmt::print("{}\n", document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace plugrad::tools

// plugrad new-plugin: creates a plugin project from the SDK's template.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <span>
#include <string_view>

#include "base/file.h"
#include "command.h"

namespace plugrad::tools {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestName = 32;
constexpr std::array<std::string_view, 8> kTaken = {"cpu",     "cpu_clang", "cuda",   "opencl",
                                                    "plugrad", "reference", "vulkan", "render"};
// The name becomes part of file, function and namespace names.
constexpr std::string_view kKeywords[] = {
    "alignas",  "alignof", "and",     "asm",       "auto",     "bool",     "break",    "case",
    "catch",    "char",    "class",   "compl",     "concept",  "const",    "continue", "default",
    "delete",   "do",      "double",  "else",      "enum",     "explicit", "export",   "extern",
    "false",    "float",   "for",     "friend",    "goto",     "if",       "inline",   "int",
    "long",     "main",    "mutable", "namespace", "new",      "noexcept", "not",      "nullptr",
    "operator", "or",      "private", "protected", "public",   "register", "requires", "restrict",
    "return",   "short",   "signed",  "sizeof",    "static",   "std",      "struct",   "switch",
    "template", "this",    "throw",   "true",      "try",      "typedef",  "typename", "union",
    "unsigned", "using",   "virtual", "void",      "volatile", "while",    "xor"};

void check_name(const std::string& name) {
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  const bool starts_well = !name.empty() && name[0] >= 'a' && name[0] <= 'z';
  if (!starts_well || !std::ranges::all_of(name, is_part) || name.back() == '_')
    throw UsageError(
        fmt::format("new-plugin: \"{}\" is no name for a plugin: lower-case letters, digits and "
                    "underscores, with a letter first, such as acme_npu",
                    name));
  if (name.size() > kLongestName)
    throw UsageError(fmt::format("new-plugin: \"{}\" has {} characters; {} are the most", name,
                                 name.size(), kLongestName));
  if (std::ranges::find(kTaken, name) != std::end(kTaken))
    throw UsageError(fmt::format(
        "new-plugin: \"{}\" is the name of one of plugrad's own parts; take another", name));
  if (std::ranges::find(kKeywords, name) != std::end(kKeywords))
    throw UsageError(
        fmt::format("new-plugin: \"{}\" is a word of the language; take another", name));
}

// The command's installation prefix, or the build tree, which has the same layout.
fs::path prefix() {
  return fs::read_symlink("/proc/self/exe").parent_path().parent_path();
}

fs::path template_directory(const std::string& language) {
  const fs::path path = prefix() / "share/plugrad/template" / language;
  if (!fs::is_directory(path))
    throw std::runtime_error(
        fmt::format("new-plugin: the template is not at {}: install plugrad again", path.string()));
  return path;
}

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string upper(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

void copy_file(const fs::path& from, const fs::path& to, const std::string& name) {
  const auto bytes = read_file(from.string());
  if (!bytes)
    throw std::runtime_error(
        fmt::format("new-plugin: cannot read {}: {}", from.string(), file_error_text(errno)));
  std::string text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  text = replace_all(std::move(text), "ACME", upper(name));
  text = replace_all(std::move(text), "acme", name);
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(text))};
  if (const int error = replace_file(to.string(), parts))
    throw std::runtime_error(
        fmt::format("new-plugin: cannot write {}: {}", to.string(), file_error_text(error)));
}

// Copies all files of the template, or none.
void copy_files(const fs::path& from, const fs::path& to, const std::string& name) {
  const auto files = names_in_folder(from.string());
  if (!files)
    throw std::runtime_error(
        fmt::format("new-plugin: cannot read {}: {}", from.string(), file_error_text(errno)));
  try {
    for (const std::string& file : *files) copy_file(from / file, to / file, name);
  } catch (...) {
    std::error_code ignored;
    for (const std::string& file : *files) fs::remove(to / file, ignored);
    throw;
  }
}

void make_project(const std::string& name, const std::string& language, const fs::path& directory) {
  const fs::path from = template_directory(language);
  std::error_code error;
  if (fs::exists(directory) && !(fs::is_directory(directory) && fs::is_empty(directory, error)))
    throw std::runtime_error(
        fmt::format("new-plugin: {} is there and not an empty directory; name another with --dir",
                    directory.string()));
  const bool is_new = fs::create_directories(directory, error);
  if (error)
    throw std::runtime_error(
        fmt::format("new-plugin: cannot make {}: {}", directory.string(), error.message()));
  try {
    copy_files(from, directory, name);
  } catch (...) {
    if (is_new) fs::remove(directory, error);
    throw;
  }
}

std::string quoted(const std::string& text) {
  const bool is_plain = std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("/._-+").find(c) != std::string_view::npos;
  });
  return is_plain ? text : "'" + replace_all(text, "'", "'\\''") + "'";
}

// True if CMake finds this plugrad by PATH: it searches the folder above each "bin" there.
bool is_found_by_path() {
  const char* path = std::getenv("PATH");
  std::error_code ignored;
  for (std::string_view rest = path ? path : ""; !rest.empty();) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
    if (fs::path(folder).filename() == "bin" && fs::equivalent(folder, prefix() / "bin", ignored))
      return true;
  }
  return false;
}

void print_next_steps(const std::string& name, const fs::path& directory) {
  const std::string where = quoted(directory.string()),
                    build = quoted((directory / "build").string());
  const std::string library =
      quoted((directory / "build" / ("libplugrad_plugin_" + name + ".so")).string());
  const std::string found =
      is_found_by_path() ? "" : " -DCMAKE_PREFIX_PATH=" + quoted(prefix().string());
  fmt::print(
      "{} holds the plugin {} for the device {}. It builds and passes level L1 as it is:\n\n"
      "  cmake -S {} -B {}{} && cmake --build {}\n"
      "  plugrad conformance --plugin {} --level L1\n\n"
      "Then put your device in, place by place: grep -n FILL {}/*\n",
      where, name, upper(name), where, build, found, build, library, where);
}

}  // namespace

Syntax new_plugin_syntax() {
  namespace po = boost::program_options;
  Syntax syntax{.usage = "plugrad new-plugin NAME [--lang c|cpp] [--dir DIR] [--json]",
                .words = "name",
                .choices = {{"lang", {"c", "cpp"}}},
                .paths = {"dir"}};
  syntax.options.add_options()("lang", po::value<std::string>()->default_value("c"),
                               "language of the project: c or cpp");
  syntax.options.add_options()("dir", po::value<std::string>(),
                               "directory to make; default: ./NAME");
  syntax.options.add_options()("json", "one JSON document");
  return syntax;
}

int run_new_plugin(const Arguments& arguments) {
  const Syntax syntax = new_plugin_syntax();
  const Parsed parsed = parse(arguments, syntax);
  if (parsed.help) return kSuccess;
  const auto words = parsed.get<std::vector<std::string>>("name");
  if (words.size() != 1)
    throw UsageError("new-plugin: give one name, such as: plugrad new-plugin acme");
  const std::string& name = words[0];
  const std::string language = parsed.get<std::string>("lang");
  if (language != "c" && language != "cpp")
    throw UsageError(
        fmt::format("new-plugin: there is no template in \"{}\"{}; there are c and cpp", language,
                    did_you_mean(language, {"c", "cpp"})));
  check_name(name);
  const fs::path directory = parsed.has("dir") ? parsed.get<std::string>("dir") : name;
  if (directory.empty()) throw UsageError("new-plugin: --dir is empty");
  make_project(name, language, directory);
  if (parsed.has("json"))
    print_json({{"name", name},
                {"device", upper(name)},
                {"language", language},
                {"directory", directory.string()}});
  else
    print_next_steps(name, directory);
  return kSuccess;
}

}  // namespace plugrad::tools

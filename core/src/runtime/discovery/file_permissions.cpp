#include "runtime/discovery/file_permissions.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/settings.h"

namespace plugrad::runtime {
namespace {

namespace fs = std::filesystem;

}  // namespace

bool is_trusted(const std::string& path) {
  std::vector<std::string> named = split_paths(settings().trust_plugins);
  return std::any_of(named.begin(), named.end(), [&](const std::string& item) {
    std::error_code error;
    return !is_bare_name(item) && (fs::equivalent(item, path, error) ||
                                   fs::equivalent(item, fs::path(path).parent_path(), error));
  });
}

std::string unsafe_permissions(const std::string& path) {
  for (const fs::path& p : {fs::path(path), fs::path(path).parent_path()}) {
    std::error_code error;
    fs::perms perms = fs::status(p, error).permissions();
    if (error) return fmt::format("{}: {}", p.string(), error.message());
    if ((perms & fs::perms::others_write) != fs::perms::none && !is_trusted(path))
      return fmt::format("{} can be written by everybody", p.string());
  }
  return "";
}

std::vector<std::string> split_paths(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin <= text.size();) {
    std::size_t colon = std::min(text.find(':', begin), text.size());
    if (colon > begin) out.push_back(text.substr(begin, colon - begin));
    begin = colon + 1;
  }
  return out;
}

bool is_bare_name(const std::string& path) {
  return path.find('/') == path.npos;
}

}  // namespace plugrad::runtime

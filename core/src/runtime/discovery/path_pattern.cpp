#include "runtime/discovery/path_pattern.h"

#include <dirent.h>
#include <sys/stat.h>

#include <memory>

namespace plugrad::runtime {
namespace {

constexpr int kMostEntries = 10000;  // more than any folder of /dev or /sys on a large machine

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

bool is_in_class(std::string_view list, char c) {
  const bool is_negated = !list.empty() && (list[0] == '!' || list[0] == '^');
  if (is_negated) list.remove_prefix(1);
  bool is_in = false;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i + 2 < list.size() && list[i + 1] == '-') {
      is_in |= list[i] <= c && c <= list[i + 2];
      i += 2;
    } else {
      is_in |= list[i] == c;
    }
  }
  return is_in != is_negated;
}

// Whether the pattern's part at `at`, which is no star, matches `c`; then moves `at` behind it.
bool takes(std::string_view pattern, std::size_t& at, char c) {
  if (at >= pattern.size() || pattern[at] == '*') return false;
  if (pattern[at] == '[') {
    // A bracket at the start of a list belongs to the list.
    const std::size_t end = pattern.find(']', at + (pattern.substr(at + 1, 1) == "!" ? 3 : 2));
    if (end != pattern.npos) {
      const bool is_in = is_in_class(pattern.substr(at + 1, end - at - 1), c);
      if (is_in) at = end + 1;
      return is_in;
    }
  }
  const bool is_same = pattern[at] == '?' || pattern[at] == c;
  if (is_same) ++at;
  return is_same;
}

bool exists(const std::string& folder, std::string_view rest, int& entries_left) {
  while (rest.starts_with('/')) rest.remove_prefix(1);
  struct stat info;
  if (rest.empty()) return lstat(folder.c_str(), &info) == 0;
  const std::string_view part = rest.substr(0, rest.find('/'));
  rest.remove_prefix(part.size());
  if (part.find_first_of("*?[") == part.npos)
    return exists(folder + "/" + std::string(part), rest, entries_left);
  const std::unique_ptr<DIR, CloseFolder> open(opendir((folder + "/").c_str()));
  while (open && entries_left > 0) {
    const dirent* entry = readdir(open.get());
    if (!entry) break;
    --entries_left;
    const std::string name = entry->d_name;
    if (name != "." && name != ".." && matches_name(name, part) &&
        exists(folder + "/" + name, rest, entries_left))
      return true;
  }
  return false;
}

}  // namespace

bool matches_name(std::string_view name, std::string_view pattern) {
  return (!name.starts_with('.') || pattern.starts_with('.')) &&
         matches_stars(name, pattern, takes);
}

bool matches_stars(std::string_view text, std::string_view pattern,
                   bool (*takes)(std::string_view pattern, std::size_t& at, char c)) {
  std::size_t t = 0, p = 0, star = pattern.npos, retry = 0;
  while (t < text.size()) {
    if (takes(pattern, p, text[t])) {
      ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (star != pattern.npos) {  // extend the match of the last star
      p = star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == pattern.npos;
}

bool path_pattern_exists(const std::string& pattern) {
  int entries_left = kMostEntries;
  return pattern.starts_with('/') && exists("", pattern, entries_left);
}

}  // namespace plugrad::runtime

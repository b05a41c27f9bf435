#include "conformance/selection.h"

#include <algorithm>

namespace plugrad::conformance {
namespace {

bool matches_one(std::string_view glob, std::string_view id) {
  size_t g = 0, i = 0, star = glob.npos, retry = 0;
  while (i < id.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      retry = i;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == id[i])) {
      ++g;
      ++i;
    } else if (g == glob.size() && id[i] == '.') {
      return true;  // the id is below the group that the glob names
    } else if (star != glob.npos) {
      g = star + 1;
      i = ++retry;
    } else {
      return false;
    }
  }
  return glob.substr(g).find_first_not_of('*') == glob.npos;
}

}  // namespace

bool matches(std::string_view globs, std::string_view id) {
  while (true) {
    const size_t comma = std::min(globs.find(','), globs.size());
    if (comma > 0 && matches_one(globs.substr(0, comma), id)) return true;
    if (comma == globs.size()) return false;
    globs.remove_prefix(comma + 1);
  }
}

bool selects(std::span<const Level> levels, std::string_view filter, bool full, Level level,
             std::string_view id) {
  // A quick run checks correctness; speed is measured on request.
  const bool has_level = levels.empty()
                             ? level != Level::Perf || full || !filter.empty()
                             : std::find(levels.begin(), levels.end(), level) != levels.end();
  return has_level && (filter.empty() || matches(filter, id));
}

}  // namespace plugrad::conformance

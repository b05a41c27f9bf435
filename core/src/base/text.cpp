#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace plugrad {
namespace {

// Number of letters to insert, drop, replace or swap with a neighbour.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      std::size_t replace = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({replace, d[i - 1][j] + 1, d[i][j - 1] + 1});
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
  std::string wanted = upper(name), best;
  std::size_t best_distance = std::max<std::size_t>(wanted.size() / 3, 1) + 1;
  for (const std::string& candidate : candidates) {
    const auto [shorter, longer] = std::minmax({wanted.size(), candidate.size()});
    if (longer - shorter >= best_distance) continue;
    std::size_t distance = edit_distance(wanted, upper(candidate));
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = candidate;
  }
  return best;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

}  // namespace plugrad

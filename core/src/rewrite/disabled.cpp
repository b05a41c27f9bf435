#include "rewrite/disabled.h"

#include <algorithm>

#include "base/text.h"

namespace plugrad {

std::vector<std::string_view> names_of(std::string_view list) {
  std::vector<std::string_view> names;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    names.push_back(trimmed(list.substr(begin, end - begin)));
    begin = end + 1;
  }
  return names;
}

bool is_listed(std::string_view list, std::string_view name) {
  return std::ranges::count(names_of(list), name) != 0;
}

}  // namespace plugrad

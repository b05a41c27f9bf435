#include "rewrite/disabled.h"

#include <algorithm>

#include "base/text.h"

namespace plugrad {

bool is_listed(std::string_view list, std::string_view name) {
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    if (trimmed(list.substr(begin, end - begin)) == name) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace plugrad

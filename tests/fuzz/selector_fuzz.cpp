// An arbitrary device list is parsed, or refused by a User error that shows the text; the positions
// of parsed parts lie within the text.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "plugrad/error.h"
#include "runtime/discovery/selection.h"

namespace {

// A text that the pattern always matches.
std::string without_stars(std::string text) {
  std::erase(text, '*');
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plugrad;
  using namespace plugrad::runtime;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Selection parsed = parse_selection(text, "DEV");
    if (parsed.prefer.empty() && parsed.exclude.empty()) __builtin_trap();
    for (const auto* list : {&parsed.prefer, &parsed.exclude})
      for (const DeviceChoice& c : *list) {
        if (c.offset + c.length > size || c.which_offset + c.which_length > size) __builtin_trap();
        if (c.plugin.empty() && !c.index && c.name_glob.empty() && c.uuid_glob.empty())
          __builtin_trap();
        if (size < 256 && !matches_glob(without_stars(c.name_glob), c.name_glob)) __builtin_trap();
      }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::User) __builtin_trap();
    const auto is_plain = [](std::string_view part) {
      return std::ranges::all_of(part, [](char c) { return c >= 0x20 && c <= 0x7e; });
    };
    std::string shown = error.what();
    std::erase(shown, '\n');
    if (!is_plain(shown)) __builtin_trap();
    if (size <= 64 && is_plain(text) && shown.find(text) == shown.npos) __builtin_trap();
  }
  return 0;
}

// An arbitrary device list is parsed, or refused by a User error that shows the text; the positions
// of parsed parts lie within the text.
#include <cstdint>
#include <string>
#include <string_view>

#include "plugrad/error.h"
#include "runtime/discovery/selection.h"
#include "runtime/plugin_text.h"

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
    std::string shown = sanitise_text(text);
    for (char& c : shown)
      if (c == '\n' || c == '\t') c = '?';
    if (shown.size() != size) __builtin_trap();
    if (std::string_view(error.what()).find(shown) == std::string_view::npos) __builtin_trap();
  }
  return 0;
}

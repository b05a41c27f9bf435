// The grammar for naming devices in DEV, PLUGRAD_VISIBLE_DEVICES, Tensor::to and the command line.
//   list  := item (',' item)*            ordered by preference
//   item  := ['!'] where                 '!' excludes
//   where := plugin [':' which] | which  plugin: a device name as users type it, in any case
//   which := number | 'name=' glob | 'uuid=' glob
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad::runtime {

/// One item of a list. Empty `plugin`: any plugin.
struct DeviceChoice {
  std::string plugin;  // upper case, aliases resolved: CPU
  std::optional<std::uint32_t> index;
  std::string name_glob, uuid_glob;
  // Positions in the text, for messages: of the plugin (or which), and of which (or the plugin).
  std::size_t offset = 0, length = 0;
  std::size_t which_offset = 0, which_length = 0;
};

struct Selection {
  std::string text, source;  // as given, and its source: "DEV"
  std::vector<DeviceChoice> prefer;
  std::vector<DeviceChoice> exclude;
};

/// Errors: User, with the text, a caret line below the mistake, and the valid alternatives.
Selection parse_selection(std::string_view text, std::string_view source);

/// Throws User: message, the selection's text, a caret line below [offset, offset + length),
/// `advice`.
[[noreturn]] void refuse_selection(std::string_view text, std::size_t offset, std::size_t length,
                                   std::string_view message, std::string_view advice);

/// "1 device: 0", "3 devices: 0 to 2".
std::string device_numbers(std::size_t count);

/// Upper case; CLANG becomes CPU and GPU becomes OPENCL.
std::string canonical_device_name(std::string_view name);

/// `*` matches any text and `?` one character; case-insensitive.
bool matches_glob(std::string_view text, std::string_view glob);

}  // namespace plugrad::runtime

// The one grammar by which devices are named: DEV, PLUGRAD_VISIBLE_DEVICES, Tensor::to and the
// command line.
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

/// One item of a list. Empty `plugin`: any.
struct DeviceChoice {
  std::string plugin;  // upper case, aliases resolved: CPU
  std::optional<std::uint32_t> index;
  std::string name_glob, uuid_glob;
  // Places in the text, for messages: of the plugin (or which), and of which (or the plugin).
  std::size_t offset = 0, length = 0;
  std::size_t which_offset = 0, which_length = 0;
};

struct Selection {
  std::string text, source;  // as given, and by what: "DEV"
  std::vector<DeviceChoice> prefer;
  std::vector<DeviceChoice> exclude;
};

/// Errors: User, with the text, a caret line under the place, and what is valid there.
Selection parse_selection(std::string_view text, std::string_view source);

/// Throws User: message, the selection's text, a caret line under [offset, offset + length), then
/// `advice`.
[[noreturn]] void refuse_selection(std::string_view text, std::size_t offset, std::size_t length,
                                   std::string_view message, std::string_view advice);

/// "1 device: 0", "3 devices: 0 to 2".
std::string device_numbers(std::size_t count);

/// Upper case; CLANG is CPU and GPU is OPENCL.
std::string canonical_device_name(std::string_view name);

/// `*` stands for any text and `?` for one character; letter case does not count.
bool matches_glob(std::string_view text, std::string_view glob);

}  // namespace plugrad::runtime

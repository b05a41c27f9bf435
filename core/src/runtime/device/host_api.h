// The table of everything that a plugin may use of its host: log, memory, threads, disk cache,
// components.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plugrad/plugin_api/plugin.h"

namespace plugrad::runtime {

/// A table for the library at `library_path` (a plugin or a component), valid until the process
/// ends. Where its components are looked for depends on it.
const pgr_host_api* host_api_for(const std::string& library_path);

/// The library or program that holds this code, and its directory; empty when it cannot be told.
std::string own_file();
std::string own_directory();

/// Where the library at `library_path` finds a component; empty when it finds none.
std::string component_path(const std::string& library_path, std::string_view component);

/// The table of a component's interface, as the host function open_component gives it to the
/// library at `library_path`; null with a reason.
const void* open_component_for(const std::string& library_path, const std::string& component,
                               const std::string& interface_name, std::string& reason);

/// Opens a library with RTLD_NOW | RTLD_LOCAL, for ever, and gives the address of `symbol`; null
/// with a reason.
void* open_library_symbol(const std::string& path, const char* symbol, std::string& reason);

}  // namespace plugrad::runtime

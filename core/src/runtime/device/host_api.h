// The table of host functions for plugins: log, memory, threads, disk cache, components.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plugrad/plugin_api/plugin.h"

namespace plugrad::runtime {

/// The table for the library at `library_path` (a plugin or a component), valid until the process
/// ends. Its components are searched relative to this path.
const pgr_host_api* host_api_for(const std::string& library_path);

/// The library or program with this code, and its directory; empty if unknown.
std::string own_file();
std::string own_directory();

/// Inode, size and time of the file: a library that is rebuilt or reinstalled has another identity.
/// "-" if there is no file.
std::string library_identity(const std::string& path);

/// The path at which the library at `library_path` finds a component; empty if there is none.
std::string component_path(const std::string& library_path, std::string_view component);

/// The table of a component's interface for the library at `library_path`, as by the host function
/// open_component; null with a reason.
const void* open_component_for(const std::string& library_path, const std::string& component,
                               const std::string& interface_name, std::string& reason);

/// Opens a library with RTLD_NOW | RTLD_LOCAL, never closes it, and returns the address of
/// `symbol`; null with a reason.
void* open_library_symbol(const std::string& path, const char* symbol, std::string& reason);

}  // namespace plugrad::runtime

// Decides which files are safe to load as code.
#pragma once

#include <string>
#include <vector>

namespace plugrad::runtime {

/// Empty, or why a library at `path` is unsafe to open: the file or its directory is world-writable
/// and not listed in PLUGRAD_TRUST_PLUGINS.
std::string unsafe_permissions(const std::string& path);

/// Whether PLUGRAD_TRUST_PLUGINS lists the file or its directory.
bool is_trusted(const std::string& path);

/// Parts of "a:b" without empty ones, which mean the current directory in other tools.
std::vector<std::string> split_paths(const std::string& text);

/// Whether the text has no '/'. Bare names are not searched for.
bool is_bare_name(const std::string& path);

}  // namespace plugrad::runtime

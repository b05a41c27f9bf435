// Which files are safe to open as code.
#pragma once

#include <string>
#include <vector>

namespace plugrad::runtime {

/// Empty, or why a library at `path` is not safe to open: it or the directory it stands in can be
/// written by everybody, and PLUGRAD_TRUST_PLUGINS names neither.
std::string unsafe_permissions(const std::string& path);

/// Whether PLUGRAD_TRUST_PLUGINS names the file or the directory it stands in.
bool is_trusted(const std::string& path);

/// Parts of "a:b", without the empty ones, which in other tools mean the current directory.
std::vector<std::string> split_paths(const std::string& text);

/// Whether the text has no '/': such a name is looked for nowhere.
bool is_bare_name(const std::string& path);

}  // namespace plugrad::runtime

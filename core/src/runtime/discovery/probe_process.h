// Opens a library first in a child process, the first time it is seen: a constructor or entry that
// ends or blocks its process then only affects the child.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace plugrad::runtime {

/// Runs `open` in a forked child without output. Returns how the child ended badly; empty if it
/// ended well or could not be created. In a process with other threads, a child that does not end
/// in time is tried again once.
std::string outcome_in_child(const std::function<void()>& open, std::uint32_t limit_ms);

/// outcome_in_child for a library file, cached: a good outcome in the disk cache under the file's
/// identity, a timeout for an hour. Skips files listed in PLUGRAD_TRUST_PLUGINS.
std::string outcome_in_probe_process(const std::string& path, const std::function<void()>& open,
                                     std::uint32_t limit_ms);

}  // namespace plugrad::runtime

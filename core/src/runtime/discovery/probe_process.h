// A library that was never opened here before is opened in a child process first: what ends or
// stops a process inside a constructor or the entry ends the child instead.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace plugrad::runtime {

/// Runs `open` in a forked child without output and gives what became of the child: empty, or how
/// it ended. Where no child can be made, empty.
std::string outcome_in_child(const std::function<void()>& open, std::uint32_t limit_ms);

/// outcome_in_child for a library file, once: a good outcome is kept in the disk cache under the
/// file's identity, no answer within the limit for an hour. Nothing is tried for a file that
/// PLUGRAD_TRUST_PLUGINS names.
std::string outcome_in_probe_process(const std::string& path, const std::function<void()>& open,
                                     std::uint32_t limit_ms);

}  // namespace plugrad::runtime

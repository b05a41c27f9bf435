// How this process was started: by the launcher of an MPI, or alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/settings.h"

namespace plugrad {

struct Launch {
  std::string launcher;               ///< "mpiexec of MPICH (PMI_SIZE)"; empty: none
  std::uint32_t rank = 0, size = 1;   ///< size 0: the launcher does not say
  std::vector<std::string> adapters;  ///< those that fit, the likeliest first: "mpich"
};

/// Errors: User if the launcher's variables contradict each other.
Launch detect_launch(const Environment& environment);

/// That of this process; alone if the launcher's variables contradict each other, which
/// distributed::init() reports.
Launch launch_of_process();

}  // namespace plugrad

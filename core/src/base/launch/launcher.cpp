#include "base/launch/launcher.h"

#include <array>
#include <charconv>

#include "base/check.h"

namespace plugrad {
namespace {

struct Row {
  const char* name;
  const char* rank;
  const char* size;  // null: there is none
  std::array<const char*, 3> adapters;
};

// The first row whose variables are set counts: launchers that start others set several.
constexpr Row kLaunchers[] = {
    {"mpirun of Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", {"openmpi", "abi"}},
    {"mpiexec of MPICH", "PMI_RANK", "PMI_SIZE", {"mpich", "abi"}},
    {"srun with PMIx", "PMIX_RANK", "SLURM_STEP_NUM_TASKS", {"openmpi", "abi"}},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", {"mpich", "openmpi", "abi"}},
    {"srun", "SLURM_PROCID", "SLURM_NTASKS", {"mpich", "openmpi", "abi"}},
    {"a launcher with PMIx", "PMIX_RANK", nullptr, {"openmpi", "abi"}},
};

std::uint32_t number_of(const char* name, const std::string& text) {
  std::uint32_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(
      code == std::errc() && end == text.data() + text.size(),
      "[distributed::init] the launcher's variable {}=\"{}\" is no number; start the program by "
      "mpirun or srun, or unset it",
      name, text);
  return value;
}

}  // namespace

Launch detect_launch(const Environment& environment) {
  for (const Row& row : kLaunchers) {
    const auto rank = environment(row.rank);
    const auto size = row.size ? environment(row.size) : std::optional<std::string>("0");
    if (!rank || !size) continue;
    Launch launch{.launcher = row.size ? fmt::format("{} ({}={})", row.name, row.size, *size)
                                       : fmt::format("{} ({}={})", row.name, row.rank, *rank),
                  .rank = number_of(row.rank, *rank),
                  .size = row.size ? number_of(row.size, *size) : 0,
                  .adapters = {}};
    for (const char* adapter : row.adapters)
      if (adapter) launch.adapters.emplace_back(adapter);
    if (!row.size) return launch;
    require(launch.rank < launch.size,
            "[distributed::init] {}={}, but {}={}; start the program by mpirun or srun, or unset "
            "both",
            row.rank, *rank, row.size, *size);
    return launch;
  }
  return {};
}

Launch launch_of_process() {
  try {
    return detect_launch(environment_variable);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace plugrad

#include "base/launch/launcher.h"

#include <gmock/gmock.h>

#include <map>

#include "plugrad/error.h"

namespace plugrad {
namespace {

using testing::ElementsAre;

Launch detect(const std::map<std::string, std::string>& variables) {
  return detect_launch([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(Launcher, NoneIsRankZeroOfOne) {
  const Launch launch = detect({{"PMI_FD", "7"}, {"SLURM_JOB_ID", "1"}});
  EXPECT_EQ(launch.launcher, "");
  EXPECT_EQ(launch.rank, 0u);
  EXPECT_EQ(launch.size, 1u);
}

TEST(Launcher, HydraIsThatOfMpich) {
  const Launch launch = detect({{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}});
  EXPECT_EQ(launch.rank, 2u);
  EXPECT_EQ(launch.size, 4u);
  EXPECT_THAT(launch.adapters, ElementsAre("mpich", "abi"));
  EXPECT_EQ(launch.launcher, "mpiexec of MPICH (PMI_SIZE=4)");
}

// Open MPI sets PMIx's variables too.
TEST(Launcher, OpenMpiNamesItself) {
  const Launch launch =
      detect({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "3"}, {"PMIX_RANK", "1"}});
  EXPECT_EQ(launch.size, 3u);
  EXPECT_THAT(launch.adapters, ElementsAre("openmpi", "abi"));
}

// The job has 8 tasks, the step that started this process has 2.
TEST(Launcher, SrunCountsTheTasksOfTheStep) {
  const std::map<std::string, std::string> job{{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "8"}};
  EXPECT_EQ(detect(job).size, 8u);
  std::map<std::string, std::string> step = job;
  step["SLURM_STEP_NUM_TASKS"] = "2";
  EXPECT_EQ(detect(step).size, 2u);
  EXPECT_THAT(detect(step).adapters, ElementsAre("mpich", "openmpi", "abi"));
  step["PMIX_RANK"] = "1";
  EXPECT_THAT(detect(step).adapters, ElementsAre("openmpi", "abi"));
}

TEST(Launcher, OfPmixMayNotSayTheSize) {
  EXPECT_EQ(detect({{"PMIX_RANK", "5"}}).size, 0u);
}

TEST(Launcher, WrongVariablesAreNamed) {
  const auto error_of = [](const std::map<std::string, std::string>& variables) {
    try {
      detect(variables);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_THAT(error_of({{"PMI_RANK", "x"}, {"PMI_SIZE", "4"}}),
              testing::HasSubstr("PMI_RANK=\"x\" is no number"));
  EXPECT_THAT(error_of({{"PMI_RANK", "4"}, {"PMI_SIZE", "4"}}),
              testing::HasSubstr("PMI_RANK=4, but PMI_SIZE=4"));
}

}  // namespace
}  // namespace plugrad

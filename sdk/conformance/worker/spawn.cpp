#include "conformance/worker/spawn.h"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

namespace plugrad::conformance {

pid_t spawn(const SpawnPlan& plan) {
  std::vector<char*> pointers;
  for (const std::string& word : plan.words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, plan.output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, plan.output, STDERR_FILENO);
  for (const auto& [ours, theirs] : plan.files)
    posix_spawn_file_actions_adddup2(&actions, ours, theirs);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  if (plan.leads_group) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t process = -1;
  const int error =
      ::posix_spawn(&process, pointers[0], &actions, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error)
    throw std::runtime_error(plan.words[0] + " cannot be started: " + std::strerror(error));
  return process;
}

}  // namespace plugrad::conformance

// What the system says about the processes of other ranks on this machine.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace plugrad::distributed {

/// Where a process runs, and which one it is there.
struct ProcessPlace {
  std::string machine;  ///< equal for processes that see each other
  std::int32_t pid = 0;
};
ProcessPlace own_place();

enum class Liveness { Runs, IsStopped, HasEnded, Unknown };
/// Of a process that `here`, the place of this process, may see. Unknown on another machine.
Liveness liveness(const ProcessPlace& here, const ProcessPlace& there);

/// From now on, an abort() by the calling thread makes it wait for ever in place of ending the
/// process: an MPI library that loses a rank may abort(), and this process shall report the loss.
/// Other threads abort as before.
void survive_aborts_of_this_thread();
/// Whether the thread of survive_aborts_of_this_thread() called abort().
bool has_aborted();

}  // namespace plugrad::distributed

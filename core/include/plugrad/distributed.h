/// Programs of several processes, started by mpirun or srun. docs/distributed.md is the guide.
#pragma once

#include "plugrad/export.h"

namespace plugrad::distributed {

/// Joins the processes that the launcher has started: call it once in each, at the program's start.
/// Opens the launcher's MPI (the setting PLUGRAD_MPI names another); without a launcher the program
/// is rank 0 of 1, and no MPI is needed. Blocks until all ranks have called it. When the program
/// ends, it waits for the other ranks.
/// Errors: User if it was called before, also before a fork; if there is no MPI for the launcher;
/// if the launcher is of another MPI; if ranks run different programs or versions of plugrad, or on
/// machines of different byte order. Device if MPI fails, or ranks are missing for too long.
PLUGRAD_API void init();

/// Whether init() has succeeded in this process.
PLUGRAD_API bool is_initialized();

/// The number of this process, from 0. Errors: User before init().
PLUGRAD_API int rank();

/// The number of processes. Errors: User before init().
PLUGRAD_API int size();

/// Waits until every rank has called it. Errors: User before init(), or if another rank has started
/// another collective; Device if a rank is lost, or not there within PLUGRAD_COLLECTIVE_SECONDS.
PLUGRAD_API void barrier();

}  // namespace plugrad::distributed

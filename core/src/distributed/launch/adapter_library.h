// Finds and opens the library that knows the program's MPI.
#pragma once

#include <string>

#include "base/launch/launcher.h"
#include "distributed/mpi_adapter.h"

namespace plugrad::distributed {

/// The adapter for the launcher's MPI, or for the one that `wanted` names (the setting
/// PLUGRAD_MPI): mpich, openmpi, abi, or the path of an MPI library.
/// Errors: User if there is no such adapter, or no MPI that it can use.
const plugrad_mpi_api& open_adapter(const Launch& launch, const std::string& wanted);

}  // namespace plugrad::distributed

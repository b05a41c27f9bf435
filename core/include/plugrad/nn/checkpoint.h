/// Sharded checkpoints: a folder with a file of each process, and an index. docs/sharding.md
/// describes the files.
///   nn::save_sharded(net, "checkpoint");  // in all processes
///   nn::load_sharded(net, "checkpoint");  // on any mesh, by any number of processes
#pragma once

#include <string>
#include <vector>

#include "plugrad/nn/state.h"

namespace plugrad::nn {

/// Saves a state in a folder, which is created if its parent exists. Each process writes the parts
/// of sharded tensors that it has; what several have is written by one of them. All processes of
/// the program call it, with tensors of the same names; tensors on no mesh must be equal in all.
/// The folder is one that all see. It has the former checkpoint until this one is complete: a
/// process that is killed at any time leaves one of the two.
/// Errors: in every process, with the rank, the file and the reason, if one of them fails (User or
/// Device); then the folder is as before. User as well for two tensors of one name, tensors on no
/// mesh that differ, another save to the folder at the same time, and in a jitted function.
PLUGRAD_API void save_sharded(const StateDict& state, const std::string& folder);
/// Of a module, an optimiser, or a struct of both.
template <class Module>
void save_sharded(const Module& module, const std::string& folder) {
  save_sharded(state_dict(module), folder);
}

/// Reads a sharded checkpoint into the tensors of the same names, as load_state() does. The tensors
/// keep their device or their mesh and spec, which may be others than when it was saved. A process
/// reads the bytes of its own parts alone. If one of the tensors is on a mesh, all processes call it.
/// Errors: User, with the file and the reason, in every process if one of them fails; then nothing
/// is assigned. As load_state() for differences when Strict.
PLUGRAD_API std::vector<StateDifference> load_sharded(const StateDict& state,
                                                      const std::string& folder,
                                                      Loading loading = Loading::Strict);
template <class Module>
std::vector<StateDifference> load_sharded(const Module& module, const std::string& folder,
                                          Loading loading = Loading::Strict) {
  return load_sharded(state_dict(module), folder, loading);
}

}  // namespace plugrad::nn

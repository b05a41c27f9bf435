// The step of a program, from its trace: the tensor graph as it was recorded on one device.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace plugrad::tools::scale {

enum class Role : uint8_t {
  Parameter,  ///< a weight, which the step assigns
  State,      ///< of the optimiser, of the shape of a parameter
  Batch,      ///< dimension 0 is cut along the axes of the batch
  Other       ///< every device has all of it
};
const char* name_of(Role role);

/// An input of the step.
struct Leaf {
  Id node = kNoId;
  std::vector<int64_t> shape;
  DType dtype = DType::F32;
  Role role = Role::Other;
  std::optional<size_t> root;       ///< the result that replaces it
  std::optional<size_t> parameter;  ///< of State: index of its leaf
  std::optional<size_t> group;      ///< of Parameter: index into Program::groups

  uint64_t bytes() const;
};

/// Parameters of one shape that are used alike, e.g. in each block of a transformer: all get one
/// spec.
struct Group {
  std::vector<int64_t> shape;
  DType dtype = DType::F32;
  std::vector<size_t> leaves;

  uint64_t bytes = 0;  ///< of all of them
};

/// Measured on one device, by the runs of a plan in a trace.
struct Measured {
  std::string device;  ///< the name of its hardware
  /// Median of a launch, by the kernel's operations and bytes, which identify it in the plan.
  std::map<std::pair<double, double>, double> kernel_seconds = {};
  double host_seconds = 0;  ///< median time between kernels of one run
};

struct Program {
  Graph graph;
  std::vector<Id> roots;
  std::vector<Leaf> leaves;  ///< by input number
  std::vector<Group> groups;
  std::vector<std::pair<Id, size_t>>
      to_state;       ///< values that an optimiser moves to where the state of the leaf lies
  int64_t plan = 0;   ///< number in the trace
  int64_t batch = 0;  ///< size of dimension 0 of the inputs with Role::Batch
  std::optional<Measured> measured;
};

struct ProgramOptions {
  std::optional<int64_t> plan = {};   ///< its number; none: the one that assigns most inputs
  std::optional<int64_t> batch = {};  ///< none: the size that most inputs share
  std::map<size_t, Role> roles = {};  ///< by input number, in place of those found
};

/// A plan of a trace, with the runs of its kernels.
struct TracedPlan {
  int64_t id = 0;
  std::string recorded;           ///< textual IR
  std::vector<int64_t> replaces;  ///< by root: input; -1: none
  std::optional<Measured> measured;
};

/// The plans of a trace that have their recorded graph. Errors: User, if the file is no trace or
/// none of its plans has one.
std::vector<TracedPlan> read_plans(const std::string& path);

/// Errors: User, if no plan assigns inputs, the program was on several devices, or an option names
/// something that is not there.
Program program_of(const std::vector<TracedPlan>& plans, const ProgramOptions& options);

}  // namespace plugrad::tools::scale

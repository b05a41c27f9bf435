// The stages in which a network of an ONNX file is judged, each in a process of its own:
//   record    runs the file on the device under test and records its calls, a trace and the outputs
//   launches  repeats the recorded launches on the device and compares each with another device
//   outputs   runs the file on the other device and compares the outputs
// They share a folder, and write one JSON document a line to their parent.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "models.h"
#include "models/inputs.h"

namespace plugrad::tools {

struct NetworkTarget {
  ModelTarget device;
  std::string model;     ///< path of the file
  std::string folder;    ///< that the stages share
  std::string expected;  ///< device of the expected values; empty: chosen by the work
  std::string keep;      ///< folder for launches that differ
  Names sizes, inputs;   ///< of --size and --input
  uint64_t seed = 0;
  std::set<uint64_t> left_out;  ///< numbers of kernels that are not run on the device
};

/// Axes that a model leaves open: 1 for the first, which is the batch in most models, and 64 for the
/// others: strides of up to 64 divide it, and kernels stay small enough for REFERENCE.
inline int64_t open_axis_size(size_t axis) {
  return axis == 0 ? 1 : 64;
}

inline constexpr const char* kStages[] = {"record", "launches", "outputs"};

/// Runs a stage in this process.
void record_network(const NetworkTarget& target);
void judge_launches(const NetworkTarget& target);
void compare_outputs(const NetworkTarget& target);

/// The arguments of a child that runs a stage, and the child. run_stage() returns its exit code.
std::vector<std::string> stage_arguments(const char* stage, const NetworkTarget& target);
int run_stage(const Arguments& arguments);

/// Writes one line to the parent.
void tell(const nlohmann::json& line);

/// Ends the process by SIGALRM while it lives longer than its time: a device that hangs.
class TimeLimit {
 public:
  explicit TimeLimit(double seconds);
  ~TimeLimit();
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;
};

}  // namespace plugrad::tools

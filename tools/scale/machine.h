// A machine that a program is planned for: devices, their links, and the networks between nodes.
// docs/scale.md describes the file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "plugrad/dtype.h"
#include "schedule/schedule.h"

namespace plugrad::tools::scale {

/// How collectives use a link.
enum class Algorithm : uint8_t {
  Ring,   ///< p - 1 messages one after another around a ring, twice for an all-reduce
  Direct  ///< each member sends to all others at once, as plugrad's backend on MPI does
};

struct Link {
  double bytes_per_second = 0;
  double latency_seconds = 0;  ///< of one message
  Algorithm algorithm = Algorithm::Ring;
};

/// Shares of peak rates, from 0 to 1.
struct Efficiency {
  double matrix = 1, vector = 1, memory = 1;
};

struct Device {
  std::string name;
  double memory_bytes = 0;
  double memory_rate = 0;                    ///< bytes a second
  double vector_rate = 0;                    ///< f32 operations a second
  std::map<DType, double> matrix_rate = {};  ///< operations a second on tensor cores, by factor
  double launch_seconds = 0;                 ///< of one kernel
  Efficiency efficiency = {};
  schedule::Options planning = {};  ///< limits and sizes that the scheduler fits plans to
  bool is_gpu = true;
};

struct Machine {
  std::string name;
  Device device;
  uint32_t nodes = 1, devices_per_node = 1;
  Link link;     ///< of one device to the others of its node
  Link network;  ///< of one node to the others
  /// Shares of a device's own rates when all devices of a node work.
  double shared_compute = 1, shared_memory = 1;

  uint32_t devices() const { return nodes * devices_per_node; }
};

/// Errors: User, naming `source` and the key: unknown or missing keys, numbers that are not
/// positive, shares above 1.
Machine parse_machine(std::string_view json, const std::string& source);
/// `arch`: of a CPU, as its plugin names it.
std::string to_json(const Machine& machine, std::string_view arch);

/// The machine of a file, or of the shipped file of that name. Errors: User; for an unknown name
/// with the names that are shipped.
Machine read_machine(const std::string& name_or_path);
/// Names of the shipped files.
std::vector<std::string> shipped_machines();

}  // namespace plugrad::tools::scale

// Random tensor programs: steps on variables, recorded so that they can be repeated, shrunk and
// printed.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace plugrad::programs {

struct Operation;

/// Output `output` of the step with that id.
struct Variable {
  int step = 0, output = 0;
  auto operator<=>(const Variable&) const = default;
};

/// One call: which variables it takes and the numbers that were drawn for it. Ids stay when steps
/// around it are removed.
struct Step {
  int id = 0;
  const Operation* operation = nullptr;
  std::vector<Variable> inputs;
  std::vector<int64_t> numbers;
};

/// Over which mesh of devices the values lie.
enum class Spread : uint8_t { No, Two, Four, TwoByTwo, Processes, TwoAProcess };

struct Program {
  uint64_t seed = 0;
  std::string device;
  bool noopt = false;
  bool together = false;  ///< realises the final reads in one plan
  Spread spread = Spread::No;
  std::vector<Step> steps;
};

}  // namespace plugrad::programs

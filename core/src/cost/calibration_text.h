// A calibration as the text of a file: who was measured, and each figure. Nothing in it is trusted.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cost/machine.h"

namespace plugrad::cost {

/// One figure of a Machine that calibration may replace, and what may be believed of it.
struct Field {
  std::string name;
  double& (*of)(Machine& machine);
  double least, most;
};
std::span<const Field> fields();

/// Empty where each figure is a number within its bounds; else the first that is not.
std::string problem_of(const Machine& machine);

/// `identity` is of the device: architecture, stable id, name, target; one line.
std::string to_text(const Machine& machine, std::string_view identity);

/// `table` with the figures of the text; nothing, and why, where the text is damaged, of another
/// machine or claims what cannot be.
std::optional<Machine> parse_calibration(std::string_view text, std::string_view identity,
                                         const Machine& table, std::string& problem);

}  // namespace plugrad::cost

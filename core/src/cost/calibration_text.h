// Converts a calibration to and from the text of a file: the device and each figure. The parser
// trusts nothing in it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cost/machine.h"

namespace plugrad::cost {

/// A figure of a Machine that calibration may replace, with its plausible range.
struct Field {
  std::string name;
  double& (*of)(Machine& machine);
  double least, most;
};
std::span<const Field> fields();

/// Empty if each figure is a number within its bounds; else the first that is not.
std::string problem_of(const Machine& machine);

/// `identity`: one line that describes the device: architecture, stable id, name, target.
std::string to_text(const Machine& machine, std::string_view identity);

/// `table` with the figures of the text; nothing, and `problem`, if the text is damaged, belongs to
/// another machine or has implausible figures.
std::optional<Machine> parse_calibration(std::string_view text, std::string_view identity,
                                         const Machine& table, std::string& problem);

}  // namespace plugrad::cost

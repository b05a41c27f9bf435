// Makes programs, runs them against the evaluator, and shrinks failing ones.
#pragma once

#include <optional>
#include <string>

#include "programs/program.h"

namespace plugrad::programs {

/// The same seed gives the same program everywhere, as long as the tables stay.
Program make_program(uint64_t seed);

/// The share of computed values that was compared.
struct Coverage {
  uint64_t elements = 0, exact = 0, unknown = 0;
};

/// The difference or the thrown error; empty if the program is correct.
std::optional<std::string> run(const Program& program, Coverage* coverage = nullptr);

/// A program that still fails, with as few steps as removing and replacing them finds.
Program shrink(const Program& program);

/// One line a step, with shapes and dtypes.
std::string to_text(const Program& program);

}  // namespace plugrad::programs

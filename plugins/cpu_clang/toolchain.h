// Inputs of the compilation besides the source.
#pragma once

#include <string>
#include <string_view>

#include "cpu_facts.h"

namespace plugrad::cpu_clang {

// Increment when flags, passes or the entry's signature change, to invalidate cached binaries.
#define PLUGRAD_CPU_REVISION "4"

// Text of all features of this machine that the code may use.
std::string machine_text(const CpuFacts& cpu);

// The object inside a binary; throws BAD_BINARY if it is damaged or compiled for another machine.
std::string_view require_object(std::string_view binary, const CpuFacts& cpu);

}  // namespace plugrad::cpu_clang

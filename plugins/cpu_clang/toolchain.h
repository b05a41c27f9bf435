// What the compiled code depends on.
#pragma once

#include <string>
#include <string_view>

#include "cpu_facts.h"

namespace plugrad::cpu_clang {

// Raised when flags, passes or the entry's signature change, so that cached binaries are made anew.
#define PLUGRAD_CPU_REVISION "4"

// Everything about this machine that the code may rely on, as text.
std::string machine_text(const CpuFacts& cpu);

// The object inside a binary; BAD_BINARY where it is damaged or another machine's.
std::string_view require_object(std::string_view binary, const CpuFacts& cpu);

}  // namespace plugrad::cpu_clang

// Calls of functions that a plugin's own code must not make, seen by the worker program: it defines
// these functions itself, and the dynamic linker takes its. What a driver under the plugin does is
// told apart by who called.
#pragma once

#include <cstddef>

namespace plugrad::conformance {

struct InterposedCall {
  const char* function;  // "getenv"
  const void* caller;    // an address in who called, behind the C and C++ libraries
  char argument[64];
};

}  // namespace plugrad::conformance

// The calls since the process began, at most `capacity`; returns how many there were. Only programs
// that link interposed.cpp have it.
extern "C" size_t plugrad_interposed_calls(plugrad::conformance::InterposedCall* calls,
                                           size_t capacity) __attribute__((weak));

// From now on what libraries other than `plugin` print is dropped.
extern "C" void plugrad_mute_drivers(const char* plugin) __attribute__((weak));

// Records calls of functions that a plugin must not call. The worker program defines these
// functions, and the dynamic linker resolves to them. The caller's address separates the plugin's
// calls from those of a driver.
#pragma once

#include <cstddef>

namespace plugrad::conformance {

struct InterposedCall {
  const char* function;  // "getenv"
  const void* caller;    // address in the caller, outside the C and C++ libraries
  char argument[64];
};

}  // namespace plugrad::conformance

// Writes the recorded calls, at most `capacity`, and returns their total number. Defined only in
// programs that link interposed.cpp.
extern "C" size_t plugrad_interposed_calls(plugrad::conformance::InterposedCall* calls,
                                           size_t capacity) __attribute__((weak));

// Precedes what the plugin printed, as far as the calls show it.
inline constexpr const char* plugrad_plugin_mark = "[plugin] ";

// Drops the output of all libraries other than `plugin` from now on, and marks the plugin's.
extern "C" void plugrad_mute_drivers(const char* plugin) __attribute__((weak));

// Instruction sets to which a bench run can be restricted, for plugrad and the peers.
#pragma once

#include <dlfcn.h>

#include <span>
#include <string>
#include <vector>

namespace plugrad::bench {

struct Isa {
  const char* name;    ///< value of --isa: "v3"
  const char* target;  ///< value of PLUGRAD_CPU_TARGET: "x86-64-v3"
  int level;           ///< of x86-64; peers that use a higher level are not compared
  std::vector<std::string>
      environment;  ///< "NAME=text", variables that restrict the peers' libraries
};

constexpr int kAnyLevel = 5;  ///< level of an unknown instruction set, and of "native"

std::span<const Isa> isas();
/// The instruction set of settings().cpu_target, which peers also use.
const Isa& chosen_isa();

/// The instruction set that a library reports.
struct RunningIsa {
  std::string name = "not told";
  int level = kAnyLevel;
};

/// A function of a loaded library; null if the library lacks it.
template <class Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

/// The instruction set of a loaded library: "openblas", "blis" or "onednn". Restricts BLIS, which
/// accepts no name, to the chosen one first.
RunningIsa isa_of_library(const std::string& name, void* library);

}  // namespace plugrad::bench

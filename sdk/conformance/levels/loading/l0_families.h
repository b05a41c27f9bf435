// The groups of L0 tests.
#pragma once

#include <span>

#include "conformance/levels/loading/fresh_process.h"
#include "conformance/test.h"

namespace plugrad::conformance {

void add_library_tests(Tests& tests);    // symbols, note, manifest
void add_hello_tests(Tests& tests);      // negotiation
void add_interface_tests(Tests& tests);  // query_interface, opening and closing devices
void add_clamp_tests(Tests& tests);      // structs of every size, chains
void add_process_tests(Tests& tests);    // effects of the plugin on its process

// Checks that run in fresh processes.
std::span<const FreshCheck> hello_checks();
std::span<const FreshCheck> process_checks();

}  // namespace plugrad::conformance

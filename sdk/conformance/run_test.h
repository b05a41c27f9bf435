// Runs one test in this process.
#pragma once

#include "conformance/test.h"

namespace plugrad::conformance {

// Unsupported if the plugin lacks the test's claim or requirement; an exception determines the
// status. The caller handles crashes and hangs.
TestResult run_test(const Test& test, Context& context);

// True if the plugin offers an interface ("pgr.queue") or a function ("pgr.allocator map").
bool offers(Plugin& plugin, std::string_view interface_and_function);

// nullptr for an unknown test.
const Test* find_test(std::string_view id);

}  // namespace plugrad::conformance

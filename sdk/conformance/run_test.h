// One test in this process.
#pragma once

#include "conformance/test.h"

namespace plugrad::conformance {

// Unsupported where the plugin lacks what the test claims or needs; what the test throws decides
// the status. Crashes and hangs are the caller's business.
TestResult run_test(const Test& test, Context& context);

// Whether the plugin offers an interface ("pgr.queue") or a function ("pgr.allocator map").
bool offers(Plugin& plugin, std::string_view interface_and_function);

// nullptr for no such test.
const Test* find_test(std::string_view id);

}  // namespace plugrad::conformance

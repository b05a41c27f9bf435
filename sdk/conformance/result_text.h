// Encodes a result as a message between processes.
#pragma once

#include <string>

#include "plugrad/sdk/conformance.h"

namespace plugrad::conformance {

std::string encode_result(const TestResult& result);
// Throws std::runtime_error for malformed text.
TestResult decode_result(const std::string& text);

}  // namespace plugrad::conformance

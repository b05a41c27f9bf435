// Errors in axis patterns (einsum, rearrange): prints the pattern with a caret below the position.
#pragma once

#include <string>
#include <string_view>

#include "base/check.h"

namespace plugrad::tensor {

/// Throws a User error: "[function] message", the pattern, and a caret below its byte `at`.
[[noreturn]] inline void fail_pattern(std::string_view function, std::string_view pattern,
                                      size_t at, const std::string& message) {
  fail(ErrorKind::User, "[{}] {}\n  {}\n  {}^", function, message, pattern, std::string(at, ' '));
}

}  // namespace plugrad::tensor

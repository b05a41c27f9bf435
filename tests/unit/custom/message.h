// Returns the message of an error, for tests of bad input.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "plugrad/error.h"

namespace plugrad::test {

inline std::string message_of(const std::function<void()>& run, ErrorKind kind = ErrorKind::User) {
  try {
    run();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  return "nothing was thrown";
}

}  // namespace plugrad::test

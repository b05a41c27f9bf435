#include "plugrad/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"

using namespace plugrad;

TEST(Check, RequireThrowsAUserErrorWithTheFormattedMessage) {
  try {
    require(1 > 2, "[sum] axis {} is out of range for rank {}", 3, 2);
    FAIL() << "did not throw";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::User);
    EXPECT_STREQ(e.what(), "[sum] axis 3 is out of range for rank 2");
  }
}

TEST(Check, ConditionsThatHoldThrowNothing) {
  EXPECT_NO_THROW(require(true, "never {}", 1));
  EXPECT_NO_THROW(ensure(true));
  EXPECT_NO_THROW(ensure(true, "never {}", 1));
}

TEST(Check, EnsureNamesItsOwnPlace) {
  std::string plain, formatted;
  int line = __LINE__;
  try { ensure(false); } catch (const Error& e) { plain = e.what(); EXPECT_EQ(e.kind(), ErrorKind::Internal); }
  try { ensure(false, "id {}", 7); } catch (const Error& e) { formatted = e.what(); }
  EXPECT_THAT(plain, testing::HasSubstr(fmt::format("error_test.cpp:{}", line + 1)));
  EXPECT_THAT(formatted, testing::HasSubstr(fmt::format("error_test.cpp:{}", line + 2)));
  EXPECT_THAT(formatted, testing::HasSubstr("id 7"));
}

TEST(ErrorKinds, HaveNames) {
  EXPECT_STREQ(to_string(ErrorKind::User), "user");
  EXPECT_STREQ(to_string(ErrorKind::Device), "device");
  EXPECT_EQ(OutOfMemoryError(64, "[alloc] 64 bytes").kind(), ErrorKind::Device);
}

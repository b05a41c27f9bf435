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
  auto message_of = [](auto f) -> std::string {
    try {
      f();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::Internal);
      return e.what();
    }
    return "no error";
  };
  int line = __LINE__ + 1;
  std::string plain = message_of([] { ensure(false); });
  std::string formatted = message_of([] { ensure(false, "id {}", 7); });
  EXPECT_THAT(plain, testing::HasSubstr(fmt::format("error_test.cpp:{}", line)));
  EXPECT_THAT(formatted, testing::HasSubstr(fmt::format("error_test.cpp:{}", line + 1)));
  EXPECT_THAT(formatted, testing::HasSubstr("id 7"));
}

TEST(ErrorKinds, HaveNames) {
  EXPECT_STREQ(to_string(ErrorKind::User), "user");
  EXPECT_STREQ(to_string(ErrorKind::Device), "device");
  EXPECT_EQ(OutOfMemoryError(64, "[alloc] 64 bytes").kind(), ErrorKind::Device);
}

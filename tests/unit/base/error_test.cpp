#include "plugrad/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/check.h"
#include "base/internal.h"
#include "base/log.h"

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

// Names from files or plugins must not move the cursor, clear the screen or set the terminal's
// title.
TEST(Printable, ErrorsAndLogLinesHaveNoBytesThatATerminalObeys) {
  const std::string name =
      "w\033[2J\033]0;title\a\r\b\x7f\xff\xc2\x9b"
      "eight µ\n\tx";
  const std::string shown = "w?[2J?]0;title???????eight µ\n\tx";
  EXPECT_EQ(Error(ErrorKind::User, name).what(), shown);
  EXPECT_EQ(OutOfMemoryError(1, name).what(), shown);
  EXPECT_EQ(CompileError(name, name, name).what(), shown);
  EXPECT_EQ(CompileError(name, name, name).source(), name) << "for programs, not for terminals";
  std::string seen;
  set_log_sink([](std::string_view t, void* c) { *static_cast<std::string*>(c) += t; }, &seen);
  log_line(LogLevel::Warning, name);
  set_log_sink(nullptr, nullptr);
  EXPECT_EQ(seen, "plugrad: warning: " + shown + "\n");
}

// Characters without width make two names look alike; a mark of direction turns a line around.
TEST(Printable, InvisibleCharactersAreShown) {
  EXPECT_STREQ(Error(ErrorKind::User, "\"we\u200bight\u202e\ufeff\" é 日 \U0001f600").what(),
               "\"we???ight??????\" é 日 \U0001f600");
}

TEST(Printable, ALongMessageIsBoundedAndSaysWhatIsLeftOut) {
  std::string lines = "[load_state_dict] 20000 tensors do not fit";
  for (int i = 0; i < 20'000; ++i) lines += "\n  weight " + std::to_string(i);
  const std::string said = Error(ErrorKind::User, lines).what();
  EXPECT_EQ(std::ranges::count(said, '\n'), 400);
  EXPECT_THAT(said, testing::HasSubstr("weight 378\n… (19601 lines left out)\n  weight 19980\n"));
  EXPECT_THAT(said, testing::EndsWith("weight 19999"));
  const std::string line = Error(ErrorKind::User, std::string(100'000, 'x') + "end").what();
  EXPECT_LT(line.size(), 9000u);
  EXPECT_THAT(line, testing::HasSubstr(" … (91811 bytes left out) … xxx"));
  EXPECT_THAT(line, testing::EndsWith("xend"));
  EXPECT_EQ(CompileError(lines, lines, lines).log(), lines) << "whole, for programs";
}

TEST(Release, ALibraryOfAnotherReleaseIsRefused) {
  EXPECT_NO_THROW(require_core_release("libplugrad_onnx.so", PLUGRAD_RELEASE));
  try {
    require_core_release("libplugrad_onnx.so", "0.9.0");
    FAIL() << "did not throw";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::User);
    EXPECT_THAT(e.what(), testing::HasSubstr("libplugrad_onnx.so is of plugrad 0.9.0"));
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

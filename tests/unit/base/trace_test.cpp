#include "base/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/settings.h"
#include "unit/base/temporary_directory.h"

using namespace plugrad;

TEST(Trace, EachEventIsAJsonObjectOfChromesFormat) {
  static TemporaryDirectory directory;
  trace_instant("rewrite", "before the path is set");
  SettingScope scope([](Settings& s) { s.trace_path = directory / "trace.json"; });
  ASSERT_TRUE(tracing());
  trace_span("stage", "expand", monotonic_ns() - 5000, {{"kernel", "r_4_4"}, {"nodes", 12}});
  trace_instant("rewrite", "mul-one",
                {{"from", 41}, {"to", 7}, {"at", "a\"\\\n.cpp:3"}, {"x", 0.5}});
  flush_trace();
  auto bytes = read_file(directory / "trace.json");
  ASSERT_TRUE(bytes);
  std::string text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  text.erase(text.rfind(','));
  auto events = nlohmann::json::parse(text + "]");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0]["name"], "expand");
  EXPECT_EQ(events[0]["ph"], "X");
  EXPECT_GE(events[0]["dur"].get<double>(), 5.0);
  EXPECT_EQ(events[0]["args"]["nodes"], 12);
  EXPECT_EQ(events[1]["cat"], "rewrite");
  EXPECT_EQ(events[1]["args"]["at"], "a\"\\\n.cpp:3");
  EXPECT_EQ(events[1]["args"]["x"], 0.5);
}

TEST(Log, VisibleWidthSkipsColourAndCountsCharacters) {
  EXPECT_EQ(visible_width("\033[34mab\033[0mc"), 3u);
  EXPECT_EQ(visible_width("µs"), 2u);
}

TEST(Log, LevelsFollowDebug) {
  std::string seen;
  set_log_sink([](std::string_view t, void* c) { *static_cast<std::string*>(c) += t; }, &seen);
  log_line(LogLevel::Info, "quiet");
  log_line(LogLevel::Warning, "always");
  {
    SettingScope scope([](Settings& s) { s.debug = 1; });
    log_line(LogLevel::Info, "shown");
    log_line(LogLevel::Debug, "still quiet");
  }
  set_log_sink(nullptr, nullptr);
  EXPECT_EQ(seen, "plugrad: warning: always\nplugrad: shown\n");
}

TEST(Trace, ALimitOfFileSizesDoesNotEndTheProcess) {
  static TemporaryDirectory directory;
  const pid_t child = fork();
  if (child == 0) {
    const rlimit small{100, 100};
    setrlimit(RLIMIT_FSIZE, &small);
    signal(SIGXFSZ, SIG_DFL);
    change_settings([](Settings& s) { s.trace_path = directory / "small.json"; });
    for (int i = 0; i < 10; ++i) trace_instant("rewrite", "some rule with a name");
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
}

TEST(File, ReadingAFifoEndsAtOnce) {
  TemporaryDirectory directory;
  ASSERT_EQ(mkfifo((directory / "fifo").c_str(), 0600), 0);
  EXPECT_FALSE(read_file(directory / "fifo"));
  EXPECT_EQ(errno, ENOTSUP);
  EXPECT_FALSE(read_file("/dev/zero"));
  EXPECT_FALSE(read_file(directory.path()));
  EXPECT_EQ(errno, EISDIR);
  ASSERT_EQ(
      truncate((std::ofstream(directory / "sparse"), directory / "sparse").c_str(), off_t{1} << 40),
      0);
  EXPECT_FALSE(read_file(directory / "sparse"));
  EXPECT_EQ(errno, EFBIG);
  EXPECT_TRUE(read_file("/proc/self/status"));
}

TEST(File, MappingNamesTheFileAndTheReason) {
  TemporaryDirectory directory;
  try {
    MappedFile file(directory / "absent", "load");
    FAIL();
  } catch (const std::exception& e) {
    EXPECT_EQ(e.what(),
              "[load] cannot open " + (directory / "absent") + ": No such file or directory");
  }
  EXPECT_THROW(MappedFile(directory.path(), "load"), std::exception);
}

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
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/settings.h"
#include "unit/base/temporary_directory.h"

using namespace plugrad;

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

namespace {

void trace_ten_events() {
  for (int i = 0; i < 10; ++i) trace_instant("rewrite", "some rule with a name");
}

// The log of a process that traces to `path`; its end by a signal is a failure. A process has one
// trace, so each test starts a process.
std::string log_of_tracing(
    const std::string& path, const std::function<void()>& before = [] {},
    const std::function<void()>& body = trace_ten_events) {
  TemporaryDirectory directory;
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    before();
    // the trace is closed after static objects are destroyed
    auto* const log = new std::string(directory / "log");
    set_log_sink(
        [](std::string_view text, void* to) {
          std::ofstream(*static_cast<std::string*>(to), std::ios::app) << text;
        },
        log);
    change_settings([&](Settings& s) { s.trace_path = path; });
    body();
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  std::ifstream log(directory / "log");
  return {std::istreambuf_iterator<char>(log), {}};
}

}  // namespace

TEST(Trace, EachEventIsAJsonObjectOfChromesFormat) {
  TemporaryDirectory directory;
  const auto before = [] { trace_instant("rewrite", "before the path is set"); };
  const std::string log = log_of_tracing(directory / "trace.json", before, [] {
    if (!tracing()) _exit(1);
    trace_span("stage", "expand", monotonic_ns() - 5000, {{"kernel", "r_4_4"}, {"nodes", 12}});
    trace_instant("rewrite", "mul-one",
                  {{"from", 41}, {"to", 7}, {"at", "a\"\\\n.cpp:3"}, {"x", 0.5}});
    flush_trace();
    _exit(0);  // no exit handler writes the rest
  });
  EXPECT_EQ(log, "");
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

TEST(Trace, ALimitOfFileSizesDoesNotEndTheProcess) {
  TemporaryDirectory directory;
  const std::string path = directory / "small.json";
  log_of_tracing(path, [] {
    const rlimit small{100, 100};
    setrlimit(RLIMIT_FSIZE, &small);
    signal(SIGXFSZ, SIG_DFL);
  });
  EXPECT_EQ(std::filesystem::file_size(path), 100u);
}

// The trace is written continuously; its file follows the rules of replace_file, implemented
// elsewhere.
TEST(Trace, WhatIsNoRegularFileIsRefusedAtOnce) {
  TemporaryDirectory directory;
  ASSERT_EQ(mkfifo((directory / "fifo").c_str(), 0600), 0);
  std::filesystem::create_symlink("fifo", directory / "link");
  for (const std::string& path : {directory / "fifo", directory / "link", std::string("/dev/full")})
    EXPECT_THAT(log_of_tracing(path),
                testing::HasSubstr("cannot write PLUGRAD_TRACE=" + path +
                                   ": it is a device, pipe or socket, not a regular file"));
  EXPECT_TRUE(std::filesystem::is_fifo(directory / "fifo"));
}

TEST(Trace, ALinkIsFollowed) {
  TemporaryDirectory directory;
  std::filesystem::create_symlink("target", directory / "link");
  EXPECT_EQ(log_of_tracing(directory / "link"), "");
  EXPECT_TRUE(std::filesystem::is_symlink(directory / "link"));
  EXPECT_TRUE(read_file(directory / "target"));
}

TEST(Trace, AFileThatCouldNotBeWrittenWholeIsTold) {
  TemporaryDirectory directory;
  const std::string path = directory / "full.json";
  const std::string log = log_of_tracing(path, [] {
    const rlimit some{300, 300};
    setrlimit(RLIMIT_FSIZE, &some);
    signal(SIGXFSZ, SIG_DFL);
  });
  EXPECT_THAT(log, testing::HasSubstr("PLUGRAD_TRACE=" + path + " is not whole: File too large"));
}

TEST(File, ReadingAFifoEndsAtOnce) {
  TemporaryDirectory directory;
  ASSERT_EQ(mkfifo((directory / "fifo").c_str(), 0600), 0);
  EXPECT_FALSE(read_file(directory / "fifo"));
  EXPECT_EQ(errno, ENOTSUP);
  EXPECT_FALSE(read_file("/dev/zero"));
  EXPECT_EQ(errno, ENOTSUP);
  EXPECT_EQ(file_error_text(ENOTSUP), file_error_text(kNotRegular));
  EXPECT_FALSE(read_file(directory.path()));
  EXPECT_EQ(errno, EISDIR);
  ASSERT_EQ(
      truncate((std::ofstream(directory / "sparse"), directory / "sparse").c_str(), off_t{1} << 40),
      0);
  EXPECT_FALSE(read_file(directory / "sparse"));
  EXPECT_EQ(errno, EFBIG);
  EXPECT_TRUE(read_file("/proc/self/status"));
  std::ofstream(directory / "five") << "bytes";
  EXPECT_EQ(read_file(directory / "five", 5)->size(), 5u);
  EXPECT_FALSE(read_file(directory / "five", 4));
  EXPECT_EQ(errno, EFBIG);
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

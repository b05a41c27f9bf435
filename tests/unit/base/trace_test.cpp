#include "base/trace/trace.h"

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
#include <numeric>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/settings.h"
#include "base/trace/call_site.h"
#include "base/trace/json_line.h"
#include "plugrad/source_scope.h"
#include "unit/base/temporary_directory.h"
#include "unit/base/trace_lines.h"
#include "unit/base/traced_process.h"

using namespace plugrad;
using nlohmann::json;

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

TEST(Trace, AnEventIsAnElementOfEachColumn) {
  TemporaryDirectory directory;
  const std::string path = directory / "t.trace";
  EXPECT_EQ(
      log_of_tracing(
          path, [] {},
          [] {
            const uint64_t now = monotonic_ns();
            for (uint64_t i = 0; i < 3; ++i)
              trace::record(trace::Launch{7, 9, now + 100 * i, 40 + i, now + 100 * i - 30, 2, 5});
            trace::record(trace::Launch{7, 9, now + 50, 1, 0, 0, -1});
            trace::record(trace::Copy{8, trace::Direction::Out, 4096, now, 10});
            trace::record(trace::Memory{1, now, 300, 100, -200, 77});
          }),
      "");
  auto lines = trace_lines(path);
  ASSERT_EQ(lines["trace"].size(), 1u);
  EXPECT_EQ(lines["trace"][0]["version"], 1);
  EXPECT_EQ(lines["trace"][0]["rules"], false);
  ASSERT_EQ(lines["events"].size(), 3u);
  const json& launches = lines["events"][0];
  EXPECT_EQ(launches["kind"], "launch");
  const json& columns = launches["columns"];
  EXPECT_EQ(columns["start"][1], 100);
  EXPECT_EQ(columns["start"][3], -150);  // the difference to the one before
  EXPECT_EQ(columns["duration"], (json{40, 41, 42, 1}));
  EXPECT_EQ(columns["submit"], (json{30, 30, 30, 0}));
  EXPECT_EQ(columns["plan"], (json{2, 2, 2, 0}));
  EXPECT_EQ(columns["step"], (json{5, 5, 5, -1}));
  EXPECT_EQ(lines["events"][1]["columns"]["direction"], json{1});
  EXPECT_EQ(lines["events"][2]["columns"]["change"], json{-200});
  ASSERT_EQ(lines["end"].size(), 1u);
  EXPECT_EQ(lines["end"][0]["launches"], 4);
  EXPECT_EQ(lines["end"][0]["copied_bytes"], 4096);
  EXPECT_EQ(lines["end"][0]["dropped"], 0);
}

TEST(Trace, ACollectiveIsOnATrackOfItsOwn) {
  TemporaryDirectory directory;
  const std::string path = directory / "t.trace";
  log_of_tracing(
      path, [] {},
      [] {
        const uint64_t now = monotonic_ns();
        const uint32_t track = trace::collectives_track();
        trace::record(
            trace::Collective{track, CollectiveKind::AllGather, 4096, 3, now, 500, 200, 7, 11});
        trace::record(trace::Collective{trace::collectives_track(), CollectiveKind::AllReduce, 8, 1,
                                        now + 90, 60, 0, 7, 12});
        trace::record(trace::Wait{trace::thread_track(), 0, now + 300, 200});
      });
  auto lines = trace_lines(path);
  ASSERT_EQ(lines["track"].size(), 2u);
  const json& track = lines["track"][0];
  EXPECT_EQ(track["kind"], "collectives");
  EXPECT_EQ(track["device"], 0);
  ASSERT_EQ(lines["events"].size(), 2u);
  EXPECT_EQ(lines["events"][1]["kind"], "collective");
  const json& columns = lines["events"][1]["columns"];
  EXPECT_EQ(columns["track"], (json{track["id"], track["id"]}));
  EXPECT_EQ(columns["collective"], (json{2, 0}));
  EXPECT_EQ(columns["bytes"], (json{4096, 8}));
  EXPECT_EQ(columns["values"], (json{3, 1}));
  EXPECT_EQ(columns["start"][1], 90);
  EXPECT_EQ(columns["duration"], (json{500, 60}));
  EXPECT_EQ(columns["waited"], (json{200, 0}));
  EXPECT_EQ(columns["plan"], (json{7, 7}));
  EXPECT_EQ(columns["step"], (json{11, 12}));
  EXPECT_EQ(lines["events"][0]["columns"]["device"], json{0});
}

void set_rank(const char* rank, const char* ranks) {
  ::setenv("PMI_RANK", rank, 1);
  ::setenv("PMI_SIZE", ranks, 1);
}

TEST(Trace, EachRankHasAFileOfItsOwn) {
  TemporaryDirectory directory;
  const std::string path = directory / "t.trace";
  EXPECT_EQ(log_of_tracing(path, [] { set_rank("0", "3"); }), "");
  EXPECT_EQ(log_of_tracing(path, [] { set_rank("2", "3"); }), "");
  const json first = trace_lines(path)["trace"][0],
             third = trace_lines(path + ".rank2")["trace"][0];
  EXPECT_EQ(first["rank"], 0);
  EXPECT_EQ(first["ranks"], 3);
  EXPECT_EQ(third["rank"], 2);
  EXPECT_FALSE(std::filesystem::exists(path + ".rank0"));
}

TEST(Log, LinesOfSeveralProcessesBeginWithTheirRank) {
  TemporaryDirectory directory;
  const auto lines = [] {
    debug_write("CPU one\nCPU two\n");
    debug_write("\rdrawn anew");
  };
  const std::string path = directory / "t.trace";
  EXPECT_EQ(log_of_tracing(
                path, [] { set_rank("2", "3"); }, lines),
            "rank 2: CPU one\nrank 2: CPU two\n\rdrawn anew");
  EXPECT_EQ(
      log_of_tracing(path, [] { set_rank("0", "1"); }, lines), "CPU one\nCPU two\n\rdrawn anew");
  EXPECT_EQ(
      log_of_tracing(path, [] { set_rank("5", "2"); }, lines), "CPU one\nCPU two\n\rdrawn anew");
}

TEST(Trace, VariablesOfALauncherThatContradictEachOtherAreIgnored) {
  TemporaryDirectory directory;
  const std::string path = directory / "t.trace";
  EXPECT_EQ(log_of_tracing(path, [] { set_rank("5", "2"); }), "");
  EXPECT_EQ(trace_lines(path)["trace"][0]["rank"], 0);
  EXPECT_EQ(trace_lines(path)["trace"][0]["ranks"], 1);
}

TEST(Trace, WhatWasFlushedSurvivesACrash) {
  TemporaryDirectory directory;
  const std::string path = directory / "t.trace";
  const auto before = [] { trace::Scope before_the_path_is_set(trace::Category::Run, "early"); };
  log_of_tracing(path, before, [] {
    if (!tracing()) _exit(1);
    trace_ten_spans();
    flush_trace();
    trace_ten_spans();
    _exit(0);  // no exit handler writes the rest
  });
  auto lines = trace_lines(path);
  EXPECT_GE(events_in(lines["events"]), 10u);  // the writer may write more before the end
  EXPECT_EQ(lines["name"].size(), 1u);
  EXPECT_EQ(lines["name"][0]["text"], "expand");
  EXPECT_TRUE(lines["end"].empty());
}

TEST(Trace, AFileAtItsLimitKeepsDefinitionsAndTheNewestEvents) {
  TemporaryDirectory directory;
  const std::string path = directory / "t.trace";
  constexpr uint64_t kEvents = 200'000, kLimit = 100'000;
  EXPECT_EQ(log_of_tracing(
                path, [] { change_settings([](Settings& s) { s.trace_limit_bytes = kLimit; }); },
                [] {
                  trace::define(trace::JsonLine("kernel").add("id", 9).str());
                  for (uint64_t i = 0; i < kEvents; ++i) {
                    trace::record(trace::Launch{1, 9, 1000 * i, i % 997, 0, 0, -1});
                    if (i % 10'000 == 0) flush_trace();
                  }
                }),
            "");
  EXPECT_LE(std::filesystem::file_size(path), kLimit);
  auto lines = trace_lines(path);
  EXPECT_EQ(lines["kernel"].size(), 1u);
  const size_t kept = events_in(lines["events"]);
  EXPECT_GT(kept, 1000u);
  int64_t last_start = INT64_MIN;
  for (const json& block : lines["events"]) {
    EXPECT_LT(last_start, block["columns"]["start"][0]);
    last_start = block["columns"]["start"][0];
  }
  EXPECT_EQ(lines["end"][0]["dropped"].get<size_t>() + kept, kEvents);
  const json last = lines["events"].back()["columns"]["duration"].back();
  EXPECT_EQ(last, (kEvents - 1) % 997);
}

TEST(Trace, AProgramThatFindsTheFileInUseTakesAnotherName) {
  TemporaryDirectory directory;
  const std::string path = directory / "t.trace";
  const std::string log = log_of_tracing(
      path,
      [&] {
        const pid_t first = fork();  // before this process opens the trace
        if (first != 0) {
          while (!std::filesystem::exists(directory / "ready")) usleep(1000);
          return;
        }
        change_settings([&](Settings& s) { s.trace_path = path; });
        trace_ten_spans();
        flush_trace();
        std::ofstream(directory / "ready") << "";
        sleep(1);
        std::exit(0);
      },
      [] {
        for (int i = 0; i < 3; ++i) trace::span(trace::Category::Run, "run", monotonic_ns());
      });
  EXPECT_THAT(log,
              testing::HasSubstr("is being written by another program; this trace is " + path));
  size_t suffixed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
    if (const std::string file = entry.path().string(); file.starts_with(path + ".")) {
      ++suffixed;
      EXPECT_EQ(events_in(trace_lines(file)["events"]), 3u);
    }
  EXPECT_EQ(suffixed, 1u);
  EXPECT_EQ(events_in(trace_lines(path)["events"]), 10u);
}

TEST(Trace, AForkedChildDoesNotWriteTheTraceOfItsParent) {
  TemporaryDirectory directory;
  const std::string path = directory / "t.trace";
  log_of_tracing(
      path, [] {},
      [] {
        trace_ten_spans();
        const pid_t child = fork();
        if (child == 0) {
          alarm(20);
          // no exit(): the search for leaks waits for a lock that the writer may hold at the fork
          std::quick_exit(tracing() ? 1 : 0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        if (status != 0) _exit(1);
      });
  auto lines = trace_lines(path);
  EXPECT_EQ(events_in(lines["events"]), 10u);
  EXPECT_EQ(lines["end"].size(), 1u);
}

TEST(Trace, AnOperationNamesTheLineOfTheProgram) {
  TemporaryDirectory directory;
  const std::string path = directory / "t.trace";
  log_of_tracing(
      path, [] {},
      [] {
        const SourceScope scope("model.py", 12, "forward");
        const uint32_t first = trace::operation("matmul");
        const uint32_t again = trace::operation("matmul");
        if (first != again || trace::derivative_of(first) == first) _exit(1);
      });
  auto lines = trace_lines(path);
  ASSERT_EQ(lines["operation"].size(), 2u);
  EXPECT_EQ(lines["operation"][0]["file"], "model.py");
  EXPECT_EQ(lines["operation"][0]["line"], 12);
  EXPECT_EQ(lines["operation"][0]["function"], "forward");
  EXPECT_EQ(lines["operation"][1]["name"], "matmul backward");
}

TEST(Trace, TheInnermostScopeCounts) {
  TemporaryDirectory directory;
  const std::string path = directory / "t.trace";
  log_of_tracing(
      path, [] {},
      [] {
        const SourceScope outer("model.py", 1, "outer");
        {
          const SourceScope inner("model.py", 2, "inner");
          trace::operation("exp");
        }
        const uint32_t backward = trace::derivative_of(trace::operation("exp"));
        if (trace::derivative_of(backward) != backward) _exit(1);
        if (trace::derivative_of(12345) != 12345) _exit(2);
      });
  auto lines = trace_lines(path);
  ASSERT_EQ(lines["operation"].size(), 3u);
  EXPECT_EQ(lines["operation"][0]["function"], "inner");
  EXPECT_EQ(lines["operation"][1]["function"], "outer");
  EXPECT_EQ(lines["operation"][2]["name"], "exp backward");
}

TEST(Trace, ASpanThatBeganBeforeTheTraceIsNotRecorded) {
  TemporaryDirectory directory;
  const std::string path = directory / "t.trace";
  log_of_tracing(
      path, [] {},
      [&] {
        change_settings([](Settings& s) { s.trace_path = ""; });
        const trace::Scope early(trace::Category::Run, "early");
        change_settings([&](Settings& s) { s.trace_path = path; });
        const trace::Scope late(trace::Category::Run, "late");
      });
  auto lines = trace_lines(path);
  ASSERT_EQ(lines["name"].size(), 1u);
  EXPECT_EQ(lines["name"][0]["text"], "late");
  EXPECT_EQ(lines["track"].at(0)["name"], "main");
}

TEST(Trace, TotalsSumUpWaitsAndRewrites) {
  TemporaryDirectory directory;
  const std::string path = directory / "t.trace";
  log_of_tracing(
      path, [] {},
      [] {
        for (int i = 0; i < 3; ++i) trace::record(trace::Wait{1, 2, monotonic_ns(), 5});
        trace::count_rewrites(4);
        trace::count_rewrites(5);
      });
  const json end = trace_lines(path)["end"].at(0);
  EXPECT_EQ(end["waits"], 3);
  EXPECT_EQ(end["rewrites"], 9);
}

TEST(Trace, WhatDevicesStillHaveIsCollectedByAFlushAndAtTheEnd) {
  TemporaryDirectory directory;
  const std::string path = directory / "t.trace";
  log_of_tracing(
      path, [] {},
      [] {
        trace::before_writing([] { trace::record(trace::Wait{1, 2, monotonic_ns(), 5}); });
        flush_trace();
      });
  EXPECT_EQ(trace_lines(path)["end"].at(0)["waits"], 2);
}

TEST(Trace, AFullBlockFollowsTheDefinitionsOfItsEvents) {
  TemporaryDirectory directory;
  const std::string path = directory / "t.trace";
  log_of_tracing(
      path, [] {},
      [] {
        trace::define(trace::JsonLine("kernel").add("id", 9).str());
        for (uint64_t i = 0; i < 100'000; ++i)
          trace::record(trace::Launch{1, 9, monotonic_ns(), 1, 0, 0, -1});
      });
  const std::string text = trace_text(path);
  EXPECT_LT(text.find("\"t\":\"kernel\""), text.find("\"t\":\"events\""));
}

TEST(Trace, IsWrittenWithoutAFlush) {
  TemporaryDirectory directory;
  const std::string path = directory / "t.trace";
  log_of_tracing(
      path, [] {},
      [&] {
        trace_ten_spans();
        while (trace_text(path).find("\"t\":\"events\"") == std::string::npos) usleep(10'000);
        _exit(0);
      });
}

TEST(Trace, WithoutAScopeTheCallersAreFound) {
  TemporaryDirectory directory;
  const std::string path = directory / "t.trace";
  log_of_tracing(
      path, [] {},
      [] {
        if (trace::operation("add") == 0) _exit(1);  // no tail call, which would have no frame here
      });
  auto lines = trace_lines(path);
  ASSERT_EQ(lines["operation"].size(), 1u);
  EXPECT_THAT(lines["operation"][0]["file"].get<std::string>(),
              testing::HasSubstr("trace_test.cpp"));
  EXPECT_GT(lines["operation"][0]["line"], 10);
}

TEST(Trace, TextsOfAnyBytesAreJson) {
  std::string text;
  trace::append_json_string(text, std::string_view("a\"\\\n\x01\xff\xc3\xa9\xed\xa0\x80\0z", 13));
  EXPECT_EQ(json::parse(text).get<std::string>(),
            std::string("a\"\\\n\x01\uFFFD\u00e9\uFFFD\uFFFD\uFFFD\0z", 21));
}

TEST(Trace, BytesThatEncodeNoCharacterAreReplaced) {
  for (const std::string bytes :
       {"\xc0\x80", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80"}) {
    std::string text, expected;
    trace::append_json_string(text, bytes);
    for (size_t i = 0; i < bytes.size(); ++i) expected += "\uFFFD";
    EXPECT_EQ(json::parse(text).get<std::string>(), expected);
  }
}

TEST(Trace, ALimitOfFileSizesDoesNotEndTheProcess) {
  TemporaryDirectory directory;
  const std::string path = directory / "small.trace";
  const std::string log = log_of_tracing(path, [] {
    const rlimit small{100, 100};
    setrlimit(RLIMIT_FSIZE, &small);
    signal(SIGXFSZ, SIG_DFL);
  });
  EXPECT_LE(std::filesystem::file_size(path), 100u);
}

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
  const std::string path = directory / "full.trace";
  const std::string log = log_of_tracing(
      path,
      [] {
        const rlimit some{300, 300};
        setrlimit(RLIMIT_FSIZE, &some);
        signal(SIGXFSZ, SIG_DFL);
      },
      [] {
        for (int i = 0; i < 200; ++i) trace::name_id("name " + std::to_string(i * 7919));
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

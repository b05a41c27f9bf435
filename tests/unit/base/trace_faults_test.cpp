// What a trace does where the process, the file system or the program is in its way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "base/trace/json_line.h"
#include "unit/base/traced_process.h"

using namespace plugrad;
using nlohmann::json;

namespace {

void limit_trace(uint64_t bytes) {
  change_settings([&](Settings& s) { s.trace_limit_bytes = bytes; });
}

// Launches that do not compress.
void trace_random_launches(uint64_t count) {
  std::mt19937_64 random(1);
  for (uint64_t i = 0; i < count; ++i)
    trace::record(trace::Launch{1, 9, random() % 1'000'000, random() % 1'000'000, 0, 0, -1});
}

void limit_file_size() {
  const rlimit small{100, 100};
  setrlimit(RLIMIT_FSIZE, &small);
}

bool has_thread(const std::string& name) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string found;
    std::getline(std::ifstream(task.path() / "comm"), found);
    if (found == name) return true;
  }
  return false;
}

}  // namespace

TEST(TraceFaults, TheWriterTakesNoSignalOfTheProgram) {
  TemporaryDirectory directory;
  log_of_tracing(
      directory / "t.trace", [] {},
      [] {
        signal(SIGUSR1, [](int) { _exit(2); });
        trace_ten_spans();
        while (!has_thread("trace")) usleep(1000);
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, SIGUSR1);
        pthread_sigmask(SIG_BLOCK, &one, nullptr);
        kill(getpid(), SIGUSR1);
        usleep(50'000);  // another thread that does not block it handles it first
        const timespec longest{10, 0};
        if (sigtimedwait(&one, nullptr, &longest) != SIGUSR1) _exit(1);
      });
}

TEST(TraceFaults, AProgramGoesOnWithoutAThreadForTheTrace) {
  TemporaryDirectory directory;
  EXPECT_THAT(log_of_tracing(directory / "t.trace",
                             [] {
                               pthread_attr_t huge;
                               pthread_attr_init(&huge);
                               pthread_attr_setstacksize(&huge, size_t{1} << 60);
                               pthread_setattr_default_np(&huge);
                             }),
              testing::HasSubstr("t.trace is not whole: no thread for it"));
}

TEST(TraceFaults, TheWriterEndsBeforeTheLibraryEvenAfterAnError) {
  TemporaryDirectory directory;
  const auto check_at_exit = [] {
    std::atexit([] {
      if (has_thread("trace")) _exit(1);
    });
    limit_file_size();
    change_settings([](Settings& s) { s.trace_rules = true; });
  };
  EXPECT_THAT(log_of_tracing(directory / "t.trace", check_at_exit,
                             [] {
                               trace_ten_spans();
                               while (!has_thread("trace")) usleep(1000);
                               flush_trace();
                               if (tracing() || tracing_rules()) _exit(3);
                             }),
              testing::HasSubstr("is not whole: File too large"));
}

TEST(TraceFaults, TotalsCountWhatIsInTheFileWhileThreadsStillRecord) {
  TemporaryDirectory directory;
  const std::string path = directory / "t.trace";
  log_of_tracing(
      path, [] {},
      [] {
        std::thread([] {
          while (tracing()) trace::record(trace::Launch{1, 9, monotonic_ns(), 5, 0, 0, -1});
        }).detach();
        usleep(20'000);
      });
  auto lines = trace_lines(path);
  ASSERT_EQ(lines["end"].size(), 1u);
  const json& end = lines["end"][0];
  EXPECT_GT(end["launches"], 0);
  EXPECT_EQ(end["launches"], end["dropped"].get<size_t>() + events_in(lines["events"]));
}

TEST(TraceFaults, AChildThatOutlivesTheProgramDoesNotKeepTheFileLocked) {
  TemporaryDirectory directory;
  const std::string path = directory / "t.trace";
  int ends[2], ready[2];
  ASSERT_EQ(pipe(ends) | pipe(ready), 0);
  log_of_tracing(
      path, [] {},
      [&] {
        trace_ten_spans();
        char byte = 0;
        if (fork() != 0) {
          if (read(ready[0], &byte, 1) != 1) _exit(1);
          return;
        }
        alarm(20);
        close(ends[1]);
        if (write(ready[1], &byte, 1) != 1) _exit(1);
        while (read(ends[0], &byte, 1) > 0) {
        }
        _exit(0);  // the test has closed its end, or is gone
      });
  EXPECT_EQ(log_of_tracing(path), "");
  for (const int end : {ends[0], ends[1], ready[0], ready[1]}) close(end);
}

TEST(TraceFaults, DroppingEventsKeepsThePermissionsOfTheFile) {
  TemporaryDirectory directory;
  const std::string path = directory / "t.trace";
  std::ofstream(path) << "";
  chmod(path.c_str(), 0600);
  std::filesystem::create_symlink(directory / "victim", path + ".plugrad-new");
  log_of_tracing(path, [] { limit_trace(20'000); }, [] { trace_random_launches(20'000); });
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_GT(trace_lines(path)["end"].at(0)["dropped"], 0);
  EXPECT_FALSE(std::filesystem::exists(directory / "victim"));
}

TEST(TraceFaults, ATraceRemovesWhatAKilledProgramLeftWhileItDroppedEvents) {
  TemporaryDirectory directory;
  const std::string path = directory / "t.trace", left = path + ".plugrad-new";
  std::ofstream(left) << "half a trace";
  EXPECT_EQ(log_of_tracing(path, [] {}, trace_ten_spans), "");
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_EQ(events_in(trace_lines(path)["events"]), 10u);
}

TEST(TraceFaults, TheNewestEventsStayInAFileBelowTheSizeOfABlock) {
  TemporaryDirectory directory;
  const std::string path = directory / "t.trace";
  EXPECT_EQ(
      log_of_tracing(path, [] { limit_trace(1000); }, [] { trace_random_launches(20'000); }), "");
  auto lines = trace_lines(path);
  const size_t kept = events_in(lines["events"]);
  EXPECT_GT(kept, 0u);
  EXPECT_EQ(lines["end"].at(0)["dropped"], 20'000 - kept);
}

TEST(TraceFaults, AFileThatDefinitionsFillIsNotWrittenOn) {
  TemporaryDirectory directory;
  const std::string path = directory / "t.trace";
  constexpr uint64_t kLimit = 30'000;
  std::mt19937_64 random(1);
  const std::string log = log_of_tracing(
      path, [] { limit_trace(kLimit); },
      [&] {
        for (int i = 0; i < 1000 && tracing(); ++i) {
          trace::define(trace::JsonLine("kernel").add("id", i).add("source", random()).str());
          for (int k = 0; k < 100; ++k) trace::name_id(std::to_string(random()));
          flush_trace();
        }
        if (tracing()) _exit(1);
      });
  EXPECT_THAT(log, testing::HasSubstr("its definitions alone exceed PLUGRAD_TRACE_LIMIT"));
  EXPECT_LE(std::filesystem::file_size(path), kLimit + kLimit / 4);
  EXPECT_TRUE(trace_lines(path)["end"].empty());
}

TEST(TraceFaults, ARelativePathIsThatOfTheFirstEvent) {
  TemporaryDirectory directory, other;
  const auto go_there = [&] { std::filesystem::current_path(directory.path()); };
  log_of_tracing(
      "t.trace",
      [&] {
        go_there();
        limit_trace(20'000);
      },
      [&] {
        trace_random_launches(10);
        flush_trace();
        std::filesystem::current_path(other.path());
        trace_random_launches(20'000);
      });
  EXPECT_GT(trace_lines(directory / "t.trace")["end"].at(0)["dropped"], 0);
  EXPECT_TRUE(std::filesystem::is_empty(other.path()));
}

TEST(TraceFaults, AFolderIsRefused) {
  TemporaryDirectory directory;
  EXPECT_THAT(log_of_tracing(directory.path()), testing::HasSubstr("Is a directory"));
  EXPECT_THAT(log_of_tracing(directory / "absent/t.trace"),
              testing::HasSubstr("No such file or directory; nothing is traced"));
}

TEST(TraceFaults, ThreadsThatEndLeaveTheirEvents) {
  TemporaryDirectory directory;
  const std::string path = directory / "t.trace";
  log_of_tracing(
      path, [] {},
      [] {
        for (int i = 0; i < 3; ++i)
          std::thread([] {
            pthread_setname_np(pthread_self(), "br\xffief");
            trace_ten_spans();
          }).join();
      });
  auto lines = trace_lines(path);
  EXPECT_EQ(events_in(lines["events"]), 30u);
  ASSERT_EQ(lines["track"].size(), 3u);
  EXPECT_EQ(lines["track"][0]["name"], "br\uFFFDief");
}

TEST(TraceFaults, AnExecutedProgramTakesOverTheFile) {
  TemporaryDirectory directory;
  const std::string path = directory / "t.trace";
  log_of_tracing(
      path, [] {},
      [] {
        trace_ten_spans();
        flush_trace();
        execl("/bin/sh", "sh", "-c", "! ls -l /proc/$$/fd | grep t.trace", nullptr);
        _exit(2);
      });
  EXPECT_EQ(events_in(trace_lines(path)["events"]), 10u);
  EXPECT_EQ(log_of_tracing(path), "");  // not in use any more
}

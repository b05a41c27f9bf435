#include "base/storage/disk_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "unit/base/temporary_directory.h"

using namespace plugrad;

namespace {

std::string text_of(const std::optional<std::vector<std::byte>>& bytes) {
  return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size())
               : "(miss)";
}

// Makes all entries look unused for `seconds`.
void make_older(const DiskCache& cache, int64_t seconds) {
  Database database(cache.path(), {.version = 1});
  ASSERT_TRUE(database.write([&](sqlite3* connection) {
    Statement(connection, "UPDATE entry SET used_ns=used_ns-?")
        .bind(seconds * 1'000'000'000)
        .step();
  }));
}

// Captures warnings during its lifetime.
class CapturedLog {
 public:
  CapturedLog() {
    set_log_sink([](std::string_view t, void* c) { static_cast<CapturedLog*>(c)->text_ += t; },
                 this);
  }
  ~CapturedLog() { set_log_sink(nullptr, nullptr); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Overwrites the file's bytes at the first occurrence of `what` by `with`.
void overwrite(const std::string& path, std::string_view what, std::string_view with) {
  const auto bytes = *read_file(path);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t at = text.find(what);
  ASSERT_NE(at, text.npos);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at))
      .write(with.data(), static_cast<std::streamsize>(with.size()));
}

// Creates and closes a cache with one entry; returns its file.
std::string cache_with_entry(const std::string& directory) {
  DiskCache cache(directory);
  EXPECT_TRUE(cache.put(as_bytes("key"), as_bytes("the payload of the entry")));
  return cache.path();
}

}  // namespace

TEST(DiskCache, GivesBackWhatWasPutAndNothingElse) {
  TemporaryDirectory directory;
  DiskCache cache(directory / "new/deeper");
  EXPECT_EQ(text_of(cache.get(as_bytes("key"))), "(miss)");
  EXPECT_TRUE(cache.put(as_bytes("key"), as_bytes("payload")));
  EXPECT_TRUE(cache.put(as_bytes("empty"), {}));
  EXPECT_EQ(text_of(cache.get(as_bytes("key"))), "payload");
  EXPECT_EQ(text_of(cache.get(as_bytes("empty"))), "");
  EXPECT_EQ(text_of(cache.get(as_bytes("other"))), "(miss)");
  EXPECT_EQ(text_of(DiskCache(directory / "new/deeper").get(as_bytes("key"))), "payload");
}

TEST(DiskCache, ADamagedPayloadIsAMissAndTheEntryIsRemoved) {
  TemporaryDirectory directory;
  overwrite(cache_with_entry(directory.path()), "payload of", "pa#load of");
  DiskCache cache(directory.path());
  EXPECT_EQ(text_of(cache.get(as_bytes("key"))), "(miss)");
  EXPECT_EQ(cache.stats().damaged, 1u);
  EXPECT_EQ(cache.stats().entries, 0u);
  EXPECT_TRUE(cache.put(as_bytes("key"), as_bytes("payload")));
  EXPECT_EQ(text_of(cache.get(as_bytes("key"))), "payload");
}

TEST(DiskCache, ADamagedFileIsSetAsideWithAWarning) {
  for (const std::size_t size : {7u, 60u, 4096u, 5000u}) {
    TemporaryDirectory directory;
    const std::string path = cache_with_entry(directory.path());
    ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(size)), 0);
    if (size < 4096) std::ofstream(path) << std::string(size, '#');
    CapturedLog log;
    DiskCache cache(directory.path());
    EXPECT_EQ(text_of(cache.get(as_bytes("key"))), "(miss)") << size;
    EXPECT_TRUE(cache.put(as_bytes("key"), as_bytes("payload"))) << size;
    EXPECT_EQ(text_of(cache.get(as_bytes("key"))), "payload") << size;
    EXPECT_THAT(log.text(), testing::HasSubstr(".damaged")) << size;
    EXPECT_TRUE(read_file(path + ".damaged")) << size;
  }
}

TEST(DiskCache, AFileThatAnyoneCouldHaveWrittenIsNotUsed) {
  TemporaryDirectory directory;
  chmod(cache_with_entry(directory.path()).c_str(), 0666);
  CapturedLog log;
  DiskCache cache(directory.path());
  EXPECT_EQ(text_of(cache.get(as_bytes("key"))), "(miss)");
  EXPECT_THAT(log.text(), testing::HasSubstr("another user can write it"));
}

TEST(DiskCache, AFileThatIsDeletedMeanwhileIsMadeAgain) {
  TemporaryDirectory directory;
  DiskCache cache(directory.path());
  cache.put(as_bytes("key"), as_bytes("payload"));
  std::filesystem::remove_all(directory.path());
  EXPECT_EQ(text_of(cache.get(as_bytes("key"))), "(miss)");
  EXPECT_TRUE(cache.put(as_bytes("key"), as_bytes("payload")));
  EXPECT_EQ(text_of(DiskCache(directory.path()).get(as_bytes("key"))), "payload");
}

TEST(DiskCache, AReadOnlyDirectoryIsReadAndNotWritten) {
  TemporaryDirectory directory;
  cache_with_entry(directory.path());
  chmod(directory.path().c_str(), 0555);
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && setuid(65534) != 0) _exit(9);  // root may write everywhere
    CapturedLog log;
    DiskCache cache(directory.path());
    if (text_of(cache.get(as_bytes("key"))) != "the payload of the entry") _exit(1);
    if (!log.text().empty()) _exit(2);
    if (cache.put(as_bytes("other"), as_bytes("payload"))) _exit(3);
    _exit(log.text().find("it cannot be written") != std::string::npos ? 0 : 4);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// SQLite's locks belong to a process: using a connection across a fork would break them.
TEST(DiskCache, BothProcessesGoOnAfterAFork) {
  TemporaryDirectory directory;
  DiskCache cache(directory.path());
  ASSERT_TRUE(cache.put(as_bytes("before"), as_bytes("payload")));
  const pid_t child = fork();
  for (int i = 0; i < 200; ++i) {
    const std::string key = (child == 0 ? "child " : "parent ") + std::to_string(i);
    const bool is_stored = cache.put(as_bytes(key), as_bytes(key));
    if (child == 0 && (!is_stored || text_of(cache.get(as_bytes(key))) != key)) _exit(1);
    EXPECT_TRUE(is_stored);
  }
  if (child == 0) _exit(0);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(cache.stats().entries, 401u);
}

TEST(DiskCache, ADirectoryThatCannotBeWrittenWarnsOnceAndWorksWithout) {
  TemporaryDirectory directory;
  std::ofstream(directory / "file") << "in the way";
  CapturedLog log;
  DiskCache cache(directory / "file/cache");
  EXPECT_FALSE(cache.put(as_bytes("key"), as_bytes("payload")));
  std::string first = log.text();
  EXPECT_THAT(first, testing::HasSubstr("Not a directory"));
  EXPECT_THAT(first, testing::HasSubstr("PLUGRAD_CACHE_DIR"));
  EXPECT_FALSE(cache.put(as_bytes("key"), as_bytes("payload")));
  EXPECT_EQ(text_of(cache.get(as_bytes("key"))), "(miss)");
  EXPECT_EQ(log.text(), first);
}

TEST(DiskCache, AFullDiskWarnsAndLeavesNothingBehind) {
  // /dev/full cannot hold a directory; the process's file size limit fails a write the same way.
  TemporaryDirectory directory;
  pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    rlimit limit{100, 100};
    setrlimit(RLIMIT_FSIZE, &limit);
    DiskCache cache(directory.path());
    std::string big(1000, 'x');
    set_log_sink([](std::string_view, void*) {}, nullptr);
    bool stored = cache.put(as_bytes("key"), as_bytes(big));
    _exit(!stored && cache.stats().entries == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(DiskCache, AnEmptyDirectoryNameSwitchesItOff) {
  DiskCache cache("");
  EXPECT_FALSE(cache.put(as_bytes("key"), as_bytes("payload")));
  EXPECT_EQ(text_of(cache.get(as_bytes("key"))), "(miss)");
  EXPECT_EQ(cache.stats().entries, 0u);
}

TEST(DiskCache, CountsAndClears) {
  TemporaryDirectory directory;
  DiskCache cache(directory.path());
  for (int i = 0; i < 5; ++i) cache.put(as_bytes("key" + std::to_string(i)), as_bytes("payload"));
  std::ofstream(directory / "someone-elses-file") << "stays";
  EXPECT_EQ(cache.stats().entries, 5u);
  EXPECT_EQ(cache.stats().bytes, 5u * (4 + 7));
  EXPECT_EQ(cache.clear(), 5u);
  EXPECT_EQ(cache.stats().entries, 0u);
  EXPECT_TRUE(read_file(directory / "someone-elses-file"));
}

TEST(DiskCache, ManyProcessesAndThreadsOnOneKeyOnlySeeWholePayloads) {
  TemporaryDirectory directory;
  auto run = [&](char letter) {
    DiskCache cache(directory.path());
    std::string payload(20000, letter);
    for (int i = 0; i < 100; ++i) {
      cache.put(as_bytes("key"), as_bytes(payload));
      std::string seen = text_of(cache.get(as_bytes("key")));
      if (seen != std::string(20000, seen[0])) return false;
    }
    return cache.stats().damaged == 0;
  };
  std::vector<pid_t> children;
  for (char letter : {'a', 'b', 'c'})
    if (children.push_back(fork()); children.back() == 0) _exit(run(letter) ? 0 : 1);
  bool here = false;
  std::thread thread([&] { here = run('d'); });
  thread.join();
  EXPECT_TRUE(here);
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

// Number of kills in a test run: PLUGRAD_TEST_KILLS if set.
int kills() {
  const char* text = std::getenv("PLUGRAD_TEST_KILLS");
  return text ? std::atoi(text) : 200;
}

std::string payload_of(int number) {
  std::string payload;
  for (int i = 0; i < 3000; ++i) payload += std::to_string(number) + "/";
  return payload;
}

// Writes and overwrites entries in an overflowing cache until it is killed, a byte to the pipe after
// the first.
[[noreturn]] void write_until_killed(const std::string& directory, std::uint64_t limit_bytes,
                                     int pipe) {
  DiskCache cache(directory, limit_bytes);
  for (int i = 0;; ++i) {
    cache.put(as_bytes(std::to_string(i % 50)), as_bytes(payload_of(i % 50)));
    if (i == 0 && write(pipe, "", 1) != 1) _exit(1);
  }
}

TEST(DiskCache, AKilledWriterLeavesWholeEntriesOrNone) {
  TemporaryDirectory directory;
  const std::uint64_t limit_bytes = 1 << 20;  // about half of the data written
  std::minstd_rand random(1);
  int found = 0;
  for (int kill_number = 0; kill_number < kills(); ++kill_number) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) write_until_killed(directory.path(), limit_bytes, ends[1]);
    char byte;
    const bool waits = kill_number % 2 == 1;  // the others may be killed before they write
    ASSERT_EQ(waits ? read(ends[0], &byte, 1) : 1, 1);
    usleep(static_cast<useconds_t>(random() % 6000));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    for (const int end : ends) close(end);
    DiskCache cache(directory.path(), limit_bytes);
    for (int i = 0; i < 50; ++i) {
      const auto got = cache.get(as_bytes(std::to_string(i)));
      if (!got) continue;
      ASSERT_EQ(text_of(got), payload_of(i)) << "after kill " << kill_number;
      ++found;
    }
    ASSERT_EQ(cache.stats().damaged, 0u) << "after kill " << kill_number;
  }
  EXPECT_GT(found, 0);
  DiskCache cache(directory.path(), limit_bytes);
  EXPECT_TRUE(cache.put(as_bytes("after"), as_bytes("payload")));
  EXPECT_EQ(text_of(cache.get(as_bytes("after"))), "payload");
}

TEST(DiskCache, ForgetsWhatWasNotUsedForLongestWhenItIsFull) {
  TemporaryDirectory directory;
  const std::uint64_t limit = 256 * 20000;
  DiskCache cache(directory / "full", limit);
  const std::string payload(4000, 'x');
  ASSERT_TRUE(cache.put(as_bytes("used"), as_bytes(payload)));
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(cache.put(as_bytes(std::to_string(i)), as_bytes(payload)));
    if (i % 100 != 0) continue;
    make_older(cache, 100'000);
    EXPECT_EQ(text_of(cache.get(as_bytes("used"))), payload) << i;
  }
  EXPECT_LT(cache.stats().bytes, 2 * limit) << "20 MB were put";
  EXPECT_GT(cache.stats().bytes, limit / 4);
}

TEST(DiskCache, RecordsUseToTheDay) {
  TemporaryDirectory directory;
  DiskCache cache(directory.path());
  ASSERT_TRUE(cache.put(as_bytes("key"), as_bytes("payload")));
  const auto used_ns = [&] {
    int64_t value = 0;
    Database(cache.path(), {.version = 1}).read([&](sqlite3* connection) {
      Statement select(connection, "SELECT used_ns FROM entry");
      select.step();
      value = select.integer(0);
    });
    return value;
  };
  const int64_t stored_ns = used_ns();
  ASSERT_TRUE(cache.get(as_bytes("key")));
  EXPECT_EQ(used_ns(), stored_ns);
  make_older(cache, 100'000);
  ASSERT_TRUE(cache.get(as_bytes("key")));
  EXPECT_GE(used_ns(), stored_ns);
  make_older(cache, -1'000'000);
  ASSERT_TRUE(cache.get(as_bytes("key")));
  EXPECT_LT(used_ns(), stored_ns + 500'000'000'000) << "a use in the future stays";
}

TEST(DiskCache, AFifoInTheFilesPlaceIsAMiss) {
  TemporaryDirectory directory;
  CapturedLog log;
  DiskCache cache(directory.path());
  ASSERT_EQ(mkfifo(cache.path().c_str(), 0600), 0);
  EXPECT_EQ(text_of(cache.get(as_bytes("key"))), "(miss)");
  EXPECT_FALSE(cache.put(as_bytes("key"), as_bytes("payload")));
  EXPECT_THAT(log.text(), testing::HasSubstr("device, pipe or socket"));
}

TEST(DiskCache, AFileThatIsLargerThanAnyDiskIsUsedOrSetAside) {
  TemporaryDirectory directory;
  ASSERT_EQ(truncate(cache_with_entry(directory.path()).c_str(), off_t{1} << 42), 0);
  DiskCache cache(directory.path());
  cache.get(as_bytes("key"));
  EXPECT_TRUE(cache.put(as_bytes("key"), as_bytes("payload")));
  EXPECT_EQ(text_of(cache.get(as_bytes("key"))), "payload");
}

// Each process evicts entries while the others write.
TEST(DiskCache, ProcessesThatMakeRoomLeaveEachOthersWritingAlone) {
  TemporaryDirectory directory;
  std::vector<pid_t> children;
  for (int process = 0; process < 4; ++process) {
    const pid_t child = fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    CapturedLog log;
    DiskCache cache(directory.path(), 100 << 10);
    for (int i = 0; i < 2000; ++i)
      cache.put(as_bytes(std::to_string(i * 4 + process)), as_bytes(std::string(3000, 'p')));
    _exit(log.text().empty() ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

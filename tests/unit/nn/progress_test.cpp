// optim::Progress: its files, its errors and its warning.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <limits>
#include <string>
#include <string_view>
#include <thread>

#include "base/log.h"
#include "plugrad/training_progress.h"
#include "scratch_folder.h"

using namespace plugrad;

namespace {

// The log while it lives.
struct Log {
  std::string text;
  Log() {
    set_log_sink([](std::string_view line, void* log) { static_cast<Log*>(log)->text += line; },
                 this);
  }
  ~Log() { set_log_sink(nullptr, nullptr); }
};

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

ino_t inode(const std::filesystem::path& path) {
  struct stat info{};
  EXPECT_EQ(::stat(path.c_str(), &info), 0);
  return info.st_ino;
}

constexpr auto kTick = std::chrono::milliseconds(5);

}  // namespace

TEST(Progress, ThePageIsThereAtOnceAndStaticAtTheEnd) {
  const ScratchFolder folder;
  const auto path = folder.path / "page.html";
  {
    optim::Progress progress(2, {.title = "a net", .plot = path.string(), .quiet = true});
    EXPECT_TRUE(contains(contents(path), "waiting for the first step"));
    progress.update(0.5, 0.25);
    EXPECT_TRUE(contains(contents(path), "running: step 1 of 2"));
    EXPECT_TRUE(contains(contents(path), "location.reload()"));
    progress.update();
    progress.add_test_accuracy(0.75);
  }
  const std::string page = contents(path);
  EXPECT_TRUE(contains(page, "finished: step 2 of 2")) << page;
  EXPECT_TRUE(contains(page, "a net"));
  EXPECT_TRUE(contains(page, "last 25, test 75"));
  EXPECT_TRUE(contains(page, "<tr><td>test, 2</td>"));
  EXPECT_TRUE(contains(page, "steps per second"));
  EXPECT_FALSE(contains(page, "location.reload()"));
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(Progress, ALoopThatEndsEarlySaysSo) {
  const ScratchFolder folder;
  const auto path = folder.path / "plot.svg";
  try {
    optim::Progress progress(9, {.plot = path.string(), .quiet = true});
    progress.update(std::numeric_limits<double>::quiet_NaN());
    throw std::runtime_error("the loss is NaN");
  } catch (const std::runtime_error&) {
  }
  EXPECT_TRUE(contains(contents(path), "stopped: step 1 of 9"));
  EXPECT_TRUE(contains(contents(path), "1 of 1 values are NaN or infinite"));
}

TEST(Progress, TheFileIsWrittenAtMostTwiceASecond) {
  const ScratchFolder folder;
  const auto path = folder.path / "plot.svg";
  optim::Progress progress(0, {.plot = path.string(), .quiet = true});
  progress.update(1);  // written
  const auto start = std::chrono::steady_clock::now();
  ino_t last = inode(path);
  int writes = 0;
  for (int i = 0; i < 220; ++i) {
    std::this_thread::sleep_for(kTick);
    progress.update(1);
    writes += inode(path) != last;
    last = inode(path);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_GE(writes, 1);
  EXPECT_LE(writes, took.count() / 0.5);
}

TEST(Progress, WrongArgumentsAreErrors) {
  const ScratchFolder folder;
  const auto error = [](int64_t steps, optim::ProgressOptions options) {
    options.quiet = true;
    return user_error([&] { optim::Progress(steps, options); });
  };
  EXPECT_TRUE(contains(error(1, {.plot = "plot.png"}), "plot.png\" must end in .svg or .html"));
  const std::string missing = (folder.path / "missing" / "plot.svg").string();
  EXPECT_TRUE(contains(error(1, {.plot = missing}), missing + " cannot be written: No such file"));
  std::filesystem::create_directory(folder.path / "folder.svg");
  EXPECT_TRUE(contains(error(1, {.plot = (folder.path / "folder.svg").string()}), "directory"));
  ASSERT_EQ(::mkfifo((folder.path / "pipe.svg").c_str(), 0600), 0);
  EXPECT_TRUE(contains(error(1, {.plot = (folder.path / "pipe.svg").string()}), "regular file"));
  EXPECT_TRUE(contains(error(-1, {}), "-1 steps"));
  EXPECT_TRUE(contains(error(1, {.units_a_step = 0}), "of 0 units"));
}

// A limit of file sizes replaces a full disk.
TEST(Progress, AFullDiskIsOneWarningAndTheLastPlotStays) {
  const ScratchFolder folder;
  const auto path = folder.path / "plot.svg";
  const Log log;
  {
    optim::Progress progress(0, {.plot = path.string(), .quiet = true});
    const std::string before = contents(path);
    rlimit old;
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
    const rlimit small{100, old.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    progress.update(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(550));
    progress.update(2);
    setrlimit(RLIMIT_FSIZE, &old);
    EXPECT_EQ(contents(path), before);
    EXPECT_TRUE(contains(log.text, path.string() + " cannot be written: File too large"))
        << log.text;
    EXPECT_EQ(log.text.find("warning"), log.text.rfind("warning")) << log.text;
  }
  EXPECT_TRUE(contains(contents(path), "finished: step 2"));  // there is room again
  EXPECT_EQ(log.text.find("warning"), log.text.rfind("warning")) << log.text;
}

TEST(Progress, AFolderThatVanishesIsOneWarning) {
  const ScratchFolder folder;
  const auto inner = folder.path / "inner";
  std::filesystem::create_directory(inner);
  const Log log;
  {
    optim::Progress progress(2, {.plot = (inner / "page.html").string(), .quiet = true});
    std::filesystem::remove_all(inner);
    progress.update(1);
    progress.update(2);
  }
  EXPECT_TRUE(contains(log.text, "No such file")) << log.text;
  EXPECT_EQ(log.text.find("warning"), log.text.rfind("warning")) << log.text;
}

// Saving never replaces a path that is no regular file, and leaves no temporary files.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/bytes.h"
#include "base/file.h"
#include "plugrad/error.h"
#include "unit/base/temporary_directory.h"

using namespace plugrad;
namespace fs = std::filesystem;

namespace {

int synced_files = 0, synced_folders = 0;

}  // namespace

// Replaces the C library's function.
extern "C" int fsync(int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0) return -1;
  ++(S_ISDIR(info.st_mode) ? synced_folders : synced_files);
  return 0;
}

namespace {

int write_text(const std::string& path, std::string_view text, ReplaceOptions options = {}) {
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(text))};
  return replace_file(path, parts, options);
}

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t files_in(const std::string& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

}  // namespace

TEST(ReplaceFile, ALinkStaysAndItsTargetIsReplaced) {
  TemporaryDirectory d;
  fs::create_directory(d / "deep");
  ASSERT_EQ(write_text(d / "deep/target", "old"), 0);
  fs::create_symlink("target", d / "deep/second");
  fs::create_symlink("deep/second", d / "link");
  fs::create_symlink("not-there-yet", d / "dangling");
  EXPECT_EQ(write_text(d / "link", "new"), 0);
  EXPECT_EQ(write_text(d / "dangling", "made"), 0);
  EXPECT_TRUE(fs::is_symlink(d / "link"));
  EXPECT_TRUE(fs::is_symlink(d / "deep/second"));
  EXPECT_EQ(file_text(d / "deep/target"), "new");
  EXPECT_EQ(file_text(d / "not-there-yet"), "made");
  fs::create_symlink("round", d / "round");
  EXPECT_EQ(write_text(d / "round", "x"), ELOOP);
}

TEST(ReplaceFile, WhatIsNoRegularFileIsRefusedAndStays) {
  TemporaryDirectory d;
  ASSERT_EQ(mkfifo((d / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(write_text(d / "fifo", "x"), kNotRegular);
  EXPECT_TRUE(fs::is_fifo(d / "fifo"));
  EXPECT_EQ(write_text(d.path(), "x"), EISDIR);
  // A device node, if root may create one; never one of the machine's.
  if (mknod((d / "full").c_str(), S_IFCHR | 0666, makedev(1, 7)) == 0) {
    EXPECT_EQ(write_text(d / "full", "x"), kNotRegular);
    EXPECT_TRUE(fs::is_character_file(d / "full"));
    fs::create_symlink("full", d / "to-full");
    EXPECT_EQ(write_text(d / "to-full", "x"), kNotRegular);
    EXPECT_TRUE(fs::is_character_file(d / "full"));
    fs::remove(d / "full");
    fs::remove(d / "to-full");
  }
  EXPECT_EQ(files_in(d.path()), 1u);
  EXPECT_EQ(file_error_text(kNotRegular), "it is a device, pipe or socket, not a regular file");
}

TEST(ReplaceFile, ACheckSaysWhatWritingWouldAndLeavesNothing) {
  TemporaryDirectory d;
  ASSERT_EQ(mkfifo((d / "fifo").c_str(), 0600), 0);
  fs::create_symlink("not-there-yet", d / "dangling");
  fs::create_symlink("fifo", d / "to-fifo");
  ASSERT_EQ(write_text(d / "old", "stays"), 0);
  EXPECT_EQ(check_replaceable(d / "fifo"), kNotRegular);
  EXPECT_EQ(check_replaceable(d / "to-fifo"), kNotRegular);
  EXPECT_EQ(check_replaceable("/dev/full"), kNotRegular);
  EXPECT_EQ(check_replaceable(d.path()), EISDIR);
  EXPECT_EQ(check_replaceable(d / "absent/file"), ENOENT);
  for (const char* name : {"new", "old", "dangling"}) EXPECT_EQ(check_replaceable(d / name), 0);
  EXPECT_EQ(file_text(d / "old"), "stays");
  EXPECT_EQ(files_in(d.path()), 4u);
}

TEST(ReplaceFile, FileAndFolderReachTheDiskWhereThatIsAsked) {
  TemporaryDirectory d;
  synced_files = synced_folders = 0;
  ASSERT_EQ(write_text(d / "kept", "x"), 0);
  EXPECT_EQ(synced_files, 1);
  EXPECT_EQ(synced_folders, 1);
  ASSERT_EQ(write_text(d / "cached", "x", {.sync = false}), 0);
  EXPECT_EQ(synced_files + synced_folders, 2);
}

TEST(ReplaceFile, PermissionsOfTheOldFileStay) {
  TemporaryDirectory d;
  ASSERT_EQ(write_text(d / "file", "a"), 0);
  ASSERT_EQ(chmod((d / "file").c_str(), 0600), 0);
  ASSERT_EQ(write_text(d / "file", "b"), 0);
  struct stat info;
  ASSERT_EQ(stat((d / "file").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST(ReplaceFile, TemporariesOfDeadWritersGoAndOfLivingOnesStay) {
  TemporaryDirectory d;
  std::ofstream(d / "model.4194000-0.tmp") << "dead";
  std::ofstream(d / "model.1-2.tmp") << "its number belongs to another process now";
  std::ofstream(d / "model.notes-1.tmp") << "not ours";
  std::ofstream(d / "other.4194000-0.tmp") << "of another file";
  const int living = open((d / "model.7-1.tmp").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_EQ(flock(living, LOCK_EX), 0);
  ASSERT_EQ(write_text(d / "model", "x"), 0);
  EXPECT_FALSE(fs::exists(d / "model.4194000-0.tmp"));
  EXPECT_FALSE(fs::exists(d / "model.1-2.tmp"));
  EXPECT_TRUE(fs::exists(d / "model.notes-1.tmp"));
  EXPECT_TRUE(fs::exists(d / "other.4194000-0.tmp"));
  EXPECT_TRUE(fs::exists(d / "model.7-1.tmp"));
  close(living);
}

TEST(ReplaceFile, ALimitOfFileSizesIsAnError) {
  TemporaryDirectory d;
  ASSERT_EQ(write_text(d / "file", "old"), 0);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit small{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &small);
    signal(SIGXFSZ, SIG_DFL);
    const int error = write_text(d / "file", std::string(100000, 'x'));
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    const bool is_as_before = sigismember(&mask, SIGXFSZ) == 0;
    _exit(error == EFBIG && is_as_before ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(file_text(d / "file"), "old");
  EXPECT_EQ(files_in(d.path()), 1u);
}

TEST(MappedFile, AFifoIsRefusedAtOnce) {
  TemporaryDirectory d;
  ASSERT_EQ(mkfifo((d / "fifo").c_str(), 0600), 0);
  try {
    MappedFile(d / "fifo", "load");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("not a regular file"), std::string::npos);
  }
}

#include "base/child_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <system_error>

#include "base/file.h"

using namespace plugrad;

namespace {

ProcessSpec shell(const std::string& script) {
  return {.program = "sh", .arguments = {"-c", script}};
}

TEST(ChildProcess, GivesItsOutputAndStatus) {
  EXPECT_EQ(output_of(shell("echo one; echo two")), "one\ntwo\n");
  ChildProcess child(shell("exit 7"));
  const int status = child.wait();
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(child.status(), status);
  EXPECT_EQ(describe_end(status), "exit code 7");
}

TEST(ChildProcess, NamesTheFailure) {
  try {
    output_of(shell("kill -SEGV $$"));
    FAIL();
  } catch (const std::runtime_error& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("with signal 11 (Segmentation fault)"));
  }
  EXPECT_THROW(ChildProcess({.program = "/no/such/program"}), std::system_error);
}

TEST(ChildProcess, HasTheGivenEnvironmentAlone) {
  EXPECT_EQ(output_of({.program = "/usr/bin/env", .environment = {"A=1", "B="}}), "A=1\nB=\n");
  ASSERT_EQ(setenv("PLUGRAD_TEST_CHILD", "old", 1), 0);
  ProcessSpec spec = shell("echo $PLUGRAD_TEST_CHILD");
  spec.environment = environment_with({"PLUGRAD_TEST_CHILD=new"});
  EXPECT_EQ(output_of(spec), "new\n");
  EXPECT_EQ(
      std::ranges::count_if(spec.environment,
                            [](const auto& s) { return s.starts_with("PLUGRAD_TEST_CHILD="); }),
      1);
  unsetenv("PLUGRAD_TEST_CHILD");
}

// Also without close-on-exec, and where the numbers here are those that others get there.
TEST(ChildProcess, HasTheGivenDescriptorsAlone) {
  int leaked[2], three[2], four[2];
  ASSERT_EQ(pipe(leaked), 0);
  ASSERT_EQ(pipe(three), 0);
  ASSERT_EQ(pipe(four), 0);
  ProcessSpec spec = shell("echo three >&3; echo four >&4; ls /proc/self/fd | wc -l >&3");
  spec.descriptors = {{three[1], 4}, {four[1], 3}, {-1, STDIN_FILENO}};
  ChildProcess(spec).wait();
  const auto text = [](int(&ends)[2]) {
    close(ends[1]);
    char part[64];
    const ssize_t size = read(ends[0], part, sizeof part);
    close(ends[0]);
    return std::string(part, size > 0 ? static_cast<size_t>(size) : 0);
  };
  EXPECT_EQ(text(three), "four\n");
  EXPECT_EQ(text(four), "three\n6\n") << "five, and the one by which ls reads";
  close(leaked[0]);
  close(leaked[1]);
}

TEST(ChildProcess, EndsWithItsGroupAndItsObject) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const FileDescriptor reader(ends[0]);
  FileDescriptor writer(ends[1]);
  {
    ProcessSpec spec = shell("sleep 1000 & echo x; wait");
    spec.descriptors = {{writer.get(), STDOUT_FILENO}};
    spec.leads_group = true;
    const ChildProcess child(spec);
    writer = FileDescriptor();
    char x = 0;
    ASSERT_EQ(read(reader.get(), &x, 1), 1);
    ASSERT_EQ(read(reader.get(), &x, 1), 1);
  }
  char x = 0;
  EXPECT_EQ(read(reader.get(), &x, 1), 0) << "the grandchild holds the pipe";
}

}  // namespace

#include "profile/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <thread>

#include "base/check.h"
#include "base/child_process.h"
#include "base/file.h"
#include "interruption.h"
#include "temporary_folder.h"

namespace plugrad::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kPollInterval(10), kGrace(1000);

// Passes a signal on, except that a terminal gives SIGINT to both processes, as a sender may do too
// that signals their group: a program that still runs some time later did not get it. Returns the
// status of waitpid.
int wait_for(ChildProcess& child) {
  auto polls_left = kGrace / kPollInterval;
  for (;;) {
    if (const auto status = child.status()) return *status;
    if (is_interrupted() && !is_from_terminal() && polls_left > 0) {
      const int signal = interruption_exit_code() - 128;
      polls_left = signal == SIGTERM ? 0 : polls_left - 1;
      if (polls_left == 0) child.signal(signal);
    }
    std::this_thread::sleep_for(kPollInterval);
  }
}

int run_recorded(const Arguments& words, const std::string& trace_path, const RunOptions& options) {
  ProcessSpec spec{.program = words[0],
                   .arguments = {words.begin() + 1, words.end()},
                   .environment = environment_with({"PLUGRAD_TRACE=" + trace_path, "VIZ=0"})};
  if (options.stdout_to_stderr) spec.descriptors = {{STDERR_FILENO, STDOUT_FILENO}};
  const std::unique_ptr<FILE, int (*)(FILE*)> output(
      options.stdout_file.empty() ? nullptr : std::fopen(options.stdout_file.c_str(), "we"),
      std::fclose);
  if (output) spec.descriptors = {{fileno(output.get()), STDOUT_FILENO}};
  catch_interruption();
  try {
    ChildProcess child(spec);
    return wait_for(child);
  } catch (const std::system_error& error) {
    fail(ErrorKind::User, "[profile] {} cannot be started: {}", words[0], error.code().message());
  }
}

void copy_file(const std::string& from, const std::string& to) {
  const std::vector<std::byte> bytes = trace::read_trace_file(from);
  const std::span<const std::byte> parts[] = {bytes};
  if (const int error = replace_file(to, parts))
    fail(ErrorKind::User, "[profile] {} cannot be written: {}", to, file_error_text(error));
}

// The trace, and those of other ranks beside it.
void keep_traces(const std::string& from, const std::string& to) {
  copy_file(from, to);
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(from).parent_path()))
    if (const std::string path = entry.path().string(); path.starts_with(from + ".rank"))
      copy_file(path, to + path.substr(from.size()));
}

}  // namespace

RecordedRun run_and_record(const Arguments& words, const RunOptions& options) {
  if (!options.keep.empty())
    if (const int error = check_replaceable(options.keep))
      fail(ErrorKind::User, "[profile] {} cannot be written: {}", options.keep,
           file_error_text(error));
  const TemporaryFolder folder("profile");
  const std::string path = folder.file("trace");
  const int status = run_recorded(words, path, options);
  RecordedRun recorded;
  if (is_interrupted())
    recorded.exit_code = interruption_exit_code();
  else if (status != 0)
    recorded.exit_code = kFailure;
  if (status != 0)
    fmt::print(stderr, "plugrad profile: {} ended with {}\n", words[0], describe_end(status));
  if (status != 0 && !fs::exists(path)) return recorded;  // the program said why
  require(fs::exists(path),
          "[profile] {} recorded nothing: it does not use plugrad, or a version without traces, or "
          "ended before its first tensor",
          fmt::join(words, " "));
  recorded.trace = trace::read_trace(path);
  if (!options.keep.empty()) keep_traces(path, options.keep);
  return recorded;
}

}  // namespace plugrad::tools

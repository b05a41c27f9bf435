#include "conformance/levels/loading/fresh_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "conformance/worker/spawn.h"

namespace plugrad::conformance {
namespace {

constexpr int kVerdictFile = 3;  // of the new process

// A file in memory that a child inherits.
class MemoryFile {
 public:
  MemoryFile() : file_(::memfd_create("plugrad-check", MFD_CLOEXEC)) {
    expect(file_ >= 0, "the suite cannot make a file in memory");
    if (file_ > kVerdictFile) return;
    const int higher = ::fcntl(file_, F_DUPFD_CLOEXEC, kVerdictFile + 1);
    ::close(file_);
    file_ = higher;
  }
  ~MemoryFile() { ::close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  int file() const { return file_; }
  std::string text() const {
    std::string all(65536, '\0');
    const ssize_t size = ::pread(file_, all.data(), all.size(), 0);
    all.resize(size > 0 ? static_cast<size_t>(size) : 0);
    return all;
  }

 private:
  int file_;
};

std::vector<std::string> command_line_of(Context& context, std::string_view check,
                                         const std::string& argument) {
  Plugin& plugin = context.plugin();
  std::vector<std::string> arguments = {"/proc/self/exe",
                                        std::string(kFreshFlag),
                                        std::string(check),
                                        plugin.path(),
                                        std::to_string(plugin.device_index()),
                                        argument};
  // Pairs of each kind behind their number.
  for (const auto* options : {&plugin.device_options(), &plugin.plugin_options()}) {
    arguments.push_back(std::to_string(options->size()));
    for (const auto& [key, value] : *options) arguments.insert(arguments.end(), {key, value});
  }
  return arguments;
}

[[noreturn]] void fail_ending(int status, const std::string& verdict, const std::string& output) {
  std::string how = WIFSIGNALED(status)
                        ? std::string("died with ") + ::sigabbrev_np(WTERMSIG(status))
                        : "ended with exit code " + std::to_string(WEXITSTATUS(status));
  std::string text = "a process of its own " + how;
  text += verdict.empty() ? ", in the middle of the check" : ", after the check, at its exit";
  if (!output.empty()) text += "; it printed: " + output.substr(0, 2000);
  throw Failed(text);
}

void write_verdict(char verdict, const std::string& message) {
  const std::string text = verdict + message;
  [[maybe_unused]] const ssize_t written = ::pwrite(kVerdictFile, text.data(), text.size(), 0);
}

}  // namespace

std::string run_fresh(Context& context, std::string_view check, const std::string& argument) {
  const MemoryFile verdict_file, output_file;
  const pid_t process = spawn({.words = command_line_of(context, check, argument),
                               .output = output_file.file(),
                               .files = {{verdict_file.file(), kVerdictFile}}});
  int status = 0;
  while (::waitpid(process, &status, 0) != process) {
  }
  const std::string verdict = verdict_file.text(), output = output_file.text();
  if (!verdict.empty() && verdict[0] == 'F') throw Failed(verdict.substr(1));
  if (status != 0 || verdict.empty()) fail_ending(status, verdict, output);
  if (verdict[0] == 'U') throw Unsupported(verdict.substr(1));
  return output;
}

int run_fresh_check(int argc, char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc < 8) return 2;
  FreshTarget target;
  target.plugin_path = argv[3];
  target.device_index = static_cast<uint32_t>(std::stoul(argv[4]));
  target.argument = argv[5];
  int at = 6;
  for (auto* options : {&target.device_options, &target.plugin_options}) {
    if (at >= argc) return 2;
    const int end = at + 1 + 2 * std::stoi(argv[at]);
    if (end > argc) return 2;
    for (++at; at < end; at += 2) (*options)[argv[at]] = argv[at + 1];
  }
  for (const FreshCheck& check : fresh_checks()) {
    if (check.name != argv[2]) continue;
    try {
      check.run(target);
      write_verdict('P', "");
    } catch (const Unsupported& error) {
      write_verdict('U', error.what());
    } catch (const std::exception& error) {
      write_verdict('F', error.what());
    }
    return 0;
  }
  return 2;
}

}  // namespace plugrad::conformance

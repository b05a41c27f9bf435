#include "base/trace/view.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/child_process.h"
#include "base/log.h"
#include "base/settings.h"

namespace plugrad::trace {
namespace {

// The command installed with this library, else what PATH finds.
std::string command() {
  Dl_info info;
  std::error_code failed;
  if (::dladdr(reinterpret_cast<void*>(&command), &info) != 0 && info.dli_fname != nullptr) {
    const auto library = std::filesystem::canonical(info.dli_fname, failed);
    for (auto above = library.parent_path(); !failed && above.has_relative_path();
         above = above.parent_path()) {
      const auto found = above / "bin" / "plugrad";
      if (::access(found.c_str(), X_OK) == 0) return found.string();
    }
  }
  return "plugrad";
}

}  // namespace

std::string path_for_viewer() {
  const auto directory = environment_variable("TMPDIR").value_or("/tmp");
  std::string path = directory + "/plugrad-trace-XXXXXX";
  const int descriptor = ::mkstemp(path.data());
  if (descriptor >= 0) ::close(descriptor);
  return path;
}

void open_viewer(const std::string& trace_path) noexcept try {
  const std::string program = command();
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDERR_FILENO) == 0) {
    log_warning("the trace of VIZ=1 is {}; show it with {} view {}", trace_path, program,
                trace_path);
    return;
  }
  ChildProcess({.program = program,
                .arguments = {"view", trace_path},
                .environment = environment_with({"VIZ=0", "PLUGRAD_TRACE="})})
      .wait();
} catch (const std::exception& e) {
  log_warning("VIZ=1: plugrad view does not start ({}); the trace is {}", e.what(), trace_path);
} catch (...) {
}

}  // namespace plugrad::trace

#include "command_line/run_program.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#include "base/escaping/sanitise_text.h"
#include "plugrad/error.h"
#include "runtime/queue/exit_wait.h"

namespace plugrad::tools {

namespace {

int code_of(const std::function<int()>& run) {
  try {
    return run();
  } catch (const UsageError& error) {
    fmt::print(stderr, "plugrad: {}\n", sanitise_text(error.what()));
    return kBadUsage;
  } catch (const Error& error) {
    fmt::print(stderr, "plugrad: error ({}): {}\n", to_string(error.kind()), error.what());
    return kFailure;
  } catch (const std::bad_alloc&) {
    std::fputs("plugrad: error: out of memory\n", stderr);
    return kFailure;
  } catch (const std::exception& error) {
    fmt::print(stderr, "plugrad: error: {}\n", sanitise_text(error.what()));
    return kFailure;
  }
}

// A sanitizer reports leaks in an exit handler.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kNeedsExitHandlers = true;
#else
constexpr bool kNeedsExitHandlers = false;
#endif

}  // namespace

int run_program(int argc, char** argv, const std::function<int(const Arguments&)>& run) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit then is an error of write()
  const int code = code_of([&] { return run({argv + 1, argv + argc}); });
  if (kNeedsExitHandlers) return code;
  runtime::end_device_work();
  std::fflush(nullptr);
  std::quick_exit(code);
}

int run_companion(int argc, char** argv, std::initializer_list<Action> actions) {
  return run_program(argc, argv, [&](const Arguments& arguments) {
    for (const Action& action : actions)
      if (!arguments.empty() && arguments[0] == action.name)
        return action.run({arguments.begin() + 1, arguments.end()});
    throw UsageError(fmt::format("{} is started by plugrad {}", argv[0], actions.begin()->name));
  });
}

}  // namespace plugrad::tools

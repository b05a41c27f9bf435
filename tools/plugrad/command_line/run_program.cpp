#include "command_line/run_program.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include "base/escaping/sanitise_text.h"
#include "plugrad/error.h"

namespace plugrad::tools {

int run_program(int argc, char** argv, const std::function<int(const Arguments&)>& run) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit then is an error of write()
  try {
    return run({argv + 1, argv + argc});
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

int run_companion(int argc, char** argv, std::initializer_list<Action> actions) {
  return run_program(argc, argv, [&](const Arguments& arguments) {
    for (const Action& action : actions)
      if (!arguments.empty() && arguments[0] == action.name)
        return action.run({arguments.begin() + 1, arguments.end()});
    throw UsageError(fmt::format("{} is started by plugrad {}", argv[0], actions.begin()->name));
  });
}

}  // namespace plugrad::tools

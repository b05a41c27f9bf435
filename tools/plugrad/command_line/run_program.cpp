#include "command_line/run_program.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include "base/escaping/sanitise_text.h"
#include "plugrad/error.h"

namespace plugrad::tools {

int run_program(int argc, char** argv, int (*run)(const Arguments& arguments)) {
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

}  // namespace plugrad::tools

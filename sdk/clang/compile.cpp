#include "clang/compile.h"

#include <unistd.h>

#include <atomic>
#include <exception>
#include <fstream>

#include "clang/backend.h"
#include "clang/crash_guard.h"
#include "clang/frontend.h"
#include "plugrad/sdk/guard.h"

namespace plugrad::clang_component {
namespace {

// Writes the file directly instead of renaming a temporary one: the name is unique, and a partial
// source is still useful after a failure of Clang.
[[noreturn]] void report_failure(std::string_view source, const CompileOptions& options) {
  static std::atomic<unsigned> number{0};
  const std::string path = options.failure_dir + "/plugrad-clang-failure-" +
                           std::to_string(::getpid()) + "-" + std::to_string(number++) + ".c";
  std::ofstream file(path, std::ios::binary);
  file << "// clang failed on this: target " << options.target << ", cpu " << options.cpu
       << ", features " << options.features << ", -O" << options.optimize << "\n"
       << source;
  file.close();
  throw sdk::StatusError(PGR_STATUS_INTERNAL,
                         "Clang failed internally on kernel " + options.name + "; its source is " +
                             (file ? "in " + path : "not saved: cannot write " + path));
}

}  // namespace

CompileResult compile_source(std::string_view source, const CompileOptions& options) {
  initialize_target(options.language);
  CompileResult result;
  std::exception_ptr problem;
  const bool came_back = run_guarded([&] {
    try {
      const auto context = std::make_unique<llvm::LLVMContext>();
      const auto module = parse_source(source, options, *context, result.log);
      if (!module) return;
      result.object = emit_code(*module, options);
      result.ok = true;
    } catch (...) {
      problem = std::current_exception();
    }
  });
  if (!came_back) report_failure(source, options);
  if (problem) std::rethrow_exception(problem);
  return result;
}

}  // namespace plugrad::clang_component

#include "clang/frontend.h"

#include <clang/Basic/DiagnosticOptions.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <llvm/Support/VirtualFileSystem.h>

#include <vector>

namespace plugrad::clang_component {
namespace {

const char* file_name(const CompileOptions& options) {
  return options.language == Language::Cuda ? "kernel.cu" : "kernel.c";
}

// CUDA C, device side only, without headers of the toolkit.
void append_language(const CompileOptions& options, std::vector<std::string>& args) {
  if (options.language == Language::Cuda)
    args.insert(args.end(), {"-x", "cuda", "-std=gnu++20", "-fcuda-is-device", "-aux-triple",
                             "x86_64-pc-linux-gnu"});
  if (options.language == Language::Cuda && options.contract)
    args.insert(args.end(), {"-D", "PLUGRAD_CONTRACT"});
  if (options.language == Language::C) args.insert(args.end(), {"-x", "c", "-std=gnu23"});
}

// Disables costly features without benefit here: headers, unwind tables, names and lifetimes of
// values, checks of Clang's output, and Clang's own pass pipeline (backend.cpp runs a smaller one).
std::vector<std::string> arguments(const CompileOptions& options) {
  std::vector<std::string> args = {"-triple",
                                   options.target,
                                   "-target-cpu",
                                   options.cpu,
                                   "-O" + std::to_string(options.optimize),
                                   "-disable-llvm-passes",
                                   "-disable-llvm-verifier",
                                   "-disable-lifetime-markers",
                                   "-discard-value-names",

                                   "-ffreestanding",
                                   "-fno-builtin",
                                   "-relaxed-aliasing",
                                   "-nostdsysteminc",
                                   "-nobuiltininc",
                                   "-w",
                                   "-mrelocation-model",
                                   "static",
                                   "-mframe-pointer=none",
                                   "-fcolor-diagnostics",
                                   options.contract ? "-ffp-contract=fast" : "-ffp-contract=off"};
  if (!options.tune.empty()) {
    args.push_back("-tune-cpu");
    args.push_back(options.tune);
  }
  if (options.vector_bits)
    args.push_back("-mprefer-vector-width=" + std::to_string(options.vector_bits));
  std::string_view rest = options.features;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    if (comma > 0) {
      args.push_back("-target-feature");
      args.emplace_back(rest.substr(0, comma));
    }
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  append_language(options, args);
  args.push_back(file_name(options));
  return args;
}

// The objects that Clang points to. Allocated on the heap: after a crash, Clang's cleanups run when
// the stack is already discarded.
struct Session {
  explicit Session(std::string& log, llvm::LLVMContext& context)
      : log_stream(log),
        options(new clang::DiagnosticOptions()),
        printer(log_stream, options.get()),
        diagnostics(llvm::IntrusiveRefCntPtr<clang::DiagnosticIDs>(new clang::DiagnosticIDs()),
                    options, &printer, false),
        action(&context) {
    options->ShowColors = false;
  }
  llvm::raw_string_ostream log_stream;
  llvm::IntrusiveRefCntPtr<clang::DiagnosticOptions> options;
  clang::TextDiagnosticPrinter printer;
  clang::DiagnosticsEngine diagnostics;
  clang::EmitLLVMOnlyAction action;
  clang::CompilerInstance instance;
};

bool set_arguments(Session& session, const CompileOptions& options) {
  const std::vector<std::string> args = arguments(options);
  std::vector<const char*> pointers;
  pointers.reserve(args.size());
  for (const std::string& arg : args) pointers.push_back(arg.c_str());
  return clang::CompilerInvocation::CreateFromArgs(session.instance.getInvocation(), pointers,
                                                   session.diagnostics);
}

}  // namespace

std::unique_ptr<llvm::Module> parse_source(std::string_view source, const CompileOptions& options,
                                           llvm::LLVMContext& context, std::string& log) {
  const auto session = std::make_unique<Session>(log, context);
  if (!set_arguments(*session, options)) return nullptr;
  auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  files->addFile(file_name(options), 0,
                 llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(source.data(), source.size()),
                                                      file_name(options)));
  session->instance.setVerboseOutputStream(session->log_stream);
  session->instance.createDiagnostics(&session->printer, false);
  session->instance.createFileManager(files);
  const bool ok = session->instance.ExecuteAction(session->action);
  return ok ? session->action.takeModule() : nullptr;
}

}  // namespace plugrad::clang_component

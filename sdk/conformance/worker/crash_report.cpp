#include "conformance/worker/crash_report.h"

#include <cxxabi.h>
#include <execinfo.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>

#include "conformance/levels/loading/elf_symbols.h"

namespace plugrad::conformance {
namespace {

constexpr int kFatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
constexpr int kMaxFrames = 64;
// Stands in the text behind the frames of the handler itself.
constexpr int kHandlerFrames = 2;

int crash_pipe = -1;

// Only what may be called inside a signal handler; backtrace was called once before, which loads
// what it needs.
void on_crash(int signal) {
  void* frames[kMaxFrames];
  const int count = ::backtrace(frames, kMaxFrames);
  if (count > kHandlerFrames)
    ::backtrace_symbols_fd(frames + kHandlerFrames, count - kHandlerFrames, crash_pipe);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

// "a::b(int)" as "a::b".
std::string without_parameters(const std::string& name) {
  if (!name.ends_with(')')) return name;
  size_t at = name.size();
  for (int depth = 0; at-- > 0;) {
    depth += (name[at] == ')') - (name[at] == '(');
    if (depth == 0) break;
  }
  return at == 0 || at == name.npos ? name : name.substr(0, at);
}

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> plain(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return plain ? without_parameters(plain.get()) : name;
}

// "/…/lib.so(_ZN1a1bEv+0x12)[0x7f…]" as "lib.so a::b+0x12". A function that is not exported has
// an offset alone, and a name where the library keeps its symbol table.
std::string readable_frame(const std::string& line) {
  const size_t open = line.rfind('('), plus = line.find('+', open), close = line.find(')', open);
  if (open == line.npos || plus == line.npos || close == line.npos || plus > close) return line;
  const std::string path = line.substr(0, open), offset = line.substr(plus, close - plus);
  std::string name = line.substr(open + 1, plus - open - 1), where = offset;
  if (name.empty()) {
    name = function_at(path, std::strtoull(offset.c_str() + 1, nullptr, 16));
    if (!name.empty()) where = " (" + offset + ")";
  }
  return path.substr(path.rfind('/') + 1) + " " + demangled(name) + where;
}

}  // namespace

void report_crashes_to(int pipe) {
  crash_pipe = pipe;
  void* frames[1];
  ::backtrace(frames, 1);
  static char stack[64 << 10];
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  ::sigaltstack(&alternate, nullptr);
  struct sigaction action{};
  action.sa_handler = on_crash;
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  for (const int signal : kFatal) ::sigaction(signal, &action, nullptr);
}

std::string readable_stack(const std::string& raw) {
  std::istringstream lines(raw);
  std::string text;
  for (std::string line; std::getline(lines, line);) text += readable_frame(line) + "\n";
  return text;
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

}  // namespace plugrad::conformance

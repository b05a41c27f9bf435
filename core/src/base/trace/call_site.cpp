// Callers are kept as return addresses; the writing thread turns them into lines, as reading debug
// information takes long.
#include "base/trace/call_site.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/trace/json_line.h"
#include "base/trace/trace.h"
#include "plugrad/source_scope.h"

// libbacktrace, which comes with GCC. Its header is in a directory that only GCC searches.
extern "C" {
struct backtrace_state;
using backtrace_error_callback = void (*)(void* data, const char* message, int number);
using backtrace_full_callback = int (*)(void* data, std::uintptr_t pc, const char* file, int line,
                                        const char* function);
backtrace_state* backtrace_create_state(const char* file, int threaded,
                                        backtrace_error_callback error, void* data);
int backtrace_pcinfo(backtrace_state* state, std::uintptr_t pc, backtrace_full_callback callback,
                     backtrace_error_callback error, void* data);
}

namespace plugrad {
namespace {

thread_local const SourceScope* source_of_thread = nullptr;

}  // namespace

SourceScope::SourceScope(std::string_view file, unsigned line, std::string_view function)
    : file_(file), function_(function), line_(line), outer_(source_of_thread) {
  source_of_thread = this;
}
SourceScope::~SourceScope() {
  source_of_thread = outer_;
}

bool records_sources() {
  return tracing();
}

namespace trace {
namespace {

constexpr std::size_t kMostCallers = 12;  // frames outside this library, innermost first
// Frames where this library is part of the program: its own, which only debug information tells
// from the program's, stand first.
constexpr std::size_t kMostFrames = 48;

struct Callers {
  std::array<std::uintptr_t, kMostFrames> pc{};
  std::size_t count = 0;
  auto operator<=>(const Callers&) const = default;
};

struct Range {
  std::uintptr_t begin = 0, end = 0;
  bool has(std::uintptr_t address) const { return begin <= address && address < end; }
};

// The addresses of this library and of those that stand on it; none where it is part of the program
// itself.
const std::vector<Range>& own_addresses() {
  static const std::vector<Range> own = [] {
    std::vector<Range> found;
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* out) {
          const std::string_view path = info->dlpi_name ? info->dlpi_name : "";
          if (!path.ends_with("/libplugrad_core.so") && !path.ends_with("/libplugrad_onnx.so"))
            return 0;
          for (int i = 0; i < info->dlpi_phnum; ++i) {
            const auto& segment = info->dlpi_phdr[i];
            const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
            if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0)
              static_cast<std::vector<Range>*>(out)->push_back({begin, begin + segment.p_memsz});
          }
          return 0;
        },
        &found);
    return found;
  }();
  return own;
}

Callers callers() {
  Callers found;
  ::_Unwind_Backtrace(
      [](_Unwind_Context* context, void* out) {
        auto& to = *static_cast<Callers*>(out);
        int is_exact = 0;  // else the address follows the call
        const std::uintptr_t pc = ::_Unwind_GetIPInfo(context, &is_exact);
        const std::uintptr_t call = pc - (is_exact ? 0 : 1);
        if (pc == 0) return _URC_END_OF_STACK;
        const std::vector<Range>& own = own_addresses();
        if (std::ranges::none_of(own, [&](const Range& range) { return range.has(call); }))
          to.pc[to.count++] = call;
        const std::size_t most = own.empty() ? kMostFrames : kMostCallers;
        return to.count == most ? _URC_END_OF_STACK : _URC_NO_REASON;
      },
      &found);
  return found;
}

struct Frame {
  std::string function, file;
  int line = 0;
};

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : name;
}

void ignore_error(void*, const char*, int) {}

backtrace_state* debug_information() {
  static backtrace_state* const state =
      ::backtrace_create_state(nullptr, /*threaded=*/1, ignore_error, nullptr);
  return state;
}

// The functions at the address, innermost inlined one first.
std::vector<Frame> frames_at(std::uintptr_t pc) {
  std::vector<Frame> found;
  ::backtrace_pcinfo(
      debug_information(), pc,
      [](void* out, std::uintptr_t, const char* file, int line, const char* function) {
        if (file != nullptr)
          static_cast<std::vector<Frame>*>(out)->push_back(
              {function ? demangled(function) : "", file, line});
        return 0;
      },
      ignore_error, &found);
  if (!found.empty()) return found;
  Dl_info info;
  if (::dladdr(reinterpret_cast<void*>(pc), &info) != 0 && info.dli_sname != nullptr)
    found.push_back({demangled(info.dli_sname), "", 0});
  return found;
}

// Inline functions of the public headers, and core itself where it is linked into the program. Else
// a program may have a directory of core's name.
bool is_of_library(const Frame& frame) {
  const bool is_linked_in = own_addresses().empty();
  const auto is_in = [&](const char* folder) {
    return frame.file.find(folder) != std::string::npos;
  };
  return is_in("include/plugrad/") || (is_linked_in && (is_in("/core/src/") || is_in("/onnx/"))) ||
         frame.function.starts_with("std::");
}

std::vector<Frame> frames_of(const Callers& callers) {
  std::vector<Frame> all;
  for (std::size_t i = 0; i < callers.count; ++i)
    for (Frame& frame : frames_at(callers.pc[i])) {
      if (!is_of_library(frame)) all.push_back(frame);
      if (frame.function == "main" || all.size() == kMostCallers) return all;
    }
  return all;
}

struct Operation {
  std::uint32_t id;
  std::string name;
  Callers callers;
  Frame scope;  // of a SourceScope
};

std::string line_of(const Operation& operation) {
  std::vector<Frame> frames =
      operation.scope.file.empty() ? frames_of(operation.callers) : std::vector{operation.scope};
  const Frame first = frames.empty() ? Frame{} : frames[0];
  std::string stack;
  for (const Frame& frame : frames) {
    if (!stack.empty()) stack += ',';
    append_json_string(stack, fmt::format("{} ({}:{})", frame.function, frame.file, frame.line));
  }
  return JsonLine("operation")
      .add("id", operation.id)
      .add("name", operation.name)
      .add("file", first.file)
      .add("line", first.line)
      .add("function", first.function)
      .add_raw("stack", "[" + stack + "]")
      .str();
}

class Operations {
 public:
  static Operations& instance() {
    static auto* const one = new Operations;
    return *one;
  }

  std::uint32_t of(std::string_view function) {
    Operation operation{0, std::string(function), {}, {}};
    if (const SourceScope* scope = source_of_thread)
      operation.scope = {std::string(scope->function()), std::string(scope->file()),
                         static_cast<int>(scope->line())};
    else
      operation.callers = callers();
    return id_of(std::move(operation));
  }

  std::uint32_t derivative_of(std::uint32_t forward) {
    Operation operation;
    {
      const std::lock_guard lock(mutex_);
      const auto at = by_id_.find(forward);
      if (at == by_id_.end()) return forward;
      operation = *at->second;
    }
    constexpr std::string_view kSuffix = " backward";
    if (!operation.name.ends_with(kSuffix)) operation.name += kSuffix;
    return id_of(std::move(operation));
  }

 private:
  using Key = std::tuple<std::string, Callers, std::string, int, std::string>;

  std::uint32_t id_of(Operation operation) {
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] =
        known_.try_emplace(Key(operation.name, operation.callers, operation.scope.file,
                               operation.scope.line, operation.scope.function));
    if (!is_new) return at->second->id;
    operation.id = new_id();
    at->second = std::make_shared<const Operation>(std::move(operation));
    by_id_[at->second->id] = at->second;
    define_later([made = at->second] { return line_of(*made); });
    return at->second->id;
  }

  std::mutex mutex_;
  std::map<Key, std::shared_ptr<const Operation>> known_;
  std::map<std::uint32_t, std::shared_ptr<const Operation>> by_id_;
};

}  // namespace

std::uint32_t operation(std::string_view function) {
  return Operations::instance().of(function);
}
std::uint32_t derivative_of(std::uint32_t forward) {
  return Operations::instance().derivative_of(forward);
}

}  // namespace trace
}  // namespace plugrad

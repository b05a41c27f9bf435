// Part of the worker program, not of the library: see interposed.h.
#include "conformance/levels/loading/interposed.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

using plugrad::conformance::InterposedCall;

constexpr size_t kMost = 4096;
InterposedCall calls[kMost];
std::atomic<size_t> call_count{0};

// Called from every thread, also before constructors have run.
void note(const char* function, const void* caller, const char* argument) {
  const size_t index = call_count.fetch_add(1);
  if (index >= kMost) return;
  calls[index].function = function;
  calls[index].caller = caller;
  if (argument) std::strncpy(calls[index].argument, argument, sizeof calls[index].argument - 1);
}

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

// True for the language runtime's libraries.
bool is_runtime(const char* path) {
  const char* slash = std::strrchr(path, '/');
  const char* name = slash ? slash + 1 : path;
  for (const char* own : {"libc.so", "libc-", "libstdc++", "libgcc_s", "libpthread", "libasan",
                          "libtsan", "libubsan"})
    if (std::strncmp(name, own, std::strlen(own)) == 0) return true;
  return false;
}

struct Culprit {
  const void* address;
  const char* path;
};

// The innermost caller outside the language runtime and this program, whose name is that by which it
// was started; nullptr if there is none.
Culprit find_culprit() {
  void* frames[64];
  const int count = ::backtrace(frames, 64);
  Dl_info own{};
  ::dladdr(reinterpret_cast<const void*>(&find_culprit), &own);
  for (int i = 0; i < count; ++i) {
    Dl_info info{};
    if (::dladdr(frames[i], &info) && info.dli_fname && info.dli_fbase != own.dli_fbase &&
        !is_runtime(info.dli_fname))
      return {frames[i], info.dli_fname};
  }
  return {nullptr, nullptr};
}

using Write = ssize_t (*)(int, const void*, size_t);
Write real_write() {
  static const auto real = next<Write>("write");
  return real;
}

char watched_plugin[4096];

// True for what a driver prints. Puts a mark before what the plugin prints.
bool is_muted(int file) {
  if (!watched_plugin[0] || (file != STDOUT_FILENO && file != STDERR_FILENO)) return false;
  const Culprit culprit = find_culprit();
  if (!culprit.path) return false;
  if (std::strcmp(culprit.path, watched_plugin) != 0) return true;
  static std::atomic<bool> is_marked{false};
  if (!is_marked.exchange(true))
    static_cast<void>(!real_write()(file, plugrad_plugin_mark, std::strlen(plugrad_plugin_mark)));
  return false;
}

// Stands for stdout or stderr: the C library's printf calls no write() that is defined here.
FILE* watched_stream(int file) {
  static cookie_io_functions_t functions{};
  functions.write = [](void* cookie, const char* bytes, size_t size) {
    return write(static_cast<int>(reinterpret_cast<intptr_t>(cookie)), bytes, size);
  };
  FILE* const stream = fopencookie(reinterpret_cast<void*>(intptr_t{file}), "w", functions);
  if (stream) setvbuf(stream, nullptr, _IONBF, 0);  // the writer is on the stack
  return stream;
}

char* find_variable(const char* name) {
  const size_t size = std::strlen(name);
  for (char** at = environ; at && *at; ++at)
    if (std::strncmp(*at, name, size) == 0 && (*at)[size] == '=') return *at + size + 1;
  return nullptr;
}

}  // namespace

// Visible, so that plugins resolve to these functions instead of the C library's.
#pragma GCC visibility push(default)
extern "C" {

size_t plugrad_interposed_calls(InterposedCall* out, size_t capacity) {
  const size_t count = std::min(call_count.load(), kMost);
  std::copy_n(calls, std::min(count, capacity), out);
  return count;
}

void plugrad_mute_drivers(const char* plugin) {
  std::strncpy(watched_plugin, plugin, sizeof watched_plugin - 1);
  if (FILE* const stream = watched_stream(STDOUT_FILENO)) stdout = stream;
  if (FILE* const stream = watched_stream(STDERR_FILENO)) stderr = stream;
}

ssize_t write(int file, const void* bytes, size_t size) {
  return is_muted(file) ? static_cast<ssize_t>(size) : real_write()(file, bytes, size);
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) noexcept {
  static const auto real =
      next<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  note("pthread_create", find_culprit().address, nullptr);
  return real(thread, attributes, run, argument);
}
char* getenv(const char* name) noexcept {
  note("getenv", __builtin_return_address(0), name);
  return find_variable(name);
}
char* secure_getenv(const char* name) noexcept {
  note("secure_getenv", __builtin_return_address(0), name);
  return find_variable(name);
}
int setenv(const char* name, const char* value, int replace) noexcept {
  note("setenv", __builtin_return_address(0), name);
  return next<int (*)(const char*, const char*, int)>("setenv")(name, value, replace);
}
int unsetenv(const char* name) noexcept {
  note("unsetenv", __builtin_return_address(0), name);
  return next<int (*)(const char*)>("unsetenv")(name);
}
int putenv(char* text) noexcept {
  note("putenv", __builtin_return_address(0), text);
  return next<int (*)(char*)>("putenv")(text);
}
char* setlocale(int category, const char* locale) noexcept {
  if (locale) note("setlocale", __builtin_return_address(0), locale);
  return next<char* (*)(int, const char*)>("setlocale")(category, locale);
}
int fesetround(int mode) noexcept {
  note("fesetround", __builtin_return_address(0), nullptr);
  return next<int (*)(int)>("fesetround")(mode);
}
int chdir(const char* path) noexcept {
  note("chdir", __builtin_return_address(0), path);
  return next<int (*)(const char*)>("chdir")(path);
}

}  // extern "C"
#pragma GCC visibility pop

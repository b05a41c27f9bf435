// A minimal plugin host, for tests of components without the runtime.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "plugrad/plugin_api/compiler.h"
#include "plugrad/plugin_api/runner.h"
#include "plugrad/sdk/guard.h"

namespace plugrad::testing {

inline void* open_library(const std::string& path) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(::dlerror());
  return library;
}

// An error struct with room for its message.
struct ErrorText {
  ErrorText() {
    PGR_INIT(error, ERROR);
    error.message = buffer;
    error.message_capacity = sizeof buffer;
  }
  std::string text() const { return {buffer, error.message_size}; }
  pgr_error error;
  char buffer[1024];
};

inline std::string take(pgr_blob& blob) {
  std::string bytes(static_cast<const char*>(blob.data), blob.size);
  if (blob.release) blob.release(&blob);
  return bytes;
}

// The interface of the component library at `path`.
inline const void* open_component(const std::string& path, const char* interface_name) {
  const auto entry = reinterpret_cast<pgr_component_entry_fn>(
      ::dlsym(open_library(path), PGR_COMPONENT_ENTRY_NAME));
  if (!entry) throw std::runtime_error(path + " exports no component");
  const pgr_string name = sdk::to_pgr(interface_name);
  const void* table = nullptr;
  ErrorText error;
  if (entry(nullptr, &name, PGR_API_MINOR, &table, &error.error) != PGR_STATUS_OK)
    throw std::runtime_error(error.text());
  return table;
}

// A host table whose parallel_for starts threads on each call.
class StubHost {
 public:
  explicit StubHost(std::string library_dir) : library_dir_(std::move(library_dir)) {
    PGR_INIT(api, HOST_API);
    api.api_major = PGR_API_MAJOR;
    api.api_minor = PGR_API_MINOR;
    api.host = reinterpret_cast<pgr_host*>(this);
    api.log = [](pgr_host*, uint32_t, const pgr_string*) {};
    api.alloc = [](pgr_host*, uint64_t size, uint64_t align) {
      return std::aligned_alloc(align, (size + align - 1) / align * align);
    };
    api.free = [](pgr_host*, void* pointer) { std::free(pointer); };
    api.thread_count = [](pgr_host*) { return uint32_t{2}; };
    api.parallel_for = parallel_for;
    api.open_component = open;
  }
  pgr_host_api api;
  int components_opened = 0;

 private:
  static void parallel_for(pgr_host*, uint64_t count, uint64_t, pgr_span_fn fn, void* context) {
    const uint64_t half = count / 2;
    std::thread other([&] { fn(context, half, count, 1); });
    if (half > 0) fn(context, 0, half, 0);
    other.join();
  }
  static pgr_status open(pgr_host* host, const pgr_string* library, const pgr_string* name,
                         uint32_t, const void** out_table, pgr_error* error) {
    auto* self = reinterpret_cast<StubHost*>(host);
    return sdk::guard(error, [&] {
      ++self->components_opened;
      *out_table =
          open_component(self->library_dir_ + "/lib" + std::string(sdk::to_view(library)) + ".so",
                         std::string(sdk::to_view(name)).c_str());
    });
  }
  std::string library_dir_;
};

}  // namespace plugrad::testing

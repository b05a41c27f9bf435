// A minimal host: a table of host functions, and a plugin opened by path.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "plugrad/plugin_api/compiler.h"
#include "plugrad/plugin_api/runner.h"

namespace plugrad::abi {

inline void host_log(pgr_host*, uint32_t, const pgr_string*) {}
inline void* host_alloc(pgr_host*, uint64_t size, uint64_t align) {
  void* pointer = nullptr;
  return posix_memalign(&pointer, align < 8 ? 8 : align, size) == 0 ? pointer : nullptr;
}
inline void host_free(pgr_host*, void* pointer) {
  std::free(pointer);
}
inline uint32_t host_thread_count(pgr_host*) {
  return 1;
}
inline void host_parallel_for(pgr_host*, uint64_t count, uint64_t, pgr_span_fn fn, void* context) {
  if (count > 0) fn(context, 0, count, 0);
}
inline pgr_status host_cache_get(pgr_host*, const pgr_string*, pgr_blob*, pgr_error*) {
  return PGR_STATUS_NOT_FOUND;
}
inline pgr_status host_cache_put(pgr_host*, const pgr_string*, const void*, uint64_t, pgr_error*) {
  return PGR_STATUS_OK;
}
inline pgr_status host_open_component(pgr_host*, const pgr_string*, const pgr_string*, uint32_t,
                                      const void**, pgr_error*) {
  return PGR_STATUS_NOT_FOUND;
}

inline pgr_host_api make_host(uint32_t minor = PGR_API_MINOR) {
  pgr_host_api host;
  PGR_INIT(host, HOST_API);
  host.api_major = PGR_API_MAJOR;
  host.api_minor = minor;
  host.log = host_log;
  host.alloc = host_alloc;
  host.free = host_free;
  host.thread_count = host_thread_count;
  host.parallel_for = host_parallel_for;
  host.cache_get = host_cache_get;
  host.cache_put = host_cache_put;
  host.open_component = host_open_component;
  return host;
}

inline const pgr_host_api& shared_host() {
  static const pgr_host_api host = make_host();
  return host;
}

struct Error {
  std::array<char, 512> text{};
  pgr_error error;
  Error() {
    PGR_INIT(error, ERROR);
    error.message = text.data();
    error.message_capacity = text.size();
  }
  pgr_error* get() { return &error; }
  std::string message() const { return text.data(); }
};

inline pgr_string to_pgr(std::string_view text) {
  return {text.data(), text.size()};
}

inline std::vector<std::string> plugin_paths() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(PLUGIN_DIRECTORY))
    if (entry.path().extension() == ".so") paths.push_back(entry.path());
  return paths;
}

inline pgr_plugin_entry_fn entry_of(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) ADD_FAILURE() << dlerror();
  return library ? reinterpret_cast<pgr_plugin_entry_fn>(dlsym(library, PGR_PLUGIN_ENTRY_NAME))
                 : nullptr;
}

inline pgr_hello make_hello(const pgr_host_api& host, const std::string& path) {
  pgr_hello hello;
  PGR_INIT(hello, HELLO);
  hello.host = &host;
  hello.plugin_path = to_pgr(path);
  return hello;
}

// The plugin's table, from a plain hello.
inline const pgr_plugin_api* open_plugin(const std::string& path) {
  pgr_hello hello = make_hello(shared_host(), path);
  const pgr_plugin_api* api = nullptr;
  Error error;
  EXPECT_EQ(entry_of(path)(&hello, &api, error.get()), PGR_STATUS_OK) << error.message();
  return api;
}

template <typename Table>
const Table* query(const pgr_plugin_api* api, std::string_view name) {
  const void* table = nullptr;
  const pgr_string text = to_pgr(name);
  Error error;
  EXPECT_EQ(api->query_interface(api->plugin, &text, PGR_API_MINOR, &table, error.get()),
            PGR_STATUS_OK)
      << error.message();
  return static_cast<const Table*>(table);
}

}  // namespace plugrad::abi

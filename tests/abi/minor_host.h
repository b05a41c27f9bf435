// A host built with the headers of the next minor (next_minor.py) that imitates any earlier minor:
// each struct passed to plugins has that minor's size and ends at an inaccessible page, and only
// that minor's fields of a plugin's struct are read.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "abi/guarded.h"
#include "abi_minor_sizes.h"
#include "plugrad/plugin_api/compiler.h"
#include "plugrad/plugin_api/graph.h"
#include "plugrad/plugin_api/queue.h"

namespace plugrad::abi {

/// Size of a struct at a minor; its sizeof at the minor of these headers.
inline uint32_t size_at(uint32_t minor, uint32_t struct_id, size_t now) {
  for (const auto& row : kMinorSizes)
    if (row.minor == minor && row.struct_id == struct_id) return row.size;
  return static_cast<uint32_t>(now);
}

inline std::vector<uint32_t> all_minors() {
  std::vector<uint32_t> out;
  for (const auto& row : kMinorSizes)
    if (out.empty() || out.back() != row.minor) out.push_back(row.minor);
  out.push_back(PGR_API_MINOR);
  return out;
}

/// A struct at a minor's size.
template <class T, uint32_t id>
class Cut {
 public:
  explicit Cut(uint32_t minor) : bytes_(size_at(minor, id, sizeof(T))) {
    const uint32_t size = size_at(minor, id, sizeof(T));
    std::memset(bytes_.data(), 0, size);
    auto* header = reinterpret_cast<pgr_struct_header*>(bytes_.data());
    header->struct_size = size;
    header->struct_id = id;
  }
  T* get() const { return reinterpret_cast<T*>(bytes_.data()); }
  T* operator->() const { return get(); }

 private:
  GuardedBytes bytes_;
};
#define PGR_CUT(NAME, type) using Cut_##NAME = Cut<type, PGR_STRUCT_##NAME>;
#define PGR_CUT_ROW(NAME, type, number) PGR_CUT(NAME, type)
PGR_STRUCTS(PGR_CUT_ROW)
#undef PGR_CUT_ROW
#undef PGR_CUT

/// The part of a plugin's table that a host of that minor copies.
template <class T>
T known_part(uint32_t minor, uint32_t id, const void* theirs) {
  pgr_struct_header header;
  std::memcpy(&header, theirs, sizeof header);
  EXPECT_EQ(header.struct_id, id);
  T out{};
  std::memcpy(&out, theirs, std::min(header.struct_size, size_at(minor, id, sizeof(T))));
  return out;
}

inline pgr_string to_pgr(std::string_view text) {
  return {text.data(), text.size()};
}

/// The host's table and functions, also passed to components.
class MinorHost {
 public:
  explicit MinorHost(uint32_t minor) : minor_(minor), table_(minor) {
    table_->api_major = PGR_API_MAJOR;
    table_->api_minor = minor;
    table_->host = reinterpret_cast<pgr_host*>(this);
    table_->log = [](pgr_host*, uint32_t, const pgr_string*) {};
    table_->alloc = [](pgr_host*, uint64_t size, uint64_t align) -> void* {
      void* out = nullptr;
      return posix_memalign(&out, align < 8 ? 8 : align, size) == 0 ? out : nullptr;
    };
    table_->free = [](pgr_host*, void* pointer) { std::free(pointer); };
    table_->thread_count = [](pgr_host*) { return 1u; };
    table_->parallel_for = [](pgr_host*, uint64_t count, uint64_t, pgr_span_fn fn, void* context) {
      if (count > 0) fn(context, 0, count, 0);
    };
    table_->cache_get = [](pgr_host*, const pgr_string*, pgr_blob*, pgr_error*) -> pgr_status {
      return PGR_STATUS_NOT_FOUND;
    };
    table_->cache_put = [](pgr_host*, const pgr_string*, const void*, uint64_t,
                           pgr_error*) -> pgr_status { return PGR_STATUS_OK; };
    table_->open_component = open_component;
  }
  uint32_t minor() const { return minor_; }
  const pgr_host_api* table() const { return table_.get(); }

  static pgr_status open_component(pgr_host* host, const pgr_string* library,
                                   const pgr_string* interface_name, uint32_t interface_minor,
                                   const void** out, pgr_error* error) {
    const std::string path = std::string(COMPONENT_DIRECTORY) + "/lib" +
                             std::string(library->data, library->size) + ".so";
    void* opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!opened) return PGR_STATUS_NOT_FOUND;
    const auto entry =
        reinterpret_cast<pgr_component_entry_fn>(dlsym(opened, PGR_COMPONENT_ENTRY_NAME));
    const auto* self = reinterpret_cast<const MinorHost*>(host);
    return entry(self->table(), interface_name, interface_minor, out, error);
  }

 private:
  const uint32_t minor_;
  Cut_HOST_API table_;
};

}  // namespace plugrad::abi

#include "conformance/plugin/host.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "conformance/plugin/span_pool.h"
#include "plugrad/sdk/guard.h"

namespace plugrad::conformance {

namespace fs = std::filesystem;

// The functions of the host table; `pgr_host` is a Host.
struct HostCalls {
  static Host& self(pgr_host* host) { return *reinterpret_cast<Host*>(host); }

  static void log(pgr_host* host, uint32_t level, const pgr_string* message) {
    const std::lock_guard lock(self(host).mutex_);
    self(host).log_.push_back({level, std::string(sdk::to_view(message))});
  }

  static void* alloc(pgr_host* host, uint64_t size_bytes, uint64_t align_bytes) {
    void* pointer = nullptr;
    const uint64_t align = std::max<uint64_t>(align_bytes, sizeof(void*));
    if (posix_memalign(&pointer, align, size_bytes) != 0) return nullptr;
    const std::lock_guard lock(self(host).mutex_);
    self(host).allocations_[pointer] = size_bytes;
    return pointer;
  }

  static void free(pgr_host* host, void* pointer) {
    if (!pointer) return;
    {
      const std::lock_guard lock(self(host).mutex_);
      self(host).allocations_.erase(pointer);
    }
    std::free(pointer);
  }

  static uint32_t thread_count(pgr_host*) { return SpanPool::instance().thread_count(); }

  static void parallel_for(pgr_host*, uint64_t count, uint64_t min_span, pgr_span_fn fn,
                           void* context) {
    SpanPool::instance().run(count, min_span, fn, context);
  }

  static pgr_status cache_get(pgr_host* host, const pgr_string* key, pgr_blob* out,
                              pgr_error* error) {
    return sdk::guard(error, [&] {
      const std::lock_guard lock(self(host).mutex_);
      const auto found = self(host).cache_.find(std::string(sdk::to_view(key)));
      sdk::require(found != self(host).cache_.end(), PGR_STATUS_NOT_FOUND, "not in the cache");
      sdk::give_blob(out, found->second);
    });
  }

  static pgr_status cache_put(pgr_host* host, const pgr_string* key, const void* data,
                              uint64_t size, pgr_error* error) {
    return sdk::guard(error, [&] {
      const std::lock_guard lock(self(host).mutex_);
      self(host).cache_[std::string(sdk::to_view(key))] =
          std::string(static_cast<const char*>(data), size);
    });
  }

  static pgr_status open_component(pgr_host* host, const pgr_string* library,
                                   const pgr_string* interface_name, uint32_t minor,
                                   const void** out_table, pgr_error* error);
};

namespace {

// Searched next to the plugin, in the library directory of an installed tree, and next to this
// program.
std::string find_component(const std::string& library_path, const std::string& name) {
  const fs::path plugin = fs::path(library_path).parent_path();
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& directory : {plugin, plugin / "../..", program, program / "../lib"}) {
    const fs::path path = fs::canonical(directory / ("lib" + name + ".so"), error);
    if (!error) return path.string();
  }
  throw sdk::StatusError(PGR_STATUS_NOT_FOUND, "lib" + name + ".so is neither beside " +
                                                   library_path +
                                                   " nor in the library directory of this program");
}

pgr_component_entry_fn component_entry(const std::string& path) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* symbol = library ? ::dlsym(library, PGR_COMPONENT_ENTRY_NAME) : nullptr;
  if (!symbol) throw sdk::StatusError(PGR_STATUS_IO_ERROR, ::dlerror());
  return reinterpret_cast<pgr_component_entry_fn>(symbol);
}

}  // namespace

pgr_status HostCalls::open_component(pgr_host* host, const pgr_string* library,
                                     const pgr_string* interface_name, uint32_t minor,
                                     const void** out_table, pgr_error* error) {
  pgr_status status = PGR_STATUS_OK;
  const pgr_status outer = sdk::guard(error, [&] {
    const std::string name(sdk::to_view(library));
    sdk::require(!name.empty() && name.find('/') == std::string::npos, PGR_STATUS_INVALID_ARGUMENT,
                 "a component is named without a directory");
    const std::string path = find_component(self(host).library_path_, name);
    status = component_entry(path)(&Host::of(path).api(), interface_name, minor, out_table, error);
  });
  return outer == PGR_STATUS_OK ? status : outer;
}

Host::Host(std::string library_path) : library_path_(std::move(library_path)) {
  PGR_INIT(api_, HOST_API);
  api_.api_major = PGR_API_MAJOR;
  api_.api_minor = PGR_API_MINOR;
  api_.host = reinterpret_cast<pgr_host*>(this);
  api_.log = HostCalls::log;
  api_.alloc = HostCalls::alloc;
  api_.free = HostCalls::free;
  api_.thread_count = HostCalls::thread_count;
  api_.parallel_for = HostCalls::parallel_for;
  api_.cache_get = HostCalls::cache_get;
  api_.cache_put = HostCalls::cache_put;
  api_.open_component = HostCalls::open_component;
}

Host& Host::of(const std::string& library_path) {
  static std::mutex mutex;
  static auto* hosts = new std::map<std::string, std::unique_ptr<Host>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Host>& host = (*hosts)[library_path];
  if (!host) host.reset(new Host(library_path));
  return *host;
}

std::vector<LogLine> Host::log() const {
  const std::lock_guard lock(mutex_);
  return log_;
}

uint64_t Host::live_allocations() const {
  const std::lock_guard lock(mutex_);
  return allocations_.size();
}

uint64_t Host::live_bytes() const {
  const std::lock_guard lock(mutex_);
  uint64_t bytes = 0;
  for (const auto& [pointer, size] : allocations_) bytes += size;
  return bytes;
}

}  // namespace plugrad::conformance

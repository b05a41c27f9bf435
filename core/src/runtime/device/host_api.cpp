#include "runtime/device/host_api.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <tuple>

#include "base/hash.h"
#include "base/log.h"
#include "base/storage/disk_cache.h"
#include "base/thread_pool.h"
#include "runtime/discovery/file_permissions.h"
#include "runtime/status.h"

// The target of `pgr_host *`: identifies the calling library.
struct pgr_host {
  std::string library_path;
  pgr_host_api api;
};

namespace plugrad::runtime {
namespace {

namespace fs = std::filesystem;

template <class F>
pgr_status no_throw(pgr_error* error, const F& f) noexcept {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return set_error(error, PGR_STATUS_OUT_OF_HOST_MEMORY, "host memory ran out");
  } catch (const std::exception& e) {
    return set_error(error, PGR_STATUS_INTERNAL, e.what());
  }
}

constexpr std::uint64_t kLongestLog = 64 << 10;  // bytes of one message
constexpr std::uint64_t kLongestKey = 1 << 20;   // bytes of a cache key or of a name

void host_log(pgr_host* host, std::uint32_t level, const pgr_string* message) {
  if (!host || !message || !message->data) return;
  no_throw(nullptr, [&] {
    std::string who = fs::path(host->library_path).stem().string();
    LogLevel levels[] = {LogLevel::Error, LogLevel::Warning, LogLevel::Info, LogLevel::Debug};
    const bool is_long = message->size > kLongestLog;  // then the size may be wrong, too
    const std::string_view text =
        is_long ? std::string_view(message->data, strnlen(message->data, kLongestLog))
                : view(*message);
    log_line(levels[std::min(level, PGR_LOG_DEBUG)],
             fmt::format(
                 "{}: {}{}", who, text,
                 is_long ? fmt::format(" … (the first {} of {} bytes)", text.size(), message->size)
                         : ""));
    return PGR_STATUS_OK;
  });
}

void* host_alloc(pgr_host*, std::uint64_t size_bytes, std::uint64_t align_bytes) {
  void* pointer = nullptr;
  std::uint64_t align = std::max<std::uint64_t>(align_bytes, sizeof(void*));
  return posix_memalign(&pointer, align, size_bytes) == 0 ? pointer : nullptr;
}

void host_free(pgr_host*, void* pointer) {
  std::free(pointer);
}

std::uint32_t host_thread_count(pgr_host*) {
  return static_cast<std::uint32_t>(thread_count());
}

// Spans run on threads that outlive the call, whose floating-point state they must leave alone.
void host_parallel_for(pgr_host*, std::uint64_t count, std::uint64_t min_span, pgr_span_fn fn,
                       void* context) {
  struct Call {
    pgr_span_fn fn;
    void* context;
  } call{fn, context};
  const SpanFunction span = [](void* of, std::uint64_t begin, std::uint64_t end,
                               std::uint32_t worker) {
    const FloatModeScope float_mode;
    const Call& c = *static_cast<Call*>(of);
    c.fn(c.context, begin, end, worker);
  };
  parallel_for(count, min_span, span, &call);
}

bool is_text(const pgr_string* text) {
  return text && (text->data || text->size == 0) && text->size <= kLongestKey;
}

pgr_status refuse_text(pgr_error* error, std::string_view what) {
  return set_error(error, PGR_STATUS_INVALID_ARGUMENT,
                   fmt::format("{} is NULL or longer than {} bytes", what, kLongestKey));
}

// Plugins share the disk cache, but each has its own keys.
std::string plugin_key(pgr_host* host, const pgr_string* key) {
  std::string out = "plugin " + fs::path(host->library_path).filename().string();
  out += '\0';
  out.append(view(*key));
  return out;
}

pgr_status host_cache_get(pgr_host* host, const pgr_string* key, pgr_blob* out, pgr_error* error) {
  if (!host || !is_text(key)) return refuse_text(error, "the key");
  if (!out) return set_error(error, PGR_STATUS_INVALID_ARGUMENT, "there is no blob for the entry");
  return no_throw(error, [&]() -> pgr_status {
    auto found = disk_cache().get(as_bytes(plugin_key(host, key)));
    if (!found) return set_error(error, PGR_STATUS_NOT_FOUND, "not in the cache");
    auto owner = std::make_unique<std::vector<std::byte>>(std::move(*found));
    out->data = owner->data();
    out->size = owner->size();
    out->owner = owner.release();
    out->release = [](pgr_blob* blob) {
      delete static_cast<std::vector<std::byte>*>(blob->owner);
      blob->owner = nullptr;
      blob->data = nullptr;
      blob->size = 0;
    };
    return PGR_STATUS_OK;
  });
}

pgr_status host_cache_put(pgr_host* host, const pgr_string* key, const void* data,
                          std::uint64_t size, pgr_error* error) {
  if (!host || !is_text(key)) return refuse_text(error, "the key");
  if ((!data && size > 0) || size > kMostBlobBytes)
    return set_error(error, PGR_STATUS_INVALID_ARGUMENT,
                     fmt::format("an entry of {} bytes{}: at most {} are kept", size,
                                 data ? "" : " at NULL", kMostBlobBytes));
  return no_throw(error, [&] {
    disk_cache().put(as_bytes(plugin_key(host, key)), {static_cast<const std::byte*>(data), size});
    return PGR_STATUS_OK;  // the cache has already warned if it cannot be written
  });
}

// Searches beside the calling library, in the library directory above a plugins directory, and
// beside this library.
std::string find_component(const std::string& library_path, std::string_view name) {
  fs::path asking = fs::path(library_path).parent_path();
  fs::path own = own_directory();
  std::string file = fmt::format("lib{}.so", name);
  for (const fs::path& directory : {asking, asking / "../..", own, own / "../lib"}) {
    std::error_code error;
    fs::path path = fs::canonical(directory / file, error);
    if (!error && fs::is_regular_file(path, error)) return path.string();
  }
  return "";
}

// Tables by component, interface and version; a component's entry is called once for each.
struct Components {
  std::mutex mutex;
  std::map<std::tuple<std::string, std::string, std::uint32_t>, const void*> tables;
};

pgr_status open_table(const std::string& path, const pgr_string* interface_name,
                      std::uint32_t minor, const void** out, pgr_error* error) {
  static auto* components = new Components;  // plugins may call until the process ends
  std::lock_guard lock(components->mutex);
  const void*& table = components->tables[{path, copied(*interface_name), minor}];
  if (!table) {
    const FloatStateScope float_state;  // of loading and of the entry
    std::string reason = unsafe_permissions(path);
    void* symbol =
        reason.empty() ? open_library_symbol(path, PGR_COMPONENT_ENTRY_NAME, reason) : nullptr;
    if (!symbol) return set_error(error, PGR_STATUS_IO_ERROR, path + ": " + reason);
    auto entry = reinterpret_cast<pgr_component_entry_fn>(symbol);
    pgr_status status = entry(host_api_for(path), interface_name, minor, &table, error);
    if (status != PGR_STATUS_OK) return status;
  }
  *out = table;
  return PGR_STATUS_OK;
}

pgr_status host_open_component(pgr_host* host, const pgr_string* library,
                               const pgr_string* interface_name, std::uint32_t interface_minor,
                               const void** out_table, pgr_error* error) {
  if (!host || !is_text(library)) return refuse_text(error, "the component's name");
  if (!is_text(interface_name)) return refuse_text(error, "the interface's name");
  if (!out_table)
    return set_error(error, PGR_STATUS_INVALID_ARGUMENT, "there is no place for the table");
  return no_throw(error, [&]() -> pgr_status {
    std::string name = copied(*library);
    if (name.empty() || name.find('/') != name.npos)
      return set_error(error, PGR_STATUS_INVALID_ARGUMENT,
                       "a component is named without a directory");
    std::string path = find_component(host->library_path, name);
    if (path.empty())
      return set_error(error, PGR_STATUS_NOT_FOUND,
                       fmt::format("lib{}.so is neither beside {} nor in the library directory",
                                   name, host->library_path));
    return open_table(path, interface_name, interface_minor, out_table, error);
  });
}

std::unique_ptr<pgr_host> make_host(const std::string& library_path) {
  auto host = std::make_unique<pgr_host>();
  host->library_path = library_path;
  pgr_host_api& api = host->api;
  PGR_INIT(api, HOST_API);
  api.api_major = PGR_API_MAJOR;
  api.api_minor = PGR_API_MINOR;
  api.host = host.get();
  api.log = host_log;
  api.alloc = host_alloc;
  api.free = host_free;
  api.thread_count = host_thread_count;
  api.parallel_for = host_parallel_for;
  api.cache_get = host_cache_get;
  api.cache_put = host_cache_put;
  api.open_component = host_open_component;
  return host;
}

}  // namespace

const pgr_host_api* host_api_for(const std::string& library_path) {
  static std::mutex mutex;
  static auto* hosts = new std::map<std::string, std::unique_ptr<pgr_host>>;  // never destroyed
  std::lock_guard lock(mutex);
  std::unique_ptr<pgr_host>& host = (*hosts)[library_path];
  if (!host) host = make_host(library_path);
  return &host->api;
}

std::string own_file() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&own_file), &info) || !info.dli_fname) return "";
  std::error_code error;
  fs::path path = fs::canonical(info.dli_fname, error);
  // If the program was started by a bare name, dladdr gives only that name.
  if (error) path = fs::canonical("/proc/self/exe", error);
  return error ? "" : path.string();
}

std::string own_directory() {
  return fs::path(own_file()).parent_path().string();
}

std::string library_identity(const std::string& path) {
  struct stat info;
  if (path.empty() || stat(path.c_str(), &info) != 0) return "-";
  return fmt::format("{}:{}:{}.{:09}", info.st_ino, info.st_size, info.st_mtim.tv_sec,
                     info.st_mtim.tv_nsec);
}

std::string component_path(const std::string& library_path, std::string_view component) {
  return find_component(library_path, component);
}

const void* open_component_for(const std::string& library_path, const std::string& component,
                               const std::string& interface_name, std::string& reason) {
  const pgr_host_api* host = host_api_for(library_path);
  pgr_string library = c_string(component), name = c_string(interface_name);
  const void* table = nullptr;
  CallError error;
  pgr_status status =
      host->open_component(host->host, &library, &name, PGR_API_MINOR, &table, error.get());
  if (status == PGR_STATUS_OK && table) return table;
  reason = fmt::format("{} ({})", error.message(), status_name(status));
  return nullptr;
}

}  // namespace plugrad::runtime

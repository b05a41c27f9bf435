// Computes the part of cache keys that code depends on besides the kernel: the files of core,
// plugin and renderer, the device's capabilities, its compiler.
#include <fmt/format.h>

#include "base/hash.h"
#include "runtime/device/device_state.h"
#include "runtime/device/host_api.h"
#include "runtime/device/plugin.h"

namespace plugrad::runtime {
namespace {

template <class Struct>
std::string bytes_without_pointers(Struct copy) {
  copy.next = nullptr;
  if constexpr (requires { copy.tensor_cores; }) copy.tensor_cores = nullptr;
  return {reinterpret_cast<const char*>(&copy), sizeof copy};
}

std::string capabilities(const DeviceState& s) {
  std::string bytes = bytes_without_pointers(s.caps);
  for (const pgr_tensor_core& core : s.tensor_cores) bytes += bytes_without_pointers(core);
  return hash128(as_bytes(bytes)).hex();
}

}  // namespace

std::string make_identity(DeviceState& s) {
  Blob compiler;
  if (s.has_compiler)
    s.calls.check("cache_identity", [&](pgr_error* e) {
      return s.compiler.cache_identity(s.handle, compiler.get(), e);
    });
  compiler.check(s.name, "cache_identity");
  const std::string& plugin = s.plugin->path();
  return fmt::format("{}/{}/core {}/plugin {}/renderer {}/caps {}/{}", s.plugin_name, s.info.arch,
                     library_identity(own_file()), library_identity(plugin),
                     library_identity(component_path(plugin, "plugrad_render")), capabilities(s),
                     compiler.text());
}

}  // namespace plugrad::runtime

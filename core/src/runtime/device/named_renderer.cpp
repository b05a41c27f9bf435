// Uses the SDK's renderer for a plugin: opens it as a component and passes it options.
#include "runtime/device/named_renderer.h"

#include <fmt/format.h>

#include "runtime/device/device_state.h"
#include "runtime/device/host_api.h"
#include "runtime/device/plugin.h"

namespace plugrad::runtime {
namespace {

constexpr const char* kComponent = "plugrad_render";

pgr_option option_of(std::string_view key, std::string_view value) {
  pgr_option option;
  PGR_INIT(option, OPTION);
  option.key = c_string(key);
  option.value = c_string(value);
  return option;
}

}  // namespace

void adopt_named_renderer(DeviceState& s) {
  const Manifest& manifest = s.plugin->manifest();
  if (manifest.renderer.empty()) return;
  std::string reason;
  const void* table = open_component_for(s.plugin->path(), kComponent, "pgr.renderer", reason);
  const char* wrong = table ? copy_table(table, PGR_STRUCT_RENDERER_API, s.renderer) : nullptr;
  if (wrong) reason = wrong;
  if (!table || wrong)
    throw_status(s.name, "open_component", PGR_STATUS_NOT_FOUND,
                 fmt::format("its manifest names the renderer \"{}\" of lib{}.so: {}",
                             manifest.renderer, kComponent, reason));
  fill_stubs(s.renderer);
  s.has_renderer = s.renders_by_component = true;
}

std::vector<pgr_option> renderer_options(const Manifest& manifest) {
  std::vector<pgr_option> out{option_of("dialect", manifest.renderer)};
  for (const auto& [key, value] : manifest.renderer_options) out.push_back(option_of(key, value));
  return out;
}

}  // namespace plugrad::runtime

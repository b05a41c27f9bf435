#include "runtime/device/device_state.h"

#include <algorithm>

#include "base/check.h"
#include "base/settings.h"
#include "runtime/device/device_facts.h"
#include "runtime/device/named_renderer.h"
#include "runtime/device/plugin.h"
#include "runtime/queue/exit_wait.h"

namespace plugrad::runtime {
namespace {

template <class Table>
void require_interface(DeviceState& s, const char* name, std::uint32_t struct_id, Table& table) {
  if (!s.plugin->interface(name, struct_id, table))
    throw_status(s.name, "query_interface", PGR_STATUS_INCOMPATIBLE,
                 fmt::format("the plugin lacks the mandatory interface {}", name));
}

template <class... Slots>
void require_slots(const DeviceState& s, const char* interface_name, Slots... slots) {
  if (!(offered(slots) && ...))
    throw_status(s.name, interface_name, PGR_STATUS_INCOMPATIBLE,
                 "a mandatory function is missing");
}

void query_interfaces(DeviceState& s) {
  require_interface(s, "pgr.device", PGR_STRUCT_DEVICE_API, s.device);
  require_interface(s, "pgr.allocator", PGR_STRUCT_ALLOCATOR_API, s.allocator_api);
  require_interface(s, "pgr.runner", PGR_STRUCT_RUNNER_API, s.runner);
  s.has_renderer = s.plugin->interface("pgr.renderer", PGR_STRUCT_RENDERER_API, s.renderer);
  if (!s.has_renderer) adopt_named_renderer(s);
  s.has_compiler = s.plugin->interface("pgr.compiler", PGR_STRUCT_COMPILER_API, s.compiler);
  s.is_asynchronous = s.plugin->interface("pgr.queue", PGR_STRUCT_QUEUE_API, s.queue);
  s.has_graph = s.plugin->interface("pgr.graph", PGR_STRUCT_GRAPH_API, s.graph);
  s.has_profile = s.plugin->interface("pgr.profile", PGR_STRUCT_PROFILE_API, s.profile);
  require_slots(s, "pgr.device", s.device.info, s.device.caps);
  const pgr_allocator_api& a = s.allocator_api;
  require_slots(s, "pgr.allocator", a.alloc, a.free, a.copy_in, a.copy_out);
  require_slots(s, "pgr.runner", s.runner.load, s.runner.kernel, s.runner.launch);
}

void list_claims(DeviceState& s) {
  s.claims = {"pgr.device", "pgr.allocator", "pgr.runner"};
  if (s.has_renderer && !s.renders_by_component) s.claims.push_back("pgr.renderer");
  if (s.has_compiler) s.claims.push_back("pgr.compiler");
  if (s.is_asynchronous) s.claims.push_back("pgr.queue");
  if (s.has_graph) s.claims.push_back("pgr.graph");
  if (s.has_profile) s.claims.push_back("pgr.profile");
}

void read_info(DeviceState& s) {
  pgr_device_info info;
  PGR_INIT(info, DEVICE_INFO);
  s.calls.check("info", [&](pgr_error* e) { return s.device.info(s.handle, &info, e); });
  s.info = checked_info(s.name, info);
}

void read_caps(DeviceState& s) {
  PGR_INIT(s.caps, DEVICE_CAPS);
  s.calls.check("caps", [&](pgr_error* e) { return s.device.caps(s.handle, &s.caps, e); });
  check_caps(s.name, s.caps, s.tensor_cores);
}

std::vector<pgr_option> option_records(const PluginOptions& options) {
  std::vector<pgr_option> out;
  for (const auto& [key, value] : options) {
    pgr_option option;
    PGR_INIT(option, OPTION);
    option.key = c_string(key);
    option.value = c_string(value);
    out.push_back(option);
  }
  return out;
}

}  // namespace

bool DeviceState::keeps_nothing() const {
  return std::ranges::any_of(layers, [](const auto& layer) { return layer->wants_every_free(); });
}

bool DeviceState::is_hung() const {
  return std::ranges::any_of(layers, [](const auto& layer) { return layer->is_hung(); });
}

void DeviceStateDelete::operator()(DeviceState* state) const {
  state->shut_down();
  if (!state->is_hung()) delete state;
}

DeviceState::~DeviceState() {
  shut_down();
}

// A forked child only drops the device: threads and driver state stayed in the parent.
void DeviceState::shut_down() noexcept {
  forget_at_exit(*this);
  if (!calls.is_reachable()) return;
  if (plugin_handle && is_asynchronous && offered(device.synchronize))
    calls.quietly("synchronize", [&] { device.synchronize(handle, nullptr); });
  trace.shut_down();
  transfers.shut_down();
  timeline.shut_down();
  lists.each([](LaunchList& list) { list.forget_graph(); });
  kernels.clear();
  loaded.each([&](Kernel& kernel) {
    calls.quietly("unload", [&] { runner.unload(handle, kernel.program()); });
  });
  buffers.each([&](Buffer& buffer) {
    calls.quietly("free", [&] { allocator_api.free(handle, buffer.plain_handle()); });
  });
  allocator.reset();
  calls.mark_shut_down();
  if (is_hung()) return;
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer)
    calls.quietly("close", [&] { (*layer)->closing(); });
  if (plugin_handle)
    calls.quietly("device_close",
                  [&] { plugin->api().device_close(plugin->api().plugin, plugin_handle); });
}

DeviceStatePtr make_device_state(const Plugin& plugin, std::uint32_t physical_index,
                                 std::uint32_t number, const PluginOptions& options,
                                 const LayerList& layers) {
  DeviceStatePtr s(new DeviceState(fmt::format("{}:{}", plugin.device_name(), number)));
  s->plugin = &plugin;
  s->plugin_name = plugin.device_name();
  s->index = number;
  {
    const WatchedCall watched(s->calls, "query_interface");
    query_interfaces(*s);
  }
  const pgr_plugin_api& api = plugin.api();
  std::vector<pgr_option> pairs = option_records(options);
  s->calls.check("device_open", [&](pgr_error* e) {
    return api.device_open(api.plugin, physical_index, pairs.data(),
                           static_cast<std::uint32_t>(pairs.size()), sizeof(pgr_option),
                           &s->plugin_handle, e);
  });
  if (!s->plugin_handle)
    throw_status(s->name, "device_open", PGR_STATUS_INTERNAL, "it answered OK and gave no device");
  s->handle = s->plugin_handle;
  s->renderer_handle = s->renders_by_component ? nullptr : s->plugin_handle;
  s->layers = wrap(*s, layers, s->plugin_name, s->name);
  if (std::ranges::any_of(s->layers, [](const auto& l) { return l->wants_every_launch(); }))
    s->has_graph = false;
  if (const double seconds = settings().device_timeout; seconds > 0) {
    s->layers.push_back(make_time_limit_layer(*s, seconds, s->name));
    static_cast<DeviceTables&>(*s) = s->layers.back()->outer();
  }
  read_info(*s);
  read_caps(*s);
  list_claims(*s);
  s->allocator =
      std::make_unique<Allocator>(s->calls, s->allocator_api, s->handle, s->info.memory_bytes,
                                  s->timeline, !s->keeps_nothing());
  s->allocator->set_trace(&s->trace);
  if (s->is_asynchronous) wait_at_exit(*s);
  if (s->is_asynchronous && offered(s->device.synchronize))
    s->allocator->set_wait([d = s.get()] {
      d->calls.quietly("synchronize", [&] { d->device.synchronize(d->handle, nullptr); });
    });
  return s;
}

}  // namespace plugrad::runtime

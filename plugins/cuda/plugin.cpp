// cuda: renders kernels as CUDA C, compiles them with NVRTC or Clang to PTX or machine code, and
// runs them by NVIDIA's driver.
#include "plugin.h"

#include "plugrad/sdk/entry.h"
#include "plugrad/sdk/options.h"

namespace plugrad::cuda {
namespace {

pgr_option_schema make_schema(std::string_view key, std::string_view type,
                              std::string_view fallback, std::string_view help) {
  pgr_option_schema schema;
  PGR_INIT(schema, OPTION_SCHEMA);
  schema.key = sdk::to_pgr(key);
  schema.type = sdk::to_pgr(type);
  schema.default_value = sdk::to_pgr(fallback);
  schema.help = sdk::to_pgr(help);
  return schema;
}

pgr_status plugin_info(pgr_plugin*, pgr_plugin_info* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    static const pgr_option_schema schemas[] = {
        make_schema("compiler", "auto|nvrtc|nvrtc_ptx|clang", "auto",
                    "what compiles kernels; auto: NVRTC where it can be opened, otherwise Clang"),
        make_schema("nvrtc", "string", "", "path of libnvrtc; empty: the usual names"),
        make_schema("driver", "string", "",
                    "of the plugin, not of a device: path of libcuda; empty: libcuda.so.1")};
    pgr_plugin_info own;
    PGR_INIT(own, PLUGIN_INFO);
    own.name = sdk::to_pgr("cuda");
    own.device_name = sdk::to_pgr("CUDA");
    own.version = sdk::to_pgr("1.0.0");
    own.vendor = sdk::to_pgr("plugrad");
    own.options = schemas;
    own.option_count = std::size(schemas);
    own.option_stride = sizeof schemas[0];
    sdk::fill(out, own);
  });
}

// Zero devices is not an error, but the message has the reason.
pgr_status device_count(pgr_plugin* plugin, uint32_t* out_count, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out_count != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out_count is NULL");
    find_devices(*plugin);
    *out_count = static_cast<uint32_t>(plugin->devices.size());
    if (plugin->devices.empty()) sdk::report(error, PGR_STATUS_OK, plugin->why_none);
  });
}

std::unique_ptr<pgr_device> open_device(pgr_plugin& plugin, const DeviceFacts& facts,
                                        const ToolchainChoice& toolchain) {
  auto device = std::make_unique<pgr_device>();
  device->plugin = &plugin;
  device->driver = &plugin.driver;
  device->facts = facts;
  device->toolchain = toolchain;
  const CUresult result = plugin.driver.retain_context(&device->context, facts.handle);
  if (result != kSuccess) device->context = nullptr;
  sdk::require(result != kDeviceUnavailable, PGR_STATUS_BUSY,
               facts.name + " is in use: another process holds it exclusively");
  if (result != kSuccess) fail(*device, result, "opening " + facts.name);
  const ContextScope scope(*device);
  device->clock = std::make_unique<DeviceClock>(*device);
  device->queue = std::make_unique<pgr_queue>(*device);
  return device;
}

pgr_status device_open(pgr_plugin* plugin, uint32_t index, const pgr_option* options,
                       uint32_t option_count, uint32_t option_stride, pgr_device** out,
                       pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    find_devices(*plugin);
    const std::vector<DeviceFacts>& devices = plugin->devices;
    sdk::require(index < devices.size(), PGR_STATUS_NOT_FOUND,
                 "no CUDA device " + std::to_string(index) + " of " +
                     std::to_string(devices.size()) +
                     (devices.empty() ? ": " + plugin->why_none : ""));
    ToolchainChoice toolchain = plugin->toolchain;
    for (const auto& [key, value] : sdk::read_options(options, option_count, option_stride))
      sdk::require(
          read_option(toolchain, key, value), PGR_STATUS_NOT_FOUND,
          "a CUDA device has no option \"" + std::string(key) + "\"; it has compiler and nvrtc");
    *out = open_device(*plugin, devices[index], toolchain).release();
  });
}

void device_close(pgr_plugin*, pgr_device* device) {
  delete device;
}

pgr_status query_interface(pgr_plugin*, const pgr_string* name, uint32_t, const void** out_table,
                           pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::answer_query(name,
                      {{"pgr.device", device_table()},
                       {"pgr.allocator", allocator_table()},
                       {"pgr.renderer", renderer_table()},
                       {"pgr.compiler", compiler_table()},
                       {"pgr.runner", runner_table()},
                       {"pgr.queue", queue_table()},
                       {"pgr.graph", graph_table()},
                       {"pgr.profile", profile_table()}},
                      "cuda", out_table);
  });
}

pgr_plugin_api make_api(pgr_plugin* plugin) {
  pgr_plugin_api api;
  PGR_INIT(api, PLUGIN_API);
  api.plugin = plugin;
  api.info = plugin_info;
  api.device_count = device_count;
  api.device_open = device_open;
  api.device_close = device_close;
  api.query_interface = query_interface;
  return api;
}

void read_hello(pgr_plugin& plugin, const pgr_hello& hello) {
  ToolchainChoice toolchain;
  std::string driver_path;
  for (const auto& [key, value] :
       sdk::read_options(hello.options, hello.option_count, hello.option_stride)) {
    if (key == "driver")
      driver_path = value;
    else
      sdk::require(
          read_option(toolchain, key, value), PGR_STATUS_NOT_FOUND,
          "cuda has no option \"" + std::string(key) + "\"; it has driver, compiler and nvrtc");
  }
  const std::lock_guard lock(plugin.mutex);
  plugin.host = hello.host;
  plugin.toolchain = toolchain;
  if (plugin.driver_path != driver_path) plugin.is_searched = false;
  plugin.driver_path = driver_path;
}

}  // namespace

pgr_plugin& the_plugin() {
  static pgr_plugin plugin;
  return plugin;
}

void find_devices(pgr_plugin& plugin) {
  const std::lock_guard lock(plugin.mutex);
  if (plugin.is_searched) return;
  plugin.devices.clear();
  plugin.why_none.clear();
  if (open_driver(plugin.driver_path, plugin.driver, plugin.why_none))
    plugin.devices = list_devices(plugin.driver);
  if (plugin.devices.empty() && plugin.why_none.empty())
    plugin.why_none = "the driver has no GPU of compute capability 6.0 or newer";
  plugin.is_searched = true;
}

}  // namespace plugrad::cuda

extern "C" PGR_EXPORT pgr_status PGR_PLUGIN_ENTRY(pgr_hello* hello, const pgr_plugin_api** out_api,
                                                  pgr_error* error) {
  using namespace plugrad;
  return sdk::guard(error, [&] {
    sdk::answer_hello(hello, sdk::kLowestHostMinor, "cuda");
    cuda::read_hello(cuda::the_plugin(), *hello);
    static const pgr_plugin_api api = cuda::make_api(&cuda::the_plugin());
    *out_api = &api;
  });
}

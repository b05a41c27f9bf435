// opencl: renders kernels as OpenCL C; the driver of any vendor compiles and runs them.
#include "driver/command_buffer.h"
#include "plugrad/sdk/entry.h"
#include "plugrad/sdk/options.h"

namespace plugrad::opencl {
namespace {

pgr_status plugin_info(pgr_plugin*, pgr_plugin_info* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    pgr_plugin_info own;
    PGR_INIT(own, PLUGIN_INFO);
    own.name = sdk::to_pgr("opencl");
    own.device_name = sdk::to_pgr("OPENCL");
    own.version = sdk::to_pgr("1.0.0");
    own.vendor = sdk::to_pgr("plugrad");
    sdk::fill(out, own);
  });
}

const std::vector<DeviceFacts>& devices_of(pgr_plugin& plugin) {
  std::call_once(plugin.enumerated, [&] { plugin.devices = enumerate_devices(plugin.why_none); });
  return plugin.devices;
}

pgr_status device_count(pgr_plugin* plugin, uint32_t* out_count, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out_count != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out_count is NULL");
    *out_count = static_cast<uint32_t>(devices_of(*plugin).size());
    if (*out_count == 0) sdk::report(error, PGR_STATUS_OK, plugin->why_none);
  });
}

// Opens a device: its context and the queue for NULL handles.
std::unique_ptr<pgr_device> open(pgr_plugin& plugin, const DeviceFacts& facts) {
  auto device = std::make_unique<pgr_device>();
  device->plugin = &plugin;
  device->facts = facts;
  const cl_context_properties properties[] = {
      CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(facts.platform), 0};
  cl_int code = CL_SUCCESS;
  device->context = api().clCreateContext(properties, 1, &facts.id, nullptr, nullptr, &code);
  device->check(code, "cannot open " + facts.name + " (clCreateContext)");
  device->queue = make_queue(*device);
  device->command_buffers = find_command_buffers(facts);
  return device;
}

pgr_status device_open(pgr_plugin* plugin, uint32_t index, const pgr_option* options,
                       uint32_t option_count, uint32_t option_stride, pgr_device** out,
                       pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    const std::vector<DeviceFacts>& devices = devices_of(*plugin);
    sdk::require(index < devices.size(), PGR_STATUS_NOT_FOUND,
                 "no OPENCL device " + std::to_string(index) + "; there are " +
                     std::to_string(devices.size()));
    for (const auto& [key, value] : sdk::read_options(options, option_count, option_stride))
      throw sdk::StatusError(PGR_STATUS_NOT_FOUND, "an OPENCL device has no option \"" +
                                                       std::string(key) + "\"; it has none");
    *out = open(*plugin, devices[index]).release();
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
                       {"pgr.compiler", compiler_table()},
                       {"pgr.runner", runner_table()},
                       {"pgr.queue", queue_table()},
                       {"pgr.graph", graph_table()},
                       {"pgr.profile", profile_table()}},
                      "opencl", out_table);
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

}  // namespace
}  // namespace plugrad::opencl

extern "C" PGR_EXPORT pgr_status PGR_PLUGIN_ENTRY(pgr_hello* hello, const pgr_plugin_api** out_api,
                                                  pgr_error* error) {
  using namespace plugrad;
  return sdk::guard(error, [&] {
    sdk::answer_hello(hello, sdk::kLowestHostMinor, "opencl");
    static pgr_plugin plugin;
    plugin.host = hello->host;
    static const pgr_plugin_api api = opencl::make_api(&plugin);
    *out_api = &api;
  });
}

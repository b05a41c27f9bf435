// cpu_clang: renders kernels as C, compiles them in memory with Clang, and runs them on the host's
// threads.
#include "plugin.h"

#include "plugrad/sdk/entry.h"
#include "plugrad/sdk/options.h"

namespace plugrad::cpu_clang {
namespace {

pgr_status plugin_info(pgr_plugin*, pgr_plugin_info* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    pgr_plugin_info own;
    PGR_INIT(own, PLUGIN_INFO);
    own.name = sdk::to_pgr("cpu_clang");
    own.device_name = sdk::to_pgr("CPU");
    own.version = sdk::to_pgr("1.0.0");
    own.vendor = sdk::to_pgr("plugrad");
    static const std::string levels = isa_names();
    static const pgr_option_schema isa = [] {
      pgr_option_schema schema;
      PGR_INIT(schema, OPTION_SCHEMA);
      schema.key = sdk::to_pgr("isa");
      schema.type = sdk::to_pgr(levels);
      schema.default_value = sdk::to_pgr("native");
      schema.help = sdk::to_pgr(
          "the newest instructions that kernels may use; PLUGRAD_CPU_TARGET sets it too");
      return schema;
    }();
    own.options = &isa;
    own.option_count = 1;
    own.option_stride = sizeof isa;
    sdk::fill(out, own);
  });
}

pgr_status device_count(pgr_plugin*, uint32_t* out_count, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out_count != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out_count is NULL");
    *out_count = 1;
  });
}

pgr_status device_open(pgr_plugin* plugin, uint32_t index, const pgr_option* options,
                       uint32_t option_count, uint32_t option_stride, pgr_device** out,
                       pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    sdk::require(index == 0, PGR_STATUS_NOT_FOUND,
                 "no CPU device " + std::to_string(index) + "; there is device 0");
    auto device = std::make_unique<pgr_device>();
    device->plugin = plugin;
    device->cpu = plugin->cpu;
    for (const auto& [key, value] : sdk::read_options(options, option_count, option_stride)) {
      sdk::require(key == "isa", PGR_STATUS_NOT_FOUND,
                   "a CPU device has no option \"" + std::string(key) + "\"; it has isa");
      device->cpu = restrict_cpu(plugin->cpu, value);
    }
    *out = device.release();
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
                       {"pgr.runner", runner_table()}},
                      "cpu_clang", out_table);
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
}  // namespace plugrad::cpu_clang

extern "C" PGR_EXPORT pgr_status PGR_PLUGIN_ENTRY(pgr_hello* hello, const pgr_plugin_api** out_api,
                                                  pgr_error* error) {
  using namespace plugrad;
  return sdk::guard(error, [&] {
    sdk::answer_hello(hello, sdk::kLowestHostMinor, "cpu_clang");
    static pgr_plugin plugin;
    plugin.host = hello->host;
    plugin.renderer = nullptr;  // the next host opens its own
    plugin.compiler = nullptr;
    plugin.cpu = cpu_clang::detect_cpu();
    static const pgr_plugin_api api = cpu_clang::make_api(&plugin);
    *out_api = &api;
  });
}

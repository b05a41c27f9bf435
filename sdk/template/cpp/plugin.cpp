// SPDX-License-Identifier: 0BSD
// plugrad_plugin_acme: the device ACME. It works as it is: it uses the host's memory, and the SDK's
// interpreter runs its kernels. Add your hardware step by step: the parts to replace are marked
// FILL, and a slot that is NULL returns UNSUPPORTED.
#include "plugin.h"

#include <memory>

#include "plugrad/sdk/entry.h"
#include "plugrad/sdk/options.h"

namespace acme_plugin {
namespace {

pgr_status info(pgr_plugin*, pgr_plugin_info* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    pgr_plugin_info own;
    PGR_INIT(own, PLUGIN_INFO);
    own.name = sdk::to_pgr("acme");
    own.device_name = sdk::to_pgr("ACME");
    own.version = sdk::to_pgr("0.1.0");
    own.vendor = sdk::to_pgr("ACME");
    sdk::fill(out, own);  // FILL: options for users of your device
  });
}

pgr_status device_count(pgr_plugin*, uint32_t* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out_count is NULL");
    *out = 1;  // FILL: the number of devices; 0 if hardware or driver is missing
  });
}

pgr_status device_open(pgr_plugin* plugin, uint32_t index, const pgr_option* options,
                       uint32_t option_count, uint32_t option_stride, pgr_device** out,
                       pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    sdk::require(index == 0, PGR_STATUS_NOT_FOUND,
                 "no ACME device " + std::to_string(index) + "; there is device 0");
    for (const auto& [key, value] : sdk::read_options(options, option_count, option_stride))
      throw sdk::StatusError(PGR_STATUS_NOT_FOUND,
                             "there is no option " + std::string(key) + "; the device takes none");
    auto device = std::make_unique<pgr_device>();
    device->plugin = plugin;
    *out = device.release();
  });
}

void device_close(pgr_plugin*, pgr_device* device) {
  delete device;
}

// FILL: pgr.queue, pgr.graph and pgr.profile, if you support them (docs/write-a-plugin.md)
pgr_status query_interface(pgr_plugin*, const pgr_string* name, uint32_t, const void** out,
                           pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::answer_query(name,
                      {{"pgr.device", device_table()},
                       {"pgr.allocator", allocator_table()},
                       {"pgr.compiler", compiler_table()},
                       {"pgr.runner", runner_table()}},
                      "acme", out);
  });
}

pgr_plugin_api make_api(pgr_plugin* plugin) {
  pgr_plugin_api api;
  PGR_INIT(api, PLUGIN_API);
  api.plugin = plugin;
  api.info = info;
  api.device_count = device_count;
  api.device_open = device_open;
  api.device_close = device_close;
  api.query_interface = query_interface;
  return api;
}

}  // namespace
}  // namespace acme_plugin

extern "C" PGR_EXPORT pgr_status PGR_PLUGIN_ENTRY(pgr_hello* hello, const pgr_plugin_api** out_api,
                                                  pgr_error* error) {
  return acme_plugin::sdk::guard(error, [&] {
    acme_plugin::sdk::answer_hello(hello, acme_plugin::sdk::kLowestHostMinor, "acme");
    acme_plugin::sdk::require(out_api != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out_api is NULL");
    for (const auto& [key, value] :
         acme_plugin::sdk::read_options(hello->options, hello->option_count, hello->option_stride))
      throw acme_plugin::sdk::StatusError(
          PGR_STATUS_NOT_FOUND,
          "there is no option " + std::string(key) + "; the plugin as a whole takes none");
    static pgr_plugin plugin;
    plugin.host = hello->host;
    static const pgr_plugin_api api = acme_plugin::make_api(&plugin);
    *out_api = &api;
  });
}

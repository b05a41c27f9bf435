// reference: interprets kernel IR, slowly and exactly; other backends are compared with it.
#include "plugin.h"

#include <iterator>
#include <memory>

#include "plugrad/sdk/entry.h"
#include "plugrad/sdk/options.h"
#include "work_queue.h"

namespace plugrad::reference {
namespace {

pgr_option_schema make_schema(const char* key, const char* fallback, const char* help) {
  pgr_option_schema schema;
  PGR_INIT(schema, OPTION_SCHEMA);
  schema.key = sdk::to_pgr(key);
  schema.type = sdk::to_pgr("string");
  schema.default_value = sdk::to_pgr(fallback);
  schema.help = sdk::to_pgr(help);
  return schema;
}

pgr_status plugin_info(pgr_plugin*, pgr_plugin_info* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    static const pgr_option_schema schemas[] = {
        make_schema("withdraw", "",
                    "Claims to drop, separated by commas: op, dtype, op:dtype, lanes, local, "
                    "queue, graph, profile, synchrony."),
        make_schema("shape", "cpu", "gpu: work-items in step, and limits, as of a small GPU.")};
    pgr_plugin_info own;
    PGR_INIT(own, PLUGIN_INFO);
    own.name = sdk::to_pgr("reference");
    own.device_name = sdk::to_pgr("REFERENCE");
    own.version = sdk::to_pgr("1.0.0");
    own.vendor = sdk::to_pgr("plugrad");
    own.options = schemas;
    own.option_count = std::size(schemas);
    own.option_stride = sizeof schemas[0];
    sdk::fill(out, own);
  });
}

pgr_status device_count(pgr_plugin*, uint32_t* out_count, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out_count != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out_count is NULL");
    *out_count = 1;
  });
}

Claims read_claims(const pgr_option* options, uint32_t count, uint32_t stride,
                   const Claims& fallback) {
  const auto pairs = sdk::read_options(options, count, stride);
  std::string_view withdrawn, shape = "cpu";
  for (const auto& [key, value] : pairs) {
    sdk::require(
        key == "withdraw" || key == "shape", PGR_STATUS_NOT_FOUND,
        "reference has no option \"" + std::string(key) + "\", it has \"withdraw\" and \"shape\"");
    (key == "shape" ? shape : withdrawn) = value;
  }
  if (pairs.empty()) return fallback;
  Claims claims = make_claims(withdrawn);
  take_shape(claims, shape);
  return claims;
}

pgr_status device_open(pgr_plugin* plugin, uint32_t index, const pgr_option* options,
                       uint32_t option_count, uint32_t option_stride, pgr_device** out,
                       pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    sdk::require(index == 0, PGR_STATUS_NOT_FOUND,
                 "no REFERENCE device " + std::to_string(index) + "; there is device 0");
    auto device = std::make_unique<pgr_device>();
    device->plugin = plugin;
    device->claims = read_claims(options, option_count, option_stride, plugin->claims);
    device->tensor_cores = tensor_cores_of(device->claims);
    if (!device->claims.is_synchronous)
      device->queues.push_back(device->own_queue = std::make_shared<WorkQueue>());
    device->opened_ns = device_now_ns(*device);
    *out = device.release();
  });
}

void device_close(pgr_plugin*, pgr_device* device) {
  delete device;
}

// A device opened without queues has functions that return UNSUPPORTED; a plugin without them has
// no table.
pgr_status query_interface(pgr_plugin* plugin, const pgr_string* name, uint32_t,
                           const void** out_table, pgr_error* error) {
  return sdk::guard(error, [&] {
    const Claims& claims = plugin->claims;
    sdk::answer_query(name,
                      {{"pgr.device", device_table()},
                       {"pgr.allocator", allocator_table()},
                       {"pgr.compiler", compiler_table()},
                       {"pgr.runner", runner_table()},
                       {"pgr.queue", claims.has_queue ? queue_table() : nullptr},
                       {"pgr.graph", claims.has_graph ? graph_table() : nullptr},
                       {"pgr.profile", claims.has_profile ? profile_table() : nullptr}},
                      "reference", out_table);
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
}  // namespace plugrad::reference

extern "C" PGR_EXPORT pgr_status PGR_PLUGIN_ENTRY(pgr_hello* hello, const pgr_plugin_api** out_api,
                                                  pgr_error* error) {
  using namespace plugrad;
  return sdk::guard(error, [&] {
    sdk::answer_hello(hello, sdk::kLowestHostMinor, "reference");
    static pgr_plugin plugin;
    plugin.host = hello->host;
    plugin.claims = reference::read_claims(hello->options, hello->option_count,
                                           hello->option_stride, reference::make_claims(""));
    static const pgr_plugin_api api = reference::make_api(&plugin);
    *out_api = &api;
  });
}

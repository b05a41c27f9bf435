// vulkan: renders kernels as GLSL, compiles them to SPIR-V with glslang, and runs them on any
// driver of Vulkan 1.1 with buffer addresses.
#include "plugin.h"

#include "plugrad/sdk/entry.h"
#include "plugrad/sdk/options.h"

namespace plugrad::vulkan {
namespace {

pgr_option_schema make_schema() {
  pgr_option_schema schema;
  PGR_INIT(schema, OPTION_SCHEMA);
  schema.key = sdk::to_pgr("validation");
  schema.type = sdk::to_pgr("off|on");
  schema.default_value = sdk::to_pgr("off");
  schema.help = sdk::to_pgr(
      "on: the Khronos validation layer checks every call; what it says is logged and fails the "
      "call");
  return schema;
}

pgr_status plugin_info(pgr_plugin*, pgr_plugin_info* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    static const pgr_option_schema schema = make_schema();
    pgr_plugin_info own;
    PGR_INIT(own, PLUGIN_INFO);
    own.name = sdk::to_pgr("vulkan");
    own.device_name = sdk::to_pgr("VULKAN");
    own.version = sdk::to_pgr("1.0.0");
    own.vendor = sdk::to_pgr("plugrad");
    own.options = &schema;
    own.option_count = 1;
    own.option_stride = sizeof schema;
    sdk::fill(out, own);
  });
}

// Creates the instance on first use.
const Instance& instance_of(pgr_plugin& plugin) {
  const std::lock_guard lock(plugin.mutex);
  if (!plugin.instance) plugin.instance = std::make_unique<Instance>();
  return *plugin.instance;
}

std::string why_none(const Instance& instance) {
  if (!instance.left_out().empty()) return "no Vulkan device fits: " + instance.left_out();
  return "the Vulkan drivers that are installed have no device here; install a driver for the "
         "card, or mesa-vulkan-drivers for one in software";
}

// A missing driver is not an error: there are 0 devices, and the message has the reason.
pgr_status device_count(pgr_plugin* plugin, uint32_t* out_count, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out_count != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out_count is NULL");
    *out_count = 0;
    try {
      const Instance& instance = instance_of(*plugin);
      *out_count = static_cast<uint32_t>(instance.devices().size());
      if (*out_count == 0) sdk::report(error, PGR_STATUS_OK, why_none(instance));
    } catch (const sdk::StatusError& e) {
      const bool has_no_driver = e.native_code() == VK_ERROR_INCOMPATIBLE_DRIVER;
      sdk::report(error, PGR_STATUS_OK,
                  has_no_driver ? std::string(e.what()) +
                                      ": no Vulkan driver is installed (/usr/share/vulkan/icd.d), "
                                      "or VK_DRIVER_FILES or "
                                      "VK_ICD_FILENAMES hides it; "
                                      "install mesa-vulkan-drivers or the card's own"
                                : e.what(),
                  e.native_code());
    }
  });
}

bool read_validation(const pgr_option* options, uint32_t count, uint32_t stride, bool fallback) {
  for (const auto& [key, value] : sdk::read_options(options, count, stride)) {
    sdk::require(key == "validation", PGR_STATUS_NOT_FOUND,
                 "vulkan has no option \"" + std::string(key) + "\"; it has \"validation\"");
    sdk::require(value == "on" || value == "off", PGR_STATUS_INVALID_ARGUMENT,
                 "option validation is \"" + std::string(value) + "\"; it takes off or on");
    fallback = value == "on";
  }
  return fallback;
}

pgr_status device_open(pgr_plugin* plugin, uint32_t index, const pgr_option* options,
                       uint32_t option_count, uint32_t option_stride, pgr_device** out,
                       pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    const bool validates = read_validation(options, option_count, option_stride, plugin->validates);
    const size_t count = instance_of(*plugin).devices().size();
    sdk::require(
        index < count, PGR_STATUS_NOT_FOUND,
        "no VULKAN device " + std::to_string(index) + "; there are " + std::to_string(count));
    *out = open_device(*plugin, index, validates).release();
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
                      "vulkan", out_table);
  });
}

void shutdown(pgr_plugin* plugin) {
  const std::lock_guard lock(plugin->mutex);
  plugin->validating.reset();
  plugin->instance.reset();
  const std::lock_guard broken_lock(plugin->broken_mutex);
  plugin->broken_claims.clear();
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
  api.shutdown = shutdown;
  return api;
}

}  // namespace
}  // namespace plugrad::vulkan

extern "C" PGR_EXPORT pgr_status PGR_PLUGIN_ENTRY(pgr_hello* hello, const pgr_plugin_api** out_api,
                                                  pgr_error* error) {
  using namespace plugrad;
  return sdk::guard(error, [&] {
    sdk::answer_hello(hello, sdk::kLowestHostMinor, "vulkan");
    // Never destroyed: plugins run no code at process exit.
    static pgr_plugin& plugin = *new pgr_plugin;
    plugin.host = hello->host;
    plugin.validates =
        vulkan::read_validation(hello->options, hello->option_count, hello->option_stride, false);
    static const pgr_plugin_api api = vulkan::make_api(&plugin);
    *out_api = &api;
  });
}

// L0: interfaces by name and minor version; opening, refusing and closing devices.
#include "conformance/levels/kernels.h"
#include "conformance/levels/loading/l0_families.h"

namespace plugrad::conformance {
namespace {

struct Interface {
  const char* name;
  uint32_t struct_id;
  uint64_t size_bytes;  // size of the table in today's headers
  bool is_mandatory;
};
constexpr Interface kInterfaces[] = {
    {"pgr.device", PGR_STRUCT_DEVICE_API, sizeof(pgr_device_api), true},
    {"pgr.allocator", PGR_STRUCT_ALLOCATOR_API, sizeof(pgr_allocator_api), true},
    {"pgr.runner", PGR_STRUCT_RUNNER_API, sizeof(pgr_runner_api), true},
    {"pgr.renderer", PGR_STRUCT_RENDERER_API, sizeof(pgr_renderer_api), false},
    {"pgr.compiler", PGR_STRUCT_COMPILER_API, sizeof(pgr_compiler_api), false},
    {"pgr.queue", PGR_STRUCT_QUEUE_API, sizeof(pgr_queue_api), false},
    {"pgr.graph", PGR_STRUCT_GRAPH_API, sizeof(pgr_graph_api), false},
    {"pgr.profile", PGR_STRUCT_PROFILE_API, sizeof(pgr_profile_api), false}};

pgr_status query(const pgr_plugin_api& api, std::string_view name, uint32_t minor, const void** out,
                 pgr_error* error) {
  const pgr_string text = sdk::to_pgr(name);
  return api.query_interface(api.plugin, &text, minor, out, error);
}

void check_mandatory(Context& context) {
  const pgr_plugin_api& api = context.plugin().api();
  for (const Interface& entry : kInterfaces) {
    if (!entry.is_mandatory) continue;
    const void* table = nullptr;
    expect_ok(std::string("query_interface(") + entry.name + ")", [&](pgr_error* error) {
      return query(api, entry.name, PGR_API_MINOR, &table, error);
    });
    expect(table != nullptr, std::string(entry.name) + " is NULL");
  }
  auto& device = *context.plugin().device_api();
  auto& memory = *context.plugin().allocator_api();
  auto& runner = *context.plugin().runner_api();
  expect(offered(device.info) && offered(device.caps) && offered(device.memory_stats) &&
             offered(device.synchronize),
         "a mandatory function of pgr.device is NULL");
  expect(offered(memory.alloc) && offered(memory.free) && offered(memory.copy_in) &&
             offered(memory.copy_out) && offered(memory.copy),
         "a mandatory function of pgr.allocator is NULL");
  expect(offered(runner.load) && offered(runner.kernel) && offered(runner.launch) &&
             offered(runner.unload),
         "a mandatory function of pgr.runner is NULL");
}

void check_tables(Context& context) {
  const pgr_plugin_api& api = context.plugin().api();
  for (const Interface& entry : kInterfaces) {
    const void *table = nullptr, *again = nullptr;
    if (query(api, entry.name, PGR_API_MINOR, &table, nullptr) != PGR_STATUS_OK) continue;
    const std::string name = entry.name;
    expect(table != nullptr, name + " is NULL, and its query answered OK");
    const auto* header = static_cast<const pgr_struct_header*>(table);
    expect(header->struct_id == entry.struct_id, name + " has a wrong struct_id");
    expect(header->struct_size % 8 == 0, name + " has a struct_size that is no multiple of 8");
    expect(header->struct_size <= entry.size_bytes || context.plugin().is_newer(),
           name + " is newer than the minor that was asked for");
    expect_ok("query_interface(" + name + ") again", [&](pgr_error* error) {
      return query(api, entry.name, PGR_API_MINOR, &again, error);
    });
    expect(again == table || std::memcmp(again, table, header->struct_size) == 0,
           name + " is another table the second time");
  }
}

void check_other_minors(Context& context) {
  const pgr_plugin_api& api = context.plugin().api();
  for (const Interface& entry : kInterfaces)
    for (uint32_t minor : {PGR_API_MINOR + 1, PGR_API_MINOR + 50, UINT32_MAX}) {
      const void *today = nullptr, *newer = nullptr;
      if (query(api, entry.name, PGR_API_MINOR, &today, nullptr) != PGR_STATUS_OK) continue;
      expect_ok(std::string("query_interface(") + entry.name + ") of a newer host",
                [&](pgr_error* error) { return query(api, entry.name, minor, &newer, error); });
      expect(newer != nullptr, std::string(entry.name) + " is NULL for a newer host");
    }
  for (uint32_t minor = PGR_API_MINOR; minor-- > 0;) {
    const void* table = nullptr;
    const pgr_status status = query(api, "pgr.device", minor, &table, nullptr);
    expect(
        status == PGR_STATUS_UNSUPPORTED ||
            (status == PGR_STATUS_OK && table &&
             (static_cast<const pgr_struct_header*>(table)->struct_size <= sizeof(pgr_device_api) ||
              context.plugin().is_newer())),
        "query_interface(pgr.device) at minor " + std::to_string(minor) + " answered " +
            status_name(status));
  }
}

void check_unknown_interfaces(Context& context) {
  const pgr_plugin_api& api = context.plugin().api();
  for (std::string_view name : {"", "pgr", "pgr.", "pgr.devic", "pgr.devices", "pgr.device\n",
                                "PGR.DEVICE", "com.nobody.nothing", "pgr.future"}) {
    const void* table = &api;
    expect_status("query_interface(\"" + std::string(name) + "\")", PGR_STATUS_UNSUPPORTED,
                  [&](pgr_error* error) { return query(api, name, PGR_API_MINOR, &table, error); });
    expect(table == &api, "a failed query_interface touched *out_table");
  }
  const void* table = nullptr;
  // Names have a length and no terminator.
  expect_ok("query_interface of the first 10 bytes of \"pgr.deviceful\"", [&](pgr_error* error) {
    return query(api, std::string_view("pgr.deviceful").substr(0, 10), PGR_API_MINOR, &table,
                 error);
  });
}

uint32_t count_devices(const pgr_plugin_api& api) {
  uint32_t count = 0;
  expect_ok("plugin.device_count",
            [&](pgr_error* error) { return api.device_count(api.plugin, &count, error); });
  return count;
}

void check_device_count(Context& context) {
  const pgr_plugin_api& api = context.plugin().api();
  const uint32_t count = count_devices(api);
  expect(count <= 4096, "device_count is " + std::to_string(count));
  for (int i = 0; i < 20; ++i)
    expect(count_devices(api) == count, "device_count changes from call to call");
  expect_status("device_count without an out-pointer", PGR_STATUS_INVALID_ARGUMENT,
                [&](pgr_error* error) { return api.device_count(api.plugin, nullptr, error); });
}

void check_index_too_large(Context& context) {
  const pgr_plugin_api& api = context.plugin().api();
  const uint32_t count = count_devices(api);
  for (uint32_t index : {count, count + 1, count + 1000, UINT32_MAX}) {
    pgr_device* const untouched = reinterpret_cast<pgr_device*>(&context);
    pgr_device* device = untouched;
    expect_status("device_open(" + std::to_string(index) + ") of " + std::to_string(count),
                  PGR_STATUS_NOT_FOUND, [&](pgr_error* error) {
                    return api.device_open(api.plugin, index, nullptr, 0, sizeof(pgr_option),
                                           &device, error);
                  });
    expect(device == untouched, "a failed device_open touched *out");
  }
}

pgr_option make_option(std::string_view key, std::string_view value) {
  pgr_option option;
  PGR_INIT(option, OPTION);
  option.key = sdk::to_pgr(key);
  option.value = sdk::to_pgr(value);
  return option;
}

void check_unknown_option(Context& context) {
  context.device();  // unsupported without a device
  const pgr_plugin_api& api = context.plugin().api();
  for (std::string_view key : {"", "no_such_option", "no such option"}) {
    const pgr_option option = make_option(key, "1");
    pgr_device* device = nullptr;
    expect_status("device_open with an option \"" + std::string(key) + "\"", PGR_STATUS_NOT_FOUND,
                  [&](pgr_error* error) {
                    return api.device_open(api.plugin, context.plugin().device_index(), &option, 1,
                                           sizeof option, &device, error);
                  });
    expect(device == nullptr, "a failed device_open touched *out");
  }
}

// Options of a newer host are longer: plugins must use the stride.
void check_option_stride(Context& context) {
  context.device();
  const pgr_plugin_api& api = context.plugin().api();
  struct NextOption {
    pgr_option base;
    uint64_t added[3];
  };
  std::vector<NextOption> options;
  for (const auto& [key, value] : context.plugin().device_options()) {
    options.push_back({make_option(key, value), {~0ull, ~0ull, ~0ull}});
    options.back().base.struct_size = sizeof(NextOption);
  }
  auto open = [&](pgr_device** device, pgr_error* error) {
    return api.device_open(api.plugin, context.plugin().device_index(), &options[0].base,
                           static_cast<uint32_t>(options.size()), sizeof(NextOption), device,
                           error);
  };
  pgr_device* device = nullptr;
  if (!options.empty()) {
    expect_ok("device_open with longer options",
              [&](pgr_error* error) { return open(&device, error); });
    api.device_close(api.plugin, device);
  }
  // Only a plugin that uses the stride finds the last option.
  options.push_back({make_option("no_such_option", "1"), {~0ull, ~0ull, ~0ull}});
  expect_status("device_open with an unknown option behind longer ones", PGR_STATUS_NOT_FOUND,
                [&](pgr_error* error) { return open(&device, error); });
}

void check_null(Context& context) {
  Tables t(context);
  t.plugin.device_close(t.plugin.plugin, nullptr);
  t.memory.free(t.handle, nullptr);
  t.runner.unload(t.handle, nullptr);
  if (const auto* queues = context.plugin().queue_api()) {
    queues->event_destroy(t.handle, nullptr);
    queues->destroy(t.handle, nullptr);
  }
  if (const auto* graphs = context.plugin().graph_api()) graphs->destroy(t.handle, nullptr);
  expect_status("device_open without an out-pointer", PGR_STATUS_INVALID_ARGUMENT,
                [&](pgr_error* error) {
                  return t.plugin.device_open(t.plugin.plugin, context.plugin().device_index(),
                                              nullptr, 0, sizeof(pgr_option), nullptr, error);
                });
}

void check_independent(Context& context) {
  auto first = context.plugin().open_device();
  const auto second = context.plugin().open_device();
  expect(first->handle() != second->handle(), "two calls of device_open gave one handle");
  const auto values = random_ints(1000, context.seed()), others = random_ints(1000, 7);
  Buffer kept = make_ints(*second, values);
  const auto kernel = second->compile(spread_kernel(1000));
  {
    Buffer gone = make_ints(*first, others);
    const auto of_first = first->compile(spread_kernel(1000));
    Buffer out = first->allocate(4000);
    first->launch(*of_first, {{out.handle(), gone.handle()}, {2}, {1000, 1, 1}, {1, 1, 1}});
    expect_ints("out of the first device", read_ints(out), spread_result(others, 2));
  }
  first.reset();
  Buffer out = second->allocate(4000);
  second->launch(*kernel, {{out.handle(), kept.handle()}, {3}, {1000, 1, 1}, {1, 1, 1}});
  expect_ints("out of a device whose sibling was closed", read_ints(out), spread_result(values, 3));
}

}  // namespace

void add_interface_tests(Tests& tests) {
  auto add = [&](const std::string& id, std::function<void(Context&)> run) {
    add_test(tests, Level::L0, "l0." + id, std::move(run));
  };
  add("interface.mandatory", check_mandatory);
  add("interface.tables", check_tables);
  add("interface.other_minors", check_other_minors);
  add("interface.unknown", check_unknown_interfaces);
  add("device.count", check_device_count);
  add("device.index_too_large", check_index_too_large);
  add("device.unknown_option", check_unknown_option);
  add("device.option_stride", check_option_stride);
  add("device.null", check_null);
  add("device.independent", check_independent);
}

}  // namespace plugrad::conformance

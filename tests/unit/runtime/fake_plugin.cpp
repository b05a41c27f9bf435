// A plugin for tests of the loader. Its file name selects its behaviour:
// libplugrad_plugin_throws.so throws from entry, and so on; every other name behaves well. Its
// kernels are words: the renderer prepends "source " to the kernel IR's bytes, the compiler
// prepends "binary ", and the kernel's name selects the effect of a launch.
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

#include "plugrad/plugin_api/compiler.h"
#include "plugrad/plugin_api/runner.h"

struct pgr_plugin {
  std::string variant;
  std::string device_name;
};
struct pgr_device {
  std::uint32_t index;
  std::string vendor;  // the value of the option "vendor"
};
struct pgr_buffer {
  std::uint64_t size;
  unsigned char* data;
};
struct pgr_kernel {
  std::string name;
};
struct pgr_program {
  pgr_kernel kernel;
};

namespace {

constexpr std::uint64_t kMemoryBytes = 64 << 20;
constexpr std::string_view kUnopenable = "unopenable";
std::atomic<std::uint64_t> used_bytes = 0;
pgr_plugin plugin;
std::atomic<int> open_devices = 0;

pgr_string text(std::string_view s) {
  return {s.data(), s.size()};
}
std::string_view view(const pgr_string& s) {
  return {s.data, s.size};
}

pgr_status answer(pgr_error* error, pgr_status code, std::string_view message) {
  if (error && error->message) {
    std::uint64_t size =
        message.size() < error->message_capacity ? message.size() : error->message_capacity;
    std::memcpy(error->message, message.data(), size);
    error->message_size = size;
    error->code = code;
  }
  return code;
}

void give(pgr_blob* blob, const std::string& bytes) {
  auto* owner = new std::string(bytes);
  blob->data = owner->data();
  blob->size = owner->size();
  blob->owner = owner;
  blob->release = [](pgr_blob* b) {
    delete static_cast<std::string*>(b->owner);
    b->owner = nullptr;
  };
}

// pgr.device
pgr_status info(pgr_device* device, pgr_device_info* out, pgr_error*) {
  out->stable_id = text(device->index == 0 ? "FAKE-aaaa" : "FAKE-bbbb");
  out->name = text(device->index == 0 ? "Fake Zero" : "Fake One");
  out->arch = text("fake1");
  out->vendor = text(device->vendor);
  out->memory_bytes = kMemoryBytes;
  out->is_software = plugin.variant == "software";
  return PGR_STATUS_OK;
}
pgr_status caps(pgr_device*, pgr_device_caps* out, pgr_error*) {
  out->threads = 3;
  out->buffer_align_bytes = 64;
  return PGR_STATUS_OK;
}

// pgr.allocator
pgr_status alloc(pgr_device*, const pgr_alloc_desc* desc, pgr_buffer** out, pgr_error* error) {
  if (used_bytes.fetch_add(desc->size_bytes) + desc->size_bytes > kMemoryBytes) {
    used_bytes -= desc->size_bytes;
    return answer(error, PGR_STATUS_OUT_OF_MEMORY, "the fake's 64 MiB are used up");
  }
  auto* data = static_cast<unsigned char*>(std::malloc(desc->size_bytes));
  std::memset(data, desc->flags & PGR_ALLOC_ZERO ? 0 : 0xCD, desc->size_bytes);
  *out = new pgr_buffer{desc->size_bytes, data};
  return PGR_STATUS_OK;
}
void free_buffer(pgr_device*, pgr_buffer* buffer) {
  if (!buffer) return;
  used_bytes -= buffer->size;
  std::free(buffer->data);
  delete buffer;
}
pgr_status copy_in(pgr_device*, pgr_queue*, pgr_buffer* dst, std::uint64_t offset, const void* src,
                   std::uint64_t size, pgr_error*) {
  std::memcpy(dst->data + offset, src, size);
  return PGR_STATUS_OK;
}
pgr_status copy_out(pgr_device*, pgr_queue*, void* dst, pgr_buffer* src, std::uint64_t offset,
                    std::uint64_t size, pgr_error*) {
  std::memcpy(dst, src->data + offset, size);
  return PGR_STATUS_OK;
}

// pgr.renderer, pgr.compiler

// Waits up to 10 s for a concurrent compile of such a source; returns whether there was one.
bool meets_another() {
  static std::atomic<int> under_way = 0, met = 0;
  if (++under_way >= 2) met = 2;
  for (int i = 0; i < 10000 && met == 0; ++i) usleep(1000);
  --under_way;
  return met.load() > 0 && met.fetch_sub(1) > 0;
}

pgr_status render(pgr_device*, const pgr_render_desc* desc, pgr_blob* out, pgr_error*) {
  const std::string ir(static_cast<const char*>(desc->ir), desc->ir_bytes);
  give(out, "source " + ir);
  if (ir.find("endless source") != ir.npos) out->size = std::uint64_t{1} << 50;
  return PGR_STATUS_OK;
}
pgr_status compile(pgr_device*, const pgr_compile_desc* desc, pgr_blob* out, pgr_blob* log,
                   pgr_error* error) {
  std::string source(static_cast<const char*>(desc->input), desc->input_bytes);
  if (source.find("slow") != source.npos) usleep(20000);
  if (source.find("meet") != source.npos && !meets_another())
    return answer(error, PGR_STATUS_COMPILE_FAILED, "no other compile is under way");
  if (source.find("#error") != source.npos) {
    if (log) give(log, "line 1: #error is no word of the fake language\n");
    if (log && source.find("endless log") != source.npos) log->size = std::uint64_t{1} << 62;
    return answer(error, PGR_STATUS_COMPILE_FAILED, "1 error");
  }
  give(out, "binary " + std::to_string(desc->contract) + " " + source);
  if (source.find("endless binary") != source.npos) out->size = UINT64_MAX;
  return PGR_STATUS_OK;
}
pgr_status cache_identity(pgr_device*, pgr_blob* out, pgr_error*) {
  give(out, "fake compiler 1");
  return PGR_STATUS_OK;
}
pgr_status disassemble(pgr_device*, const void* binary, std::uint64_t size, pgr_blob* out,
                       pgr_error*) {
  give(out, "disassembly of " + std::string(static_cast<const char*>(binary), size));
  return PGR_STATUS_OK;
}

// pgr.runner
pgr_status load(pgr_device*, const void* binary, std::uint64_t size, pgr_program** out,
                pgr_error* error) {
  std::string_view bytes(static_cast<const char*>(binary), size);
  if (plugin.variant != "minimal" && !bytes.starts_with("binary "))
    return answer(error, PGR_STATUS_BAD_BINARY, "not made by the fake compiler");
  *out = new pgr_program;
  return PGR_STATUS_OK;
}
pgr_status find_kernel(pgr_device*, pgr_program* program, const pgr_string* name, pgr_kernel** out,
                       pgr_error* error) {
  if (view(*name) == "absent") return answer(error, PGR_STATUS_NOT_FOUND, "no kernel of that name");
  program->kernel.name = view(*name);
  *out = &program->kernel;
  return PGR_STATUS_OK;
}
pgr_status launch(pgr_device*, pgr_queue*, pgr_kernel* kernel, const pgr_launch_desc* desc,
                  std::uint64_t* time_ns, pgr_error* error) {
  if (kernel->name == "throws") throw std::runtime_error("thrown by launch");
  if (kernel->name == "fails") return answer(error, PGR_STATUS_LAUNCH_FAILED, "watchdog after 2 s");
  if (kernel->name == "odd_code") return 12345;
  if (kernel->name == "exits") exit(0);
  if (kernel->name == "rounds_up") std::fesetround(FE_UPWARD);
  if (kernel->name == "forks") {
    const pid_t child = fork();
    std::memcpy(desc->buffers[0]->data, &child, sizeof child);
    return PGR_STATUS_OK;
  }
  // buffers[0][i] = sum of the other buffers' bytes and of all scalars, for i below the number of
  // groups
  for (std::uint64_t i = 0; i < desc->group_count[0]; ++i) {
    unsigned sum = 0;
    for (std::uint32_t b = 1; b < desc->buffer_count; ++b) sum += desc->buffers[b]->data[i];
    for (std::uint32_t s = 0; s < desc->scalar_count; ++s)
      sum += static_cast<unsigned>(desc->scalars[s]);
    desc->buffers[0]->data[i] = static_cast<unsigned char>(sum);
  }
  if (time_ns) *time_ns = 77;
  return PGR_STATUS_OK;
}
void unload(pgr_device*, pgr_program* program) {
  delete program;
}

// The plugin's table.
pgr_status plugin_info(pgr_plugin* self, pgr_plugin_info* out, pgr_error*) {
  out->name = text(self->variant);
  out->device_name = text(self->device_name);
  out->version = text("1.2.3");
  return PGR_STATUS_OK;
}
pgr_status device_count(pgr_plugin* self, std::uint32_t* out, pgr_error* error) {
  *out = self->variant == "no_devices" ? 0 : 2;
  if (*out == 0) answer(error, PGR_STATUS_OK, "libfake.so.1 was not found");
  return PGR_STATUS_OK;
}
pgr_status device_open(pgr_plugin* self, std::uint32_t index, const pgr_option* options,
                       std::uint32_t option_count, std::uint32_t, pgr_device** out,
                       pgr_error* error) {
  if (self->variant.ends_with(kUnopenable))
    return answer(error, PGR_STATUS_PERMISSION_DENIED, "/dev/fake0 is locked");
  std::string vendor;
  for (std::uint32_t i = 0; i < option_count; ++i) {
    if (view(options[i].key) != "vendor")
      return answer(error, PGR_STATUS_NOT_FOUND, "no such option");
    vendor = view(options[i].value);
  }
  *out = new pgr_device{index, vendor};
  ++open_devices;
  return PGR_STATUS_OK;
}
void device_close(pgr_plugin*, pgr_device* device) {
  --open_devices;
  delete device;
}

template <class Table>
Table stamped(std::uint32_t id) {
  Table table;
  std::memset(&table, 0, sizeof table);
  table.struct_size = sizeof table;
  table.struct_id = id;
  return table;
}

const void* interface_table(std::string_view name) {
  static auto device = stamped<pgr_device_api>(PGR_STRUCT_DEVICE_API);
  device.info = info;
  device.caps = caps;
  static auto allocator = stamped<pgr_allocator_api>(PGR_STRUCT_ALLOCATOR_API);
  allocator.alloc = alloc;
  allocator.free = free_buffer;
  allocator.copy_in = copy_in;
  allocator.copy_out = copy_out;
  // An older plugin: its table ends here, regardless of the following bytes.
  allocator.struct_size = offsetof(pgr_allocator_api, copy);
  allocator.copy = reinterpret_cast<decltype(allocator.copy)>(1);
  static auto runner = stamped<pgr_runner_api>(PGR_STRUCT_RUNNER_API);
  runner.load = load;
  runner.kernel = find_kernel;
  runner.launch = launch;
  runner.unload = unload;
  static auto renderer = stamped<pgr_renderer_api>(PGR_STRUCT_RENDERER_API);
  renderer.render = render;
  static auto compiler = stamped<pgr_compiler_api>(PGR_STRUCT_COMPILER_API);
  compiler.compile = compile;
  compiler.cache_identity = cache_identity;
  compiler.disassemble = disassemble;
  if (name == "pgr.device") return &device;
  if (name == "pgr.allocator") return plugin.variant == "no_allocator" ? nullptr : &allocator;
  if (name == "pgr.runner") return &runner;
  if (plugin.variant == "minimal") return nullptr;
  if (name == "pgr.renderer") return &renderer;
  return name == "pgr.compiler" ? &compiler : nullptr;
}

pgr_status query_interface(pgr_plugin*, const pgr_string* name, std::uint32_t, const void** out,
                           pgr_error* error) {
  *out = interface_table(view(*name));
  return *out ? PGR_STATUS_OK : answer(error, PGR_STATUS_UNSUPPORTED, "not offered");
}

// 1 if everything was released at the end; read by a test.
extern "C" {
PGR_EXPORT int fake_ended_clean = -1;
}
void shut_down(pgr_plugin*) {
  fake_ended_clean = used_bytes == 0 && open_devices == 0;
}

// "high_unopenable" is a plugin of HIGH, "unopenable" of UNOPENABLE.
std::string device_name_of(const std::string& variant) {
  const std::size_t end = variant.rfind("_" + std::string(kUnopenable));
  return variant == "lies" ? "LIAR" : variant.substr(0, end);
}

std::string variant_of(std::string_view path) {
  std::string_view file = path.substr(path.rfind('/') + 1);
  constexpr std::string_view kPrefix = "libplugrad_plugin_";
  return std::string(file.substr(kPrefix.size(), file.size() - kPrefix.size() - 3));
}

}  // namespace

#ifndef FAKE_ENTRY
#define FAKE_ENTRY pgr_plugin_entry_v1
#endif

extern "C" PGR_EXPORT pgr_status FAKE_ENTRY(pgr_hello* hello, const pgr_plugin_api** out,
                                            pgr_error* error) {
  plugin.variant = variant_of(view(hello->plugin_path));
  plugin.device_name = device_name_of(plugin.variant);
  for (char& c : plugin.device_name)
    c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (plugin.variant == "throws") throw std::runtime_error("thrown by entry");
  if (plugin.variant == "fails")
    return answer(error, PGR_STATUS_IO_ERROR, "its firmware file is missing");
  PGR_HELLO_ANSWER(hello, plugin.variant == "newer" ? 42u : 0u);
  if (plugin.variant == "newer") return PGR_STATUS_NEED_NEWER_HOST;
  if (plugin.variant == "silent") hello->canary_hello_offset = 0;
  if (plugin.variant == "other_layout") hello->canary_error_size = 8;
  static auto table = stamped<pgr_plugin_api>(PGR_STRUCT_PLUGIN_API);
  table.plugin = &plugin;
  table.info = plugin_info;
  table.device_count = device_count;
  table.device_open = plugin.variant == "null_slot" ? nullptr : device_open;
  table.device_close = device_close;
  table.query_interface = query_interface;
  table.shutdown = shut_down;
  if (plugin.variant == "short_table") table.struct_size = offsetof(pgr_plugin_api, device_count);
  if (plugin.variant == "wrong_id") table.struct_id = PGR_STRUCT_HELLO;
  *out = plugin.variant == "null_table" ? nullptr : &table;
  return PGR_STATUS_OK;
}

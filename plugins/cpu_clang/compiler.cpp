// Renderer and compiler: forwards to the SDK's components with this machine's options.
#include <vector>

#include "binary.h"
#include "plugin.h"
#include "plugrad/sdk/guard.h"
#include "toolchain.h"

namespace plugrad::cpu_clang {
namespace {

const void* open_component(pgr_plugin& plugin, std::string_view library,
                           std::string_view interface_name) {
  char message[512];
  pgr_error error;
  PGR_INIT(error, ERROR);
  error.message = message;
  error.message_capacity = sizeof message;
  const pgr_string library_name = sdk::to_pgr(library), name = sdk::to_pgr(interface_name);
  const void* table = nullptr;
  const pgr_status status = plugin.host->open_component(plugin.host->host, &library_name, &name,
                                                        PGR_API_MINOR, &table, &error);
  sdk::require(status == PGR_STATUS_OK, status,
               "cannot open component " + std::string(library) + ": " +
                   std::string(message, std::min<uint64_t>(error.message_size, sizeof message)));
  return table;
}

const pgr_renderer_api& renderer_of(pgr_plugin& plugin) {
  const std::lock_guard lock(plugin.components_mutex);
  if (!plugin.renderer)
    plugin.renderer = static_cast<const pgr_renderer_api*>(
        open_component(plugin, "plugrad_render", "pgr.renderer"));
  return *plugin.renderer;
}

const pgr_compiler_api& compiler_of(pgr_plugin& plugin) {
  const std::lock_guard lock(plugin.components_mutex);
  if (!plugin.compiler)
    plugin.compiler = static_cast<const pgr_compiler_api*>(
        open_component(plugin, "plugrad_clang", "pgr.compiler"));
  return *plugin.compiler;
}

pgr_option make_option(std::string_view key, std::string_view value) {
  pgr_option option;
  PGR_INIT(option, OPTION);
  option.key = sdk::to_pgr(key);
  option.value = sdk::to_pgr(value);
  return option;
}

pgr_status render(pgr_device* device, const pgr_render_desc* desc, pgr_blob* out,
                  pgr_error* error) {
  pgr_status status = PGR_STATUS_OK;
  const pgr_status outer = sdk::guard(error, [&] {
    pgr_render_desc own = sdk::read(desc);
    own.struct_size = sizeof own;
    const pgr_option dialect = make_option("dialect", "c");
    if (own.option_count == 0) {
      own.options = &dialect;
      own.option_count = 1;
      own.option_stride = sizeof dialect;
    }
    status = renderer_of(*device->plugin).render(nullptr, &own, out, error);
  });
  return outer == PGR_STATUS_OK ? status : outer;
}

// Copies the bytes of a blob, and releases it.
std::string take(pgr_blob& blob) {
  std::string bytes(static_cast<const char*>(blob.data), blob.size);
  if (blob.release) blob.release(&blob);
  return bytes;
}

pgr_status compile(pgr_device* device, const pgr_compile_desc* desc, pgr_blob* out_binary,
                   pgr_blob* out_log, pgr_error* error) {
  pgr_status status = PGR_STATUS_OK;
  const pgr_status outer = sdk::guard(error, [&] {
    const CpuFacts& cpu = device->cpu;
    const std::string bits = std::to_string(cpu.vector_bytes * 8);
    pgr_compile_desc own = sdk::read(desc);
    sdk::require(own.option_count == 0, PGR_STATUS_INVALID_ARGUMENT,
                 "the CPU's compiler takes no options; it compiles for this machine");
    const pgr_option options[] = {make_option("target", "x86_64-pc-linux-gnu"),
                                  make_option("cpu", "x86-64"), make_option("tune", cpu.tune),
                                  make_option("features", cpu.features),
                                  make_option("vector_bits", bits)};
    own.struct_size = sizeof own;
    own.options = options;
    own.option_count = std::size(options);
    own.option_stride = sizeof options[0];
    pgr_blob object;
    PGR_INIT(object, BLOB);
    status = compiler_of(*device->plugin).compile(nullptr, &own, &object, out_log, error);
    if (status == PGR_STATUS_OK)
      sdk::give_blob(out_binary, wrap_object(take(object), machine_text(cpu)));
  });
  return outer == PGR_STATUS_OK ? status : outer;
}

pgr_status cache_identity(pgr_device* device, pgr_blob* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::give_blob(out, "cpu_clang " PLUGRAD_COMPILER_VERSION " " + machine_text(device->cpu));
  });
}

pgr_status validate(pgr_device* device, const void* binary, uint64_t size, uint32_t* out,
                    pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    std::string_view object;
    const BinaryState state =
        unwrap_object({static_cast<const char*>(binary), size}, machine_text(device->cpu), &object);
    *out = state == BinaryState::Good      ? PGR_BINARY_GOOD
           : state == BinaryState::Foreign ? PGR_BINARY_FOREIGN
                                           : PGR_BINARY_RECOMPILE;
  });
}

pgr_status disassemble(pgr_device* device, const void* binary, uint64_t size, pgr_blob* out_text,
                       pgr_error* error) {
  pgr_status status = PGR_STATUS_OK;
  const pgr_status outer = sdk::guard(error, [&] {
    const std::string_view object =
        require_object({static_cast<const char*>(binary), size}, device->cpu);
    status = compiler_of(*device->plugin)
                 .disassemble(nullptr, object.data(), object.size(), out_text, error);
  });
  return outer == PGR_STATUS_OK ? status : outer;
}

}  // namespace

std::string machine_text(const CpuFacts& cpu) {
  return "x86_64 revision " PLUGRAD_CPU_REVISION " tune " + cpu.tune + " features " + cpu.features +
         " vector_bytes " + std::to_string(cpu.vector_bytes);
}

std::string_view require_object(std::string_view binary, const CpuFacts& cpu) {
  std::string_view object;
  const BinaryState state = unwrap_object(binary, machine_text(cpu), &object);
  sdk::require(
      state != BinaryState::Damaged, PGR_STATUS_BAD_BINARY,
      "a binary of " + std::to_string(binary.size()) + " bytes is damaged, or not of cpu_clang");
  sdk::require(state != BinaryState::Foreign, PGR_STATUS_BAD_BINARY,
               "the binary was compiled for another processor");
  return object;
}

const pgr_renderer_api* renderer_table() {
  static const pgr_renderer_api table = [] {
    pgr_renderer_api made;
    PGR_INIT(made, RENDERER_API);
    made.render = render;
    return made;
  }();
  return &table;
}

const pgr_compiler_api* compiler_table() {
  static const pgr_compiler_api table = [] {
    pgr_compiler_api made;
    PGR_INIT(made, COMPILER_API);
    made.compile = compile;
    made.cache_identity = cache_identity;
    made.validate = validate;
    made.disassemble = disassemble;
    return made;
  }();
  return &table;
}

}  // namespace plugrad::cpu_clang

// Renderer and compiler: the SDK's dialect "cuda", compiled for the device's architecture.
#include <algorithm>
#include <charconv>

#include "binary.h"
#include "plugin.h"
#include "plugrad/sdk/options.h"

namespace plugrad::cuda {
namespace {

pgr_status render(pgr_device*, const pgr_render_desc* desc, pgr_blob* out, pgr_error* error) {
  pgr_status status = PGR_STATUS_OK;
  const pgr_status outer = sdk::guard(error, [&] {
    pgr_render_desc own = sdk::read(desc);
    own.struct_size = sizeof own;
    const pgr_option dialect = make_option("dialect", "cuda");
    if (own.option_count == 0) {
      own.options = &dialect;
      own.option_count = 1;
      own.option_stride = sizeof dialect;
    }
    const auto& renderer = *static_cast<const pgr_renderer_api*>(
        open_component(the_plugin(), "plugrad_render", "pgr.renderer"));
    status = renderer.render(nullptr, &own, out, error);
  });
  return outer == PGR_STATUS_OK ? status : outer;
}

// "sm_90" gives 90.
unsigned read_target(std::string_view text) {
  unsigned value = 0;
  const bool has_prefix = text.starts_with("sm_");
  const char* begin = text.data() + std::min<size_t>(3, text.size());
  const auto [end, code] = std::from_chars(begin, text.data() + text.size(), value);
  sdk::require(has_prefix && code == std::errc() && end == text.data() + text.size(),
               PGR_STATUS_INVALID_ARGUMENT,
               "option target: \"" + std::string(text) + "\" is no architecture such as sm_90");
  return value;
}

// Architecture and compiler: the device's, or, without a device, those of the options.
struct Target {
  Target(pgr_device* device, const pgr_compile_desc& desc) {
    choice = device ? device->toolchain : the_plugin().toolchain;
    compute_capability = device ? device->facts.compute_capability : 0;
    for (const auto& [key, value] :
         sdk::read_options(desc.options, desc.option_count, desc.option_stride)) {
      if (key == "target")
        compute_capability = read_target(value);
      else
        sdk::require(read_option(choice, key, value), PGR_STATUS_INVALID_ARGUMENT,
                     "the compiler has no option \"" + std::string(key) +
                         "\"; it has target, compiler and nvrtc");
    }
    sdk::require(compute_capability != 0, PGR_STATUS_INVALID_ARGUMENT,
                 "without a device the option target says what to compile for, such as sm_90");
  }
  ToolchainChoice choice;
  unsigned compute_capability;
};

pgr_status compile_source(pgr_device* device, const pgr_compile_desc* desc, pgr_blob* out_binary,
                          pgr_blob* out_log, pgr_error* error) {
  return sdk::guard(error, [&] {
    const pgr_compile_desc own = sdk::read(desc);
    const Target target(device, own);
    sdk::require(own.input != nullptr, PGR_STATUS_INVALID_ARGUMENT, "compile: the input is NULL");
    sdk::require(own.optimize <= 3, PGR_STATUS_INVALID_ARGUMENT,
                 "optimize is " + std::to_string(own.optimize) + "; allowed are 0 to 3");
    CompileJob job;
    job.source = {static_cast<const char*>(own.input), own.input_bytes};
    job.name = own.name.size ? sdk::to_view(own.name) : std::string_view("kernel");
    job.compute_capability = target.compute_capability;
    job.contract = own.contract != PGR_CONTRACT_OFF;
    job.optimize = own.optimize;
    CompiledCode compiled;
    const auto give_log = [&] { sdk::give_blob(out_log, std::move(compiled.log)); };
    try {
      compile(the_plugin(), target.choice, job, compiled);
    } catch (const sdk::StatusError&) {
      give_log();
      throw;
    }
    give_log();
    sdk::give_blob(out_binary,
                   wrap_binary({compiled.is_ptx, kernels_of(job.source), std::move(compiled.code)},
                               "sm_" + std::to_string(target.compute_capability)));
  });
}

pgr_device& require_device(pgr_device* device, const char* what) {
  sdk::require(device != nullptr, PGR_STATUS_INVALID_ARGUMENT,
               std::string(what) + ": the device is NULL");
  return *device;
}

pgr_status cache_identity(pgr_device* device, pgr_blob* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    const pgr_device& own = require_device(device, "cache_identity");
    sdk::give_blob(out, toolchain_text(own.toolchain, own.facts.compute_capability));
  });
}

pgr_status validate(pgr_device* device, const void* binary, uint64_t size, uint32_t* out,
                    pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    Binary opened;
    const BinaryState state = unwrap_binary({static_cast<const char*>(binary), size},
                                            require_device(device, "validate").facts.arch, &opened);
    *out = state == BinaryState::Good      ? PGR_BINARY_GOOD
           : state == BinaryState::Foreign ? PGR_BINARY_FOREIGN
                                           : PGR_BINARY_RECOMPILE;
  });
}

pgr_status disassemble(pgr_device* device, const void* binary, uint64_t size, pgr_blob* out_text,
                       pgr_error* error) {
  return sdk::guard(error, [&] {
    Binary opened = require_binary({static_cast<const char*>(binary), size},
                                   require_device(device, "disassemble").facts.arch);
    sdk::require(opened.is_ptx, PGR_STATUS_UNSUPPORTED,
                 "the binary is machine code: open the device with compiler=nvrtc_ptx to see PTX");
    sdk::give_blob(out_text, std::move(opened.code));
  });
}

}  // namespace

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
    made.compile = compile_source;
    made.cache_identity = cache_identity;
    made.validate = validate;
    made.disassemble = disassemble;
    return made;
  }();
  return &table;
}

}  // namespace plugrad::cuda

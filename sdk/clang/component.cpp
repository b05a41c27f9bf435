// Clang as a "pgr.compiler". `device` is ignored. Options: "language" = "c" or "cuda", "target",
// "cpu", "tune", "features", "vector_bits", "failure_dir".
#include <llvm/Config/llvm-config.h>

#include <charconv>

#include "clang/compile.h"
#include "plugrad/plugin_api/compiler.h"
#include "plugrad/sdk/guard.h"
#include "plugrad/sdk/options.h"

namespace plugrad::clang_component {
namespace {

// Increment when flags or passes change, to invalidate cached objects.
constexpr const char* kRevision = "6";

unsigned to_number(std::string_view key, std::string_view text) {
  unsigned value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  sdk::require(code == std::errc() && end == text.data() + text.size(), PGR_STATUS_INVALID_ARGUMENT,
               "option " + std::string(key) + ": \"" + std::string(text) + "\" is not a number");
  return value;
}

void set_option(CompileOptions& options, std::string_view key, std::string_view value) {
  if (key == "language") {
    sdk::require(value == "c" || value == "cuda", PGR_STATUS_UNSUPPORTED,
                 "no language \"" + std::string(value) + "\"; there are \"c\" and \"cuda\"");
    options.language = value == "cuda" ? Language::Cuda : Language::C;
  } else if (key == "target") {
    options.target = value;
  } else if (key == "cpu") {
    options.cpu = value;
  } else if (key == "tune") {
    options.tune = value;
  } else if (key == "features") {
    options.features = value;
  } else if (key == "vector_bits") {
    options.vector_bits = to_number(key, value);
  } else if (key == "failure_dir") {
    options.failure_dir = value;
  } else {
    throw sdk::StatusError(
        PGR_STATUS_INVALID_ARGUMENT,
        "the compiler has no option \"" + std::string(key) +
            "\"; it has language, target, cpu, tune, features, vector_bits, failure_dir");
  }
}

CompileOptions options_of(const pgr_compile_desc& desc) {
  CompileOptions options;
  for (const auto& [key, value] :
       sdk::read_options(desc.options, desc.option_count, desc.option_stride))
    set_option(options, key, value);
  if (options.language == Language::Cuda && options.target == CompileOptions().target)
    options.target = "nvptx64-nvidia-cuda";
  if (desc.name.size) options.name = sdk::to_view(desc.name);
  sdk::require(desc.optimize <= 3, PGR_STATUS_INVALID_ARGUMENT,
               "optimize is " + std::to_string(desc.optimize) + "; allowed are 0 to 3");
  options.optimize = desc.optimize;
  options.contract = desc.contract != PGR_CONTRACT_OFF;
  return options;
}

pgr_status compile(pgr_device*, const pgr_compile_desc* desc, pgr_blob* out_binary,
                   pgr_blob* out_log, pgr_error* error) {
  return sdk::guard(error, [&] {
    const pgr_compile_desc own = sdk::read(desc);
    const CompileOptions options = options_of(own);
    CompileResult result =
        compile_source({static_cast<const char*>(own.input), own.input_bytes}, options);
    const std::string first_line = result.log.substr(0, result.log.find('\n'));
    sdk::give_blob(out_log, std::move(result.log));
    sdk::require(result.ok, PGR_STATUS_COMPILE_FAILED,
                 "kernel " + options.name + ": " + first_line);
    sdk::give_blob(out_binary, std::move(result.object));
  });
}

pgr_status cache_identity(pgr_device*, pgr_blob* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::give_blob(out, std::string("plugrad_clang ") + kRevision + " LLVM " + LLVM_VERSION_STRING);
  });
}

// PTX is text already.
bool is_ptx(std::string_view code) {
  return code.starts_with("//") && code.find("\n.version ") != code.npos;
}

pgr_status disassemble(pgr_device*, const void* binary, uint64_t binary_bytes, pgr_blob* out_text,
                       pgr_error* error) {
  return sdk::guard(error, [&] {
    const std::string_view code(static_cast<const char*>(binary), binary_bytes);
    sdk::give_blob(out_text, is_ptx(code) ? std::string(code) : disassemble_object(code));
  });
}

pgr_compiler_api make_table() {
  pgr_compiler_api table;
  PGR_INIT(table, COMPILER_API);
  table.compile = compile;
  table.cache_identity = cache_identity;
  table.disassemble = disassemble;
  return table;
}

}  // namespace
}  // namespace plugrad::clang_component

extern "C" PGR_EXPORT pgr_status pgr_component_entry_v1(const pgr_host_api*,
                                                        const pgr_string* interface_name, uint32_t,
                                                        const void** out_table, pgr_error* error) {
  using namespace plugrad;
  return sdk::guard(error, [&] {
    sdk::require(sdk::to_view(interface_name) == "pgr.compiler", PGR_STATUS_UNSUPPORTED,
                 "plugrad_clang offers pgr.compiler, not \"" +
                     std::string(sdk::to_view(interface_name)) + "\"");
    static const pgr_compiler_api table = clang_component::make_table();
    *out_table = &table;
  });
}

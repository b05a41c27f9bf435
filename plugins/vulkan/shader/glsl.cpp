#include "glsl.h"

#include <glslang/build_info.h>
#include <shaderc/shaderc.h>
#include <spirv-tools/libspirv.h>

#include <algorithm>
#include <climits>
#include <memory>

#include "plugrad/sdk/guard.h"

namespace plugrad::vulkan {
namespace {

// One process-wide compiler: creating it takes as long as compiling fifty kernels. Thread-safe.
shaderc_compiler_t compiler() {
  static const shaderc_compiler_t made = shaderc_compiler_initialize();
  sdk::require(made != nullptr, PGR_STATUS_INTERNAL, "shaderc could not be started");
  return made;
}

// No optimisation here: the driver optimises, and this optimiser would ignore exact arithmetic.
shaderc_compile_options_t options() {
  static const shaderc_compile_options_t made = [] {
    const shaderc_compile_options_t own = shaderc_compile_options_initialize();
    shaderc_compile_options_set_target_env(own, shaderc_target_env_vulkan,
                                           shaderc_env_version_vulkan_1_1);
    shaderc_compile_options_set_target_spirv(own, shaderc_spirv_version_1_3);
    // Without #version glslang does not find its built-in functions and aborts.
    shaderc_compile_options_set_forced_version_profile(own, 460, shaderc_profile_core);
    shaderc_compile_options_set_optimization_level(own, shaderc_optimization_level_zero);
    // The device's limits decide which groups fit; glslang's own limit is 64 along z.
    for (const shaderc_limit limit :
         {shaderc_limit_max_compute_work_group_size_x, shaderc_limit_max_compute_work_group_size_y,
          shaderc_limit_max_compute_work_group_size_z})
      shaderc_compile_options_set_limit(own, limit, INT_MAX);
    return own;
  }();
  return made;
}

}  // namespace

std::string compiler_text() {
  return "glslang " + std::to_string(GLSLANG_VERSION_MAJOR) + "." +
         std::to_string(GLSLANG_VERSION_MINOR) + "." + std::to_string(GLSLANG_VERSION_PATCH);
}

std::vector<uint32_t> compile_glsl(std::string_view source, const std::string& name,
                                   std::string& log) {
  const std::unique_ptr<shaderc_compilation_result, decltype(&shaderc_result_release)> result(
      shaderc_compile_into_spv(compiler(), source.data(), source.size(), shaderc_compute_shader,
                               "kernel", "main", options()),
      shaderc_result_release);
  sdk::require(result != nullptr, PGR_STATUS_OUT_OF_HOST_MEMORY, "shaderc gave no result");
  log = shaderc_result_get_error_message(result.get());
  const size_t fault = std::min(log.find("error:"), log.size());
  sdk::require(
      shaderc_result_get_compilation_status(result.get()) == shaderc_compilation_status_success,
      PGR_STATUS_COMPILE_FAILED,
      "shaderc refuses kernel " + name + ": " + log.substr(fault, log.find('\n', fault) - fault));
  const auto* words = reinterpret_cast<const uint32_t*>(shaderc_result_get_bytes(result.get()));
  return {words, words + shaderc_result_get_length(result.get()) / sizeof(uint32_t)};
}

std::string disassemble_module(const std::vector<uint32_t>& words) {
  const std::unique_ptr<spv_context_t, decltype(&spvContextDestroy)> context(
      spvContextCreate(SPV_ENV_VULKAN_1_1), spvContextDestroy);
  spv_text text = nullptr;
  spv_diagnostic diagnostic = nullptr;
  const spv_result_t result =
      spvBinaryToText(context.get(), words.data(), words.size(),
                      SPV_BINARY_TO_TEXT_OPTION_FRIENDLY_NAMES | SPV_BINARY_TO_TEXT_OPTION_INDENT,
                      &text, &diagnostic);
  const std::string out = text ? std::string(text->str, text->length) : "";
  const std::string reason = diagnostic && diagnostic->error ? diagnostic->error : "";
  spvTextDestroy(text);
  spvDiagnosticDestroy(diagnostic);
  sdk::require(result == SPV_SUCCESS, PGR_STATUS_BAD_BINARY, "no SPIR-V module: " + reason);
  return out;
}

}  // namespace plugrad::vulkan

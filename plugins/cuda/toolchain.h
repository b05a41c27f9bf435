// CUDA C to what the driver loads: by NVRTC where it can be opened, otherwise by the SDK's Clang.
#pragma once

#include <string>
#include <string_view>

#include "plugrad/plugin_api/compiler.h"

struct pgr_plugin;

namespace plugrad::cuda {

// By the options "compiler" and "nvrtc".
struct ToolchainChoice {
  enum class Compiler { Auto, Nvrtc, NvrtcPtx, Clang } compiler = Compiler::Auto;
  std::string nvrtc_path;  // empty: the usual names
};

// Takes an option of the plugin or of a device; false where it is none of ours. Throws StatusError
// (INVALID_ARGUMENT) for a value that it cannot have.
bool read_option(ToolchainChoice& choice, std::string_view key, std::string_view value);

struct CompileJob {
  std::string_view source, name;
  unsigned compute_capability = 0;
  bool contract = false;
  uint32_t optimize = 2;
};
struct CompiledCode {
  bool is_ptx = true;
  std::string code, log;
};

// Throws StatusError: COMPILE_FAILED with `out.log` filled, or what keeps the compiler from
// running.
void compile(pgr_plugin& plugin, const ToolchainChoice& choice, const CompileJob& job,
             CompiledCode& out);

// Which compiler would be used, with its version and what it compiles for.
std::string toolchain_text(const ToolchainChoice& choice, unsigned compute_capability);

// A component's table, opened by the host.
const void* open_component(pgr_plugin& plugin, std::string_view library,
                           std::string_view interface_name);

pgr_option make_option(std::string_view key, std::string_view value);
// The bytes of a blob, which is released.
std::string take(pgr_blob& blob);

}  // namespace plugrad::cuda

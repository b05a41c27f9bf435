// Compiles CUDA C for the driver: with NVRTC if it can be opened, otherwise with the SDK's Clang.
#pragma once

#include <string>
#include <string_view>

#include "plugrad/plugin_api/compiler.h"

struct pgr_plugin;

namespace plugrad::cuda {

// The values of the options "compiler" and "nvrtc".
struct ToolchainChoice {
  enum class Compiler { Auto, Nvrtc, NvrtcPtx, Clang } compiler = Compiler::Auto;
  std::string nvrtc_path;  // empty: the default names
};

// Reads an option of the plugin or of a device; returns false for unknown keys. Throws StatusError
// (INVALID_ARGUMENT) for an invalid value.
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

// Throws StatusError: COMPILE_FAILED with `out.log` filled, or the reason that the compiler cannot
// run.
void compile(pgr_plugin& plugin, const ToolchainChoice& choice, const CompileJob& job,
             CompiledCode& out);

// Name and version of the compiler that would be used, and its target.
std::string toolchain_text(const ToolchainChoice& choice, unsigned compute_capability);

// A table of a component that the host opens.
const void* open_component(pgr_plugin& plugin, std::string_view library,
                           std::string_view interface_name);

pgr_option make_option(std::string_view key, std::string_view value);
// Copies the bytes of a blob, and releases it.
std::string take(pgr_blob& blob);

}  // namespace plugrad::cuda

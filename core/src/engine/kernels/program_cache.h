// Programs on disk: what code generation and rendering made of a kernel, so that a process that
// computes what another one did before generates and renders nothing.
#pragma once

#include <optional>
#include <string>

#include "codegen/codegen.h"
#include "runtime/device/device.h"

namespace plugrad::engine {

struct Program {
  codegen::KernelCode code;
  std::string source;  // empty where the device's compiler takes kernel IR
};

/// Everything that a program depends on: the kernel's structure, what it was told to be generated
/// with, the device (Device::code_identity).
std::string program_key(const uint64_t (&ast_hash)[2], std::string_view options,
                        runtime::Device& device);

/// From the disk cache, or nothing; what cannot be read is removed there.
std::optional<Program> find_program(const std::string& key);
void keep_program(const std::string& key, const Program& program);

}  // namespace plugrad::engine

// Caches the results of code generation and rendering on disk, so that another process can skip
// both.
#pragma once

#include <optional>
#include <string>

#include "codegen/codegen.h"
#include "runtime/device/device.h"

namespace plugrad::engine {

struct Program {
  codegen::KernelCode code;
  std::string source;  // empty if the device's compiler takes kernel IR
};

/// Identifies a program: the kernel's structure, the options of code generation, the device
/// (Device::code_identity).
std::string program_key(const uint64_t (&ast_hash)[2], std::string_view options,
                        runtime::Device& device);

/// Looks the program up in the disk cache; removes an entry that cannot be read.
std::optional<Program> find_program(const std::string& key);
void keep_program(const std::string& key, const Program& program);

}  // namespace plugrad::engine

// Compiles GLSL to SPIR-V with shaderc, and disassembles SPIR-V.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad::vulkan {

// Name and version of the compiler.
std::string compiler_text();

// The module and the compiler's warnings. Thread-safe. Throws StatusError (COMPILE_FAILED) after
// writing the errors to `log`.
std::vector<uint32_t> compile_glsl(std::string_view source, const std::string& name,
                                   std::string& log);

// Throws StatusError (BAD_BINARY) unless the words are a module.
std::string disassemble_module(const std::vector<uint32_t>& words);

}  // namespace plugrad::vulkan

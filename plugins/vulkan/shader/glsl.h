// GLSL to SPIR-V by shaderc, and SPIR-V to text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad::vulkan {

// The compiler and its version.
std::string compiler_text();

// The module, and the compiler's warnings. Thread-safe. Throws StatusError (COMPILE_FAILED) after
// it has put the errors into `log`.
std::vector<uint32_t> compile_glsl(std::string_view source, const std::string& name,
                                   std::string& log);

// Throws StatusError (BAD_BINARY) where the words are no module.
std::string disassemble_module(const std::vector<uint32_t>& words);

}  // namespace plugrad::vulkan

// PoCL reads 18,000 lines of declarations with every program, which takes seven eighths of a build.
#pragma once

#include <string>
#include <string_view>

namespace plugrad::opencl {

// A build option that makes PoCL leave out its declarations of OpenCL's functions.
inline constexpr const char* kPoclWithoutHeader = " -D_OPENCL_H_";

// The types and functions that the renderer's text uses, for that option; goes before the source.
std::string pocl_declarations(std::string_view source);

}  // namespace plugrad::opencl

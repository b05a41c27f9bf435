// PoCL parses 18,000 lines of declarations for every program, which takes seven eighths of a build.
#pragma once

#include <string>
#include <string_view>

namespace plugrad::opencl {

// Build option that makes PoCL omit its declarations of OpenCL's functions.
inline constexpr const char* kPoclWithoutHeader = " -D_OPENCL_H_";

// The types and functions used by rendered source, for that option; prepended to the source.
std::string pocl_declarations(std::string_view source);

}  // namespace plugrad::opencl

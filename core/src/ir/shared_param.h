// A flag of kernel parameters (ir/kernel_ast.h) between schedule and codegen.
#pragma once

#include <cstdint>

namespace plugrad {

/// One buffer may be this parameter and another with this flag; plugins see that as no NO_ALIAS.
inline constexpr uint32_t kParamShared = 1u << 31;

}  // namespace plugrad

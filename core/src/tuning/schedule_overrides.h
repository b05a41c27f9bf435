// Optimisation lists that a user gives to kernels: the setting PLUGRAD_OPTIMISATIONS.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "codegen/codegen.h"
#include "ir/kernel_ast.h"
#include "runtime/device/device.h"

namespace plugrad::tuning {

/// The list that the settings give the kernel; nothing where they name others. Errors: User where
/// the text holds no lists, or the kernel's is not legal for it.
std::optional<std::vector<codegen::Optimisation>> schedule_override(const KernelAst& ast,
                                                                    runtime::Device& device,
                                                                    codegen::Options options);

/// A session begins: lists that the settings give now are looked at when the process ends, also if
/// it makes no kernel.
void check_overrides_at_exit();
/// A part of the program begins for which the lists of `text` hold. Errors: User where it holds
/// none.
void begin_overrides(std::string_view text);
/// It ends: a warning names the kernels of `text` that nobody has made yet, if the part was done to
/// its end. For lists of the environment the end is that of the process.
void end_overrides(std::string_view text, bool is_done);

}  // namespace plugrad::tuning

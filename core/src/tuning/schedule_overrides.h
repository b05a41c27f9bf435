// Schedule overrides that a user gives to kernels: the setting PLUGRAD_OPTIMISATIONS.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "codegen/codegen.h"
#include "ir/kernel_ast.h"
#include "runtime/device/device.h"

namespace plugrad::tuning {

/// The kernel's override; nothing if the settings name other kernels. Errors: User if the text
/// cannot be parsed or the override is not legal for the kernel.
std::optional<codegen::KernelSchedule> schedule_override(const KernelAst& ast,
                                                         runtime::Device& device,
                                                         codegen::Options options);

/// Call at the start of a session: checks the current overrides at exit, even if no kernel is made.
void check_overrides_at_exit();
/// Starts a scope in which the overrides of `text` hold. Errors: User if it holds none.
void begin_overrides(std::string_view text);
/// Ends the scope; if `is_done`, warns of kernels in `text` that were never made. Overrides from
/// the environment are checked at exit instead.
void end_overrides(std::string_view text, bool is_done);

}  // namespace plugrad::tuning

// Which optimisations a kernel gets: what it is given, what a search finds, or has found before.
#pragma once

#include <optional>

#include "codegen/codegen.h"
#include "ir/kernel_ast.h"
#include "runtime/device/device.h"
#include "tuning/schedule_database.h"

namespace plugrad::tuning {

/// The facts of a device that lists are found by.
std::string device_facts_key(const pgr_device_caps& caps);

/// What of a kernel, its device and the options is looked up.
ScheduleRecord schedule_key(const KernelAst& ast, runtime::Device& device,
                            const codegen::Options& options);

/// The list for the kernel: that which the settings give it; with BEAM that of a search, unless one
/// of that width has ended before; without, what the database says. Nothing: the heuristic's, as
/// with `deterministic` unless the settings give one. A failed search is a warning. Errors: User,
/// for a budget that is none and for a given list that is not legal.
std::optional<std::vector<codegen::Optimisation>> tuned_schedule(const KernelAst& ast,
                                                                 runtime::Device& device,
                                                                 const codegen::Options& options);

}  // namespace plugrad::tuning

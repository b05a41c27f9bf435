// Which optimisations a kernel gets: what it is given, what a search finds, or has found before.
#pragma once

#include <optional>

#include "codegen/codegen.h"
#include "engine/search_db.h"
#include "runtime/device/device.h"
#include "schedule/schedule.h"

namespace plugrad::engine {

/// The facts of a device that lists are found by.
std::string search_facts(const pgr_device_caps& caps);

/// What of a kernel, its device and the options is looked up.
SearchRecord search_key(const schedule::KernelAst& ast, runtime::Device& device,
                        const codegen::Options& options);

/// The list for the kernel: that which the settings give it; with BEAM that of a search, unless one
/// of that width has ended before; without, what the database says. Nothing: the heuristic's, as
/// with `deterministic` unless the settings give one. A failed search is a warning. Errors: User,
/// for a budget that is none and for a given list that is not legal.
std::optional<std::vector<codegen::Optimisation>> tuned_list(const schedule::KernelAst& ast,
                                                             runtime::Device& device,
                                                             const codegen::Options& options);

}  // namespace plugrad::engine

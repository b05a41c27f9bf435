// Chooses the schedule of a kernel: an override, the result of a search, or a stored result.
#pragma once

#include <optional>
#include <vector>

#include "codegen/codegen.h"
#include "ir/kernel_ast.h"
#include "runtime/device/device.h"
#include "tuning/schedule_database.h"

namespace plugrad::tuning {

/// The device facts that are part of a schedule's key.
std::string device_facts_key(const pgr_device_caps& caps);

/// The database key of a kernel, its device and the options.
ScheduleRecord schedule_key(const KernelAst& ast, runtime::Device& device,
                            const codegen::Options& options);

/// The kernel's schedule: the override in the settings; else, with BEAM, the result of a search,
/// unless one of that width has finished before; else the stored one. Nothing: the heuristic's
/// schedule, also with `deterministic` and no override. A failed search is a warning. Errors: User
/// for an invalid budget and for an override that is not legal.
std::optional<codegen::KernelSchedule> tuned_schedule(const KernelAst& ast, runtime::Device& device,
                                                      const codegen::Options& options);

struct MeasuredSchedule {
  codegen::KernelSchedule list;
  double seconds = 0;  // of a launch
};
/// Notes the time of a launch with the schedule, while a trace is on.
void note_measured(const KernelAst& ast, const runtime::Device& device,
                   const codegen::KernelSchedule& list, double seconds);
/// Launch times of the kernel with the schedules that this process measured; else the stored result
/// of an earlier search. Kept only while a trace is on.
std::vector<MeasuredSchedule> measured_schedules(const KernelAst& ast,
                                                 const runtime::Device& device);

}  // namespace plugrad::tuning

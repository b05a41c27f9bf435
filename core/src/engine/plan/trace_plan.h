// Defines plans and kernels in the trace.
#pragma once

#include <cstdint>
#include <span>

#include "engine/plan/ready_plan.h"

namespace plugrad::engine {

/// Defines the plan, with the tensor graph if it was planned while a trace was on, and its kernels;
/// once.
void trace_plan(ReadyPlan& ready);

/// Defines a kernel that may take the place of the step's own, with the operations of the step; once.
void trace_kernel_of_step(const ReadyPlan& ready, size_t step, const ReadyKernel& kernel);

/// Defines a kernel that computes these operations of the trace, once.
void trace_kernel(const ReadyKernel& ready, std::span<const uint32_t> operations);

}  // namespace plugrad::engine

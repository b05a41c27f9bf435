#include "runtime/checks/launch_rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace plugrad::runtime {
namespace {

std::string dead_buffer(LiveObjects& live, const pgr_launch_desc& desc) {
  if (desc.buffer_count > 0 && !desc.buffers) return "the list of buffers is NULL";
  if (desc.scalar_count > 0 && !desc.scalars) return "the list of scalars is NULL";
  for (uint32_t i = 0; i < desc.buffer_count; ++i)
    if (!live.buffer(desc.buffers[i]))
      return fmt::format("buffer {} {}", i, live.why_not(desc.buffers[i], "was freed"));
  return "";
}

// A limit of 0 means that none is stated.
std::string over_limits(const pgr_launch_desc& desc, const pgr_device_caps& caps) {
  uint64_t items = 1;
  for (int axis = 0; axis < 3; ++axis) {
    const uint32_t local = desc.local_size[axis];
    if (local == 0) return fmt::format("a local size of 0 along axis {}", axis);
    if (caps.max_local_size[axis] != 0 && local > caps.max_local_size[axis])
      return fmt::format("a local size of {} along axis {}; the device allows {}", local, axis,
                         caps.max_local_size[axis]);
    if (caps.max_groups[axis] != 0 && desc.group_count[axis] > caps.max_groups[axis])
      return fmt::format("{} groups along axis {}; the device allows {}", desc.group_count[axis],
                         axis, caps.max_groups[axis]);
    items *= local;
  }
  if (caps.max_local_total != 0 && items > caps.max_local_total)
    return fmt::format("{} work-items in a group; the device allows {}", items,
                       caps.max_local_total);
  return "";
}

std::string not_as_compiled(const KernelFacts& facts, const pgr_launch_desc& desc) {
  const auto is_scalar = [](const pgr_ir_param& p) { return p.kind == PGR_PARAM_SCALAR; };
  const auto scalars = static_cast<uint32_t>(std::ranges::count_if(facts.params, is_scalar));
  const auto buffers = static_cast<uint32_t>(facts.params.size()) - scalars;
  if (desc.buffer_count != buffers)
    return fmt::format("{} buffers; the kernel has {} buffer parameters", desc.buffer_count,
                       buffers);
  if (desc.scalar_count != scalars)
    return fmt::format("{} scalars; the kernel has {} scalar parameters", desc.scalar_count,
                       scalars);
  if (!std::equal(facts.local_size, facts.local_size + 3, desc.local_size))
    return fmt::format("a local size of {} x {} x {}; the kernel was made for {} x {} x {}",
                       desc.local_size[0], desc.local_size[1], desc.local_size[2],
                       facts.local_size[0], facts.local_size[1], facts.local_size[2]);
  return "";
}

bool overlap(const LiveBuffer& a, const LiveBuffer& b) {
  return a.root == b.root && a.offset < b.offset + b.size && b.offset < a.offset + a.size;
}

std::string wrong_buffers(LiveObjects& live, const std::vector<const pgr_ir_param*>& params,
                          const pgr_launch_desc& desc) {
  for (uint32_t i = 0; i < params.size(); ++i) {
    const LiveBuffer& mine = *live.buffer(desc.buffers[i]);
    const uint64_t needed = params[i]->elem_count * dtype_bytes(params[i]->dtype);
    if (mine.size < needed)
      return fmt::format("buffer {} has {} bytes; the kernel reaches {}", i, mine.size, needed);
    for (uint32_t j = 0; j < params.size(); ++j) {
      if (i == j || !(params[i]->flags & PGR_PARAM_NO_ALIAS)) continue;
      if (overlap(mine, *live.buffer(desc.buffers[j])))
        return fmt::format(
            "buffers {} and {} overlap, and the kernel was made for a buffer {} "
            "that no other one reaches",
            i, j, i);
    }
  }
  return "";
}

std::string wrong_scalars(const std::vector<const pgr_ir_param*>& params,
                          const pgr_launch_desc& desc) {
  for (uint32_t i = 0; i < params.size(); ++i) {
    const uint32_t dtype = params[i]->dtype;
    if (dtype >= PGR_DTYPE_F16) continue;  // bounds are those of integers
    const auto value = static_cast<int64_t>(desc.scalars[i]);
    if (params[i]->min > params[i]->max || (value >= params[i]->min && value <= params[i]->max))
      continue;
    return fmt::format("scalar {} is {}; the kernel was made for {} to {}", i, value,
                       params[i]->min, params[i]->max);
  }
  return "";
}

}  // namespace

std::string launch_error(LiveObjects& live, const LiveKernel& kernel, const pgr_launch_desc& desc,
                         const pgr_device_caps& caps) {
  std::string wrong = dead_buffer(live, desc);
  if (wrong.empty()) wrong = over_limits(desc, caps);
  if (!wrong.empty() || !kernel.facts) return wrong;
  wrong = not_as_compiled(*kernel.facts, desc);
  if (!wrong.empty()) return wrong;
  std::vector<const pgr_ir_param*> buffers, scalars;
  for (const pgr_ir_param& param : kernel.facts->params)
    (param.kind == PGR_PARAM_SCALAR ? scalars : buffers).push_back(&param);
  wrong = wrong_buffers(live, buffers, desc);
  return wrong.empty() ? wrong_scalars(scalars, desc) : wrong;
}

}  // namespace plugrad::runtime

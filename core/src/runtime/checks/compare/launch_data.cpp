#include "runtime/checks/compare/launch_data.h"

#include <algorithm>
#include <cstring>

#include "runtime/checks/compare/values.h"
#include "runtime/device/device.h"

namespace plugrad::runtime {
namespace {

bool same_core(const pgr_device_caps& a, const pgr_device_caps& b, uint64_t number) {
  if (number >= a.tensor_core_count || number >= b.tensor_core_count) return false;
  const pgr_tensor_core &x = a.tensor_cores[number], &y = b.tensor_cores[number];
  const auto facts = [](const pgr_tensor_core& c) {
    return std::array{c.kind,      c.n,       c.m,       c.k,       c.threads,         c.dtype_in,
                      c.dtype_out, c.elems_a, c.elems_b, c.elems_c, c.fraction_bits_in};
  };
  return facts(x) == facts(y) && std::memcmp(x.layout_a, y.layout_a, sizeof x.layout_a) == 0 &&
         std::memcmp(x.layout_b, y.layout_b, sizeof x.layout_b) == 0 &&
         std::memcmp(x.layout_c, y.layout_c, sizeof x.layout_c) == 0;
}

bool claims(const pgr_device_caps& caps, uint32_t op, uint32_t dtype) {
  return op < std::size(caps.op_dtypes) && (caps.op_dtypes[op] >> dtype & 1) != 0;
}

std::string lacking_in_line(const KernelLines& kernel, uint32_t number, const pgr_device_caps& caps,
                            const pgr_device_caps& made_for) {
  const KernelLines::Line& line = kernel.lines[number];
  const uint32_t dtype = claimed_dtype(kernel, number), kind = op_class(line.op);
  if (line.op == PGR_OP_WMMA)
    return same_core(caps, made_for, line.arg) ? "" : "the tensor core of WMMA";
  const bool is_plain_memory = line.op == PGR_OP_LOAD || line.op == PGR_OP_STORE;
  if (is_plain_memory && (caps.storage_dtypes >> dtype & 1) == 0)
    return "memory of " + dtype_name(dtype);
  const bool must_claim =
      kind == PGR_OP_CLASS_ALU || (kind == PGR_OP_CLASS_MEMORY && !is_plain_memory);
  if (must_claim && !claims(caps, line.op, dtype)) return operation_text(kernel, number);
  const bool is_wide =
      dtype < std::size(caps.vector_lanes) && line.lanes > std::max(1u, caps.vector_lanes[dtype]);
  return is_wide ? "vectors of " + operation_text(kernel, number) : "";
}

}  // namespace

uint64_t LaunchData::bytes() const {
  uint64_t out = 0;
  for (const auto& region : regions) out += region.size();
  return out;
}

std::vector<uint32_t> LaunchData::buffer_params(const KernelLines& kernel) {
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < kernel.params.size(); ++i)
    if (kernel.params[i].kind == PGR_PARAM_BUFFER) out.push_back(i);
  return out;
}

std::string lacking(const KernelLines& kernel, const pgr_device_caps& caps,
                    const pgr_device_caps& made_for) {
  const bool has_groups = std::ranges::any_of(kernel.local_size, [](uint32_t n) { return n > 1; });
  const bool has_local = std::ranges::any_of(
      kernel.arrays, [](const pgr_ir_array& a) { return a.space == PGR_SPACE_LOCAL; });
  if ((has_groups || has_local) && !caps.has_local) return "local memory";
  for (uint32_t i = 0; i < kernel.lines.size(); ++i)
    if (std::string lacks = lacking_in_line(kernel, i, caps, made_for); !lacks.empty())
      return lacks;
  return "";
}

HostMemory run_on(Device& device, const Kernel& kernel, const LaunchData& data) {
  std::vector<std::shared_ptr<Buffer>> owners;
  for (const auto& region : data.regions) {
    owners.push_back(device.allocate(region.size()));
    owners.back()->copy_in(region.data(), region.size());
  }
  std::vector<Buffer*> buffers;
  for (const std::size_t region : data.region_of) buffers.push_back(owners[region].get());
  device.launch(kernel, {.buffers = buffers,
                         .scalars = data.scalars,
                         .group_count = data.group_count,
                         .local_size = data.local_size});
  device.synchronize();
  HostMemory out;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    out.emplace_back(data.regions[i].size());
    owners[i]->copy_out(out.back().data(), out.back().size());
  }
  return out;
}

HostMemory run_on(Device& device, const KernelLines& kernel, const LaunchData& data,
                  bool contract) {
  const auto made =
      device.compile(kernel.encode(), kernel.name, {.contract = contract, .keep = false});
  return run_on(device, *made, data);
}

double executed_lines(const KernelLines& kernel, const std::array<uint64_t, 3>& group_count) {
  double items = 1, out = 0;
  for (int axis = 0; axis < 3; ++axis)
    items *= static_cast<double>(group_count[axis]) * kernel.local_size[axis];
  std::vector<double> times{1};
  for (const KernelLines::Line& line : kernel.lines) {
    if (line.op == PGR_OP_LOOP) {
      const auto bound = [&](std::size_t i) {
        const KernelLines::Line& source = kernel.lines[line.sources[i]];
        return source.op == PGR_OP_CONST ? number_of(source.dtype, source.arg) : 0;
      };
      times.push_back(times.back() * std::max(1.0, bound(1) - bound(0)));
    }
    if (line.op == PGR_OP_IF) times.push_back(times.back());
    out += times.back() * line.lanes;
    if (line.op == PGR_OP_END_LOOP || line.op == PGR_OP_END_IF) times.pop_back();
  }
  return out * items;
}

}  // namespace plugrad::runtime

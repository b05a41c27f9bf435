// Kernels whose steps build on one another, which no Reduce says: running totals. They are written
// as kernel IR, for the capabilities of a device.
#pragma once

#include <functional>
#include <string>

#include "codegen/ir_writer.h"
#include "plugrad/plugin_api/device.h"
#include "uop/op.h"

namespace plugrad::codegen {

struct WrittenKernel {
  std::vector<std::byte> ir;
  LaunchSize size;
};
using KernelWriter = std::function<WrittenKernel(std::string_view name, const pgr_device_caps&)>;

/// out[a, i, b] = before[a, b] op x[a, 0, b] op … op x[a, i, b]. Buffers: out, x and, where there
/// is one, before, all of `dtype`. `op` is Add, Mul or Max. Rows run in parallel, each in order.
struct ScanForm {
  Op op;
  DType dtype;
  int64_t outer, length, inner;
  bool has_before;
};
WrittenKernel write_scan(const ScanForm& form, std::string_view name, const pgr_device_caps& caps);
std::string name_of(const ScanForm& form);

}  // namespace plugrad::codegen

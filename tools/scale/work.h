// The work of one kernel, and the time that a device needs for it.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "ir/kernel_ast.h"
#include "scale/machine.h"

namespace plugrad::tools::scale {

struct KernelWork {
  double flops = 0, bytes = 0;
  std::pair<double, double> traced = {};  ///< operations and bytes as a trace has them
  bool is_matrix = false;         ///< sums of products, the most of whose operations are theirs
  DType factor = DType::F32;      ///< dtype of the products' factors in memory
  uint64_t structure = 0;         ///< equal for kernels that differ in sizes alone
  std::vector<uint32_t> written;  ///< parameters of the kernel
};

KernelWork work_of(const KernelAst& ast);

/// Work of kernels by their hashes: many plans share kernels.
class WorkTable {
 public:
  const KernelWork& of(const KernelAst& ast);

 private:
  std::map<std::array<uint64_t, 2>, KernelWork> known_;
};

/// Measured over estimated time of the kernels that a trace ran on the machine's device.
struct Corrections {
  std::map<uint64_t, double> by_structure;
  double of_matrix = 1, of_others = 1;  ///< kernels of other structures

  double of(const KernelWork& work) const;
};

/// Operations and memory traffic overlap; the longer one counts. All devices of a node work at once
/// if `is_shared`.
double kernel_seconds(const Machine& machine, const KernelWork& work, bool is_shared);

}  // namespace plugrad::tools::scale

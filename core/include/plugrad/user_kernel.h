/// Kernels that the user writes: as source text in a device's language, as kernel IR, or as an AST
/// of UOps, which plugrad compiles for every device. They are planned, cached and reported like
/// other kernels. docs/custom-ops.md shows each form, and the source text for each device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plugrad/function.h"
#include "plugrad/uop.h"

namespace plugrad {

/// An array that a kernel writes, row-major.
struct KernelOutput {
  Shape shape;
  DType dtype = DType::F32;
};

/// Source text for the devices of one plugin.
struct KernelSource {
  std::string device;  ///< the device name before the colon, e.g. "CPU"
  std::string text;    ///< defines a kernel with the name UserKernel::name
};

/// At least one of `sources`, `ir` and `ast` is given; a device uses the first that is available
/// for it, in this order.
struct PLUGRAD_API UserKernel {
  std::string name;  ///< a C identifier
  std::vector<KernelSource> sources = {};
  std::vector<std::byte> ir = {};  ///< a block of docs/kernel-ir.md with the same name
  ir::UOp ast = {};                ///< a sink over stores: see UOp::param
  /// Workgroups along each axis, {n, 1, 1}; `sources` need them, an IR block and an AST have their
  /// own.
  std::array<uint64_t, 3> groups = {};
  std::array<uint32_t, 3> local = {1, 1, 1};  ///< work-items in a workgroup; 1 on a CPU
  /// The gradient, as in CustomFunction; without one, no gradient flows.
  CustomFunction::Backward backward = {};

  /// The outputs, computed from the inputs by one launch. The buffers are the outputs, then the
  /// inputs. Inputs are contiguous: computed ones and views are stored first. A kernel must write
  /// every element of its outputs, must depend only on its inputs, and must not write them: equal
  /// calls share one launch. Errors: User, "[name] …", for an ill-formed kernel, inputs on several
  /// devices, or shapes that do not fit the block or AST; at the launch, for a device without
  /// source, and CompileError with the compiler's log. Source and IR are trusted: an access outside
  /// their buffers is undefined.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs,
                                 const std::vector<KernelOutput>& outputs) const;
};

}  // namespace plugrad

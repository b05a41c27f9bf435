/// Kernels that the user wrote, as source text of a device's language, as kernel IR, or as an AST
/// of UOps that plugrad compiles for every device. They are planned, cached and reported as others.
/// docs/custom-ops.md shows each form and what source text looks like on each device.
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
  std::string device;  ///< "CPU": what devices are named in front of the colon
  std::string text;    ///< defines a kernel called as UserKernel::name
};

/// At least one of `sources`, `ir` and `ast`; a device takes the first of these that is for it.
struct PLUGRAD_API UserKernel {
  std::string name;  ///< a C identifier
  std::vector<KernelSource> sources = {};
  std::vector<std::byte> ir = {};  ///< a block as in docs/kernel-ir.md, of the same name
  ir::UOp ast = {};                ///< a sink over stores: see UOp::param
  std::array<uint64_t, 3> groups = {1, 1, 1};  ///< of sources; a block says its own
  std::array<uint32_t, 3> local = {1, 1, 1};   ///< work-items in a group; 1 on a CPU
  /// The gradient, as of a CustomFunction; without one, none flows.
  CustomFunction::Backward backward = {};

  /// The outputs, computed of the inputs by one launch. Buffers are in the order outputs, inputs;
  /// inputs are contiguous: computed ones and views are stored first. A kernel must write every
  /// element of its outputs, must depend on its inputs alone, and must not write those: equal calls
  /// are one. Errors: User, "[name] …", for what is not well formed, inputs on several devices or
  /// without a shape that fits the block or AST; when it runs, for a device without source, and
  /// CompileError with the compiler's log. Source and IR are trusted: what they do outside of their
  /// buffers is undefined.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs,
                                 const std::vector<KernelOutput>& outputs) const;
};

}  // namespace plugrad

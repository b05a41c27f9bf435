// A launch as a queue or a graph takes it: checked, with everything it needs.
#pragma once

#include <array>

#include "buffer.h"
#include "compiler.h"

struct pgr_kernel {
  cl_kernel handle = nullptr;
  plugrad::opencl::KernelShape shape;
  uint32_t buffer_count = 0, scalar_count = 0;
  std::array<size_t, 3> compiled_size{};  // of a group, by the source; 0: any
  size_t max_local_total = 0;
  uint64_t local_bytes = 0, private_bytes = 0;
  std::mutex arguments_mutex;  // set and launched as one: the driver keeps them in the kernel
};

namespace plugrad::opencl {

struct LaunchSize {
  std::array<size_t, 3> global{1, 1, 1}, local{1, 1, 1};
  cl_uint axes = 1;
  bool is_empty = false;  // no group
};

// Throws StatusError: INVALID_ARGUMENT where the arguments do not fit the kernel, LIMIT_EXCEEDED
// where they do not fit the device.
LaunchSize check_launch(const pgr_device& device, const pgr_kernel& kernel,
                        const pgr_launch_desc& desc);

// Nobody else sets this kernel's arguments meanwhile. A NULL buffer handle is one of size 0.
template <typename HandleOf>
void set_arguments(pgr_device& device, cl_kernel kernel, const KernelShape& shape,
                   const HandleOf& handle_of, const uint64_t* scalars) {
  cl_uint buffers = 0, scalar = 0;
  for (cl_uint i = 0; i < shape.param_bytes.size(); ++i) {
    const uint8_t bytes = shape.param_bytes[i];
    cl_int code = CL_SUCCESS;
    if (bytes > 0) {
      code = api().clSetKernelArg(kernel, i, bytes, scalars + scalar++);
    } else {
      const cl_mem memory = handle_of(buffers++);
      code = api().clSetKernelArg(kernel, i, sizeof memory, memory ? &memory : nullptr);
    }
    device.check(code, "clSetKernelArg");
  }
}

}  // namespace plugrad::opencl

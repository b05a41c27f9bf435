// A checked launch with all of its arguments, for queues and graphs.
#pragma once

#include <array>

#include "buffer.h"
#include "compiler.h"

struct pgr_kernel {
  cl_kernel handle = nullptr;
  plugrad::opencl::KernelShape shape;
  uint32_t buffer_count = 0, scalar_count = 0;
  std::array<size_t, 3> compiled_size{};  // work-group size fixed by the source; 0: any
  size_t max_local_total = 0;
  uint64_t local_bytes = 0, private_bytes = 0;
  // guards setting arguments and launching: the driver stores arguments in the kernel
  std::mutex arguments_mutex;
};

namespace plugrad::opencl {

struct LaunchSize {
  std::array<size_t, 3> global{1, 1, 1}, local{1, 1, 1};
  cl_uint axes = 1;
  bool is_empty = false;  // has no groups
};

// Throws StatusError: INVALID_ARGUMENT if the arguments do not fit the kernel, LIMIT_EXCEEDED if
// they exceed the device's limits.
LaunchSize check_launch(const pgr_device& device, const pgr_kernel& kernel,
                        const pgr_launch_desc& desc);

// The caller must hold the kernel's arguments_mutex. A NULL buffer handle is a buffer of size 0.
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

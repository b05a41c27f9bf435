// Loads the functions of the OpenCL loader at run time, and maps its error codes.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS  // clCreateCommandQueue, which every version has
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <string>

#include "plugrad/sdk/guard.h"

namespace plugrad::opencl {

// The functions of OpenCL 1.2 used here; a loader without one of them is rejected.
#define PLUGRAD_CL_FUNCTIONS(X)       \
  X(clGetPlatformIDs)                 \
  X(clGetPlatformInfo)                \
  X(clGetDeviceIDs)                   \
  X(clGetDeviceInfo)                  \
  X(clCreateContext)                  \
  X(clReleaseContext)                 \
  X(clCreateCommandQueue)             \
  X(clReleaseCommandQueue)            \
  X(clCreateBuffer)                   \
  X(clCreateSubBuffer)                \
  X(clReleaseMemObject)               \
  X(clRetainMemObject)                \
  X(clSetMemObjectDestructorCallback) \
  X(clEnqueueReadBuffer)              \
  X(clEnqueueWriteBuffer)             \
  X(clEnqueueCopyBuffer)              \
  X(clEnqueueFillBuffer)              \
  X(clEnqueueMapBuffer)               \
  X(clEnqueueUnmapMemObject)          \
  X(clCreateProgramWithSource)        \
  X(clCreateProgramWithBinary)        \
  X(clBuildProgram)                   \
  X(clGetProgramInfo)                 \
  X(clGetProgramBuildInfo)            \
  X(clReleaseProgram)                 \
  X(clRetainProgram)                  \
  X(clCreateKernel)                   \
  X(clReleaseKernel)                  \
  X(clSetKernelArg)                   \
  X(clGetKernelInfo)                  \
  X(clGetKernelArgInfo)               \
  X(clGetKernelWorkGroupInfo)         \
  X(clCreateKernelsInProgram)         \
  X(clEnqueueNDRangeKernel)           \
  X(clEnqueueMarkerWithWaitList)      \
  X(clEnqueueBarrierWithWaitList)     \
  X(clWaitForEvents)                  \
  X(clGetEventInfo)                   \
  X(clGetEventProfilingInfo)          \
  X(clSetEventCallback)               \
  X(clReleaseEvent)                   \
  X(clFlush)                          \
  X(clFinish)                         \
  X(clGetExtensionFunctionAddressForPlatform)

struct Api {
#define PLUGRAD_CL_MEMBER(name) decltype(&::name) name = nullptr;
  PLUGRAD_CL_FUNCTIONS(PLUGRAD_CL_MEMBER)
#undef PLUGRAD_CL_MEMBER
  std::string missing;  // reason that the loader is unusable; empty: none
};

// The functions of cl_khr_command_buffer, provided by the driver, not the loader.
struct CommandBufferApi {
  clCreateCommandBufferKHR_fn create = nullptr;
  clReleaseCommandBufferKHR_fn release = nullptr;
  clFinalizeCommandBufferKHR_fn finalize = nullptr;
  clEnqueueCommandBufferKHR_fn enqueue = nullptr;
  clCommandNDRangeKernelKHR_fn launch = nullptr;
  void* copy = nullptr;                // signature depends on the version
  bool copy_takes_properties = false;  // since 0.9.5
  bool is_simultaneous = false;        // supports a replay before the previous one has completed
};

// Opened on the first call; lives as long as the process.
const Api& api();

// "CL_OUT_OF_RESOURCES"
std::string code_name(cl_int code);

// The status for an OpenCL error code.
pgr_status status_of(cl_int code);

// True if the device is unusable after this code.
bool is_lost(cl_int code);

// Throws StatusError where the code is a failure: "what failed: CL_…".
inline void require_success(cl_int code, const std::string& what) {
  if (code != CL_SUCCESS)
    throw sdk::StatusError(status_of(code), what + ": " + code_name(code), code);
}

}  // namespace plugrad::opencl

#include "bench/peers/raw_launch.h"

#if __has_include(<CL/cl.h>)
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "plugrad/sdk/dynamic_library.h"

namespace plugrad::bench {
namespace {

// The functions used, typed by their declarations in cl.h.
struct OpenCl {
  decltype(clGetPlatformIDs)* platforms;
  decltype(clGetDeviceIDs)* devices;
  decltype(clCreateContext)* create_context;
  decltype(clCreateCommandQueue)* create_queue;
  decltype(clCreateProgramWithSource)* create_program;
  decltype(clBuildProgram)* build;
  decltype(clCreateKernel)* create_kernel;
  decltype(clEnqueueNDRangeKernel)* enqueue;
  decltype(clFinish)* finish;

  bool find() {
    const sdk::DynamicLibrary library({"libOpenCL.so.1"});
    return library.find("clGetPlatformIDs", platforms) && library.find("clGetDeviceIDs", devices) &&
           library.find("clCreateContext", create_context) &&
           library.find("clCreateCommandQueue", create_queue) &&
           library.find("clCreateProgramWithSource", create_program) &&
           library.find("clBuildProgram", build) && library.find("clCreateKernel", create_kernel) &&
           library.find("clEnqueueNDRangeKernel", enqueue) && library.find("clFinish", finish);
  }
};

}  // namespace

RawLaunch raw_opencl_launch() {
  OpenCl cl{};
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  if (!cl.find() || cl.platforms(1, &platform, nullptr) != CL_SUCCESS ||
      cl.devices(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr) != CL_SUCCESS)
    return {};
  cl_context context = cl.create_context(nullptr, 1, &device, nullptr, nullptr, nullptr);
  cl_command_queue queue = cl.create_queue(context, device, 0, nullptr);
  const char* source =
      "__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void empty(void) {}";
  cl_program program = cl.create_program(context, 1, &source, nullptr, nullptr);
  if (!queue || !program || cl.build(program, 1, &device, "", nullptr, nullptr) != CL_SUCCESS)
    return {};
  cl_kernel kernel = cl.create_kernel(program, "empty", nullptr);
  if (!kernel) return {};
  return {"OpenCL: clEnqueueNDRangeKernel, clFinish", [cl, queue, kernel] {
            const size_t one[] = {1, 1, 1};
            cl.enqueue(queue, kernel, 3, nullptr, one, one, 0, nullptr, nullptr);
            cl.finish(queue);
          }};
}

}  // namespace plugrad::bench
#else
plugrad::bench::RawLaunch plugrad::bench::raw_opencl_launch() {
  return {};
}
#endif

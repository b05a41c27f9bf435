// Declares the used part of the CUDA driver API, so that no toolkit is needed; libcuda is opened at
// run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "plugrad/plugin_api/status.h"

namespace plugrad::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = uint64_t;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUgraphExec = struct CUgraphExec_st*;
struct CUuuid {
  unsigned char bytes[16];
};

// Results with special handling; Driver::error_name covers the others.
enum : CUresult {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kDeinitialized = 4,
  kStubLibrary = 34,
  kDeviceUnavailable = 46,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kEccUncorrectable = 214,
  kInvalidPtx = 218,
  kNvlinkUncorrectable = 220,
  kJitCompilerNotFound = 221,
  kUnsupportedPtxVersion = 222,
  kJitCompilationDisabled = 223,
  kContained = 226,
  kOperatingSystem = 304,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kLaunchTimeout = 702,
  kContextIsDestroyed = 709,
  kAssert = 710,
  kHardwareStackError = 714,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kInvalidAddressSpace = 717,
  kInvalidPc = 718,
  kLaunchFailed = 719,
  kNotPermitted = 800,
  kNotSupported = 801,
  kSystemNotReady = 802,
  kSystemDriverMismatch = 803,
  kCompatNotSupported = 804,
  kUnknown = 999,
};

enum DeviceAttribute : int {
  kMaxThreadsPerBlock = 1,
  kMaxBlockDimX = 2,
  kMaxGridDimX = 5,
  kMaxSharedMemoryPerBlock = 8,
  kWarpSize = 10,
  kMaxRegistersPerBlock = 12,
  kMultiprocessorCount = 16,
  kL2CacheSize = 38,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedMemoryPerMultiprocessor = 81,
};
enum FunctionAttribute : int {
  kFunctionMaxThreads = 0,
  kFunctionSharedBytes = 1,
  kFunctionLocalBytes = 3,
  kFunctionRegisters = 4,
};
enum JitOption : int {
  kJitInfoLogBuffer = 3,
  kJitInfoLogBytes = 4,
  kJitErrorLogBuffer = 5,
  kJitErrorLogBytes = 6,
};
constexpr unsigned kStreamNonBlocking = 1, kMemHostAllocPortable = 1;
constexpr int kMemoryTypeDevice = 2;

struct KernelNodeParams {
  CUfunction function;
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void** params;
  void** extra;
};
struct Memcpy3D {
  size_t src_x, src_y, src_z, src_lod;
  int src_type;
  const void* src_host;
  CUdeviceptr src_device;
  void* src_array;
  void* src_context;
  size_t src_pitch, src_height;
  size_t dst_x, dst_y, dst_z, dst_lod;
  int dst_type;
  void* dst_host;
  CUdeviceptr dst_device;
  void* dst_array;
  void* dst_context;
  size_t dst_pitch, dst_height;
  size_t width, height, depth;
};

// X(member, symbol, arguments): the functions used from libcuda.
// clang-format off
#define PLUGRAD_CUDA_FUNCTIONS(X) \
  X(init, "cuInit", (unsigned)) \
  X(driver_version, "cuDriverGetVersion", (int*)) \
  X(error_name, "cuGetErrorName", (CUresult, const char**)) \
  X(device_count, "cuDeviceGetCount", (int*)) \
  X(device_get, "cuDeviceGet", (CUdevice*, int)) \
  X(device_name, "cuDeviceGetName", (char*, int, CUdevice)) \
  X(device_uuid, "cuDeviceGetUuid", (CUuuid*, CUdevice)) \
  X(device_attribute, "cuDeviceGetAttribute", (int*, int, CUdevice)) \
  X(device_memory, "cuDeviceTotalMem_v2", (size_t*, CUdevice)) \
  X(retain_context, "cuDevicePrimaryCtxRetain", (CUcontext*, CUdevice)) \
  X(release_context, "cuDevicePrimaryCtxRelease_v2", (CUdevice)) \
  X(push_context, "cuCtxPushCurrent_v2", (CUcontext)) \
  X(pop_context, "cuCtxPopCurrent_v2", (CUcontext*)) \
  X(synchronize, "cuCtxSynchronize", ()) \
  X(memory_info, "cuMemGetInfo_v2", (size_t*, size_t*)) \
  X(alloc, "cuMemAlloc_v2", (CUdeviceptr*, size_t)) \
  X(free, "cuMemFree_v2", (CUdeviceptr)) \
  X(alloc_host, "cuMemHostAlloc", (void**, size_t, unsigned)) \
  X(free_host, "cuMemFreeHost", (void*)) \
  X(copy_in, "cuMemcpyHtoDAsync_v2", (CUdeviceptr, const void*, size_t, CUstream)) \
  X(copy_out, "cuMemcpyDtoHAsync_v2", (void*, CUdeviceptr, size_t, CUstream)) \
  X(copy, "cuMemcpyDtoDAsync_v2", (CUdeviceptr, CUdeviceptr, size_t, CUstream)) \
  X(fill8, "cuMemsetD8Async", (CUdeviceptr, unsigned char, size_t, CUstream)) \
  X(fill32, "cuMemsetD32Async", (CUdeviceptr, unsigned, size_t, CUstream)) \
  X(fill_columns8, "cuMemsetD2D8Async", (CUdeviceptr, size_t, unsigned char, size_t, size_t, CUstream)) \
  X(module_load, "cuModuleLoadDataEx", (CUmodule*, const void*, unsigned, int*, void**)) \
  X(module_unload, "cuModuleUnload", (CUmodule)) \
  X(module_function, "cuModuleGetFunction", (CUfunction*, CUmodule, const char*)) \
  X(function_attribute, "cuFuncGetAttribute", (int*, int, CUfunction)) \
  X(launch, "cuLaunchKernel", (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**, void**)) \
  X(stream_create, "cuStreamCreate", (CUstream*, unsigned)) \
  X(stream_destroy, "cuStreamDestroy_v2", (CUstream)) \
  X(stream_synchronize, "cuStreamSynchronize", (CUstream)) \
  X(stream_wait, "cuStreamWaitEvent", (CUstream, CUevent, unsigned)) \
  X(event_create, "cuEventCreate", (CUevent*, unsigned)) \
  X(event_destroy, "cuEventDestroy_v2", (CUevent)) \
  X(event_record, "cuEventRecord", (CUevent, CUstream)) \
  X(event_query, "cuEventQuery", (CUevent)) \
  X(event_synchronize, "cuEventSynchronize", (CUevent)) \
  X(event_elapsed, "cuEventElapsedTime", (float*, CUevent, CUevent)) \
  X(graph_create, "cuGraphCreate", (CUgraph*, unsigned)) \
  X(graph_destroy, "cuGraphDestroy", (CUgraph)) \
  X(graph_add_kernel, "cuGraphAddKernelNode", (CUgraphNode*, CUgraph, const CUgraphNode*, size_t, const KernelNodeParams*)) \
  X(graph_add_copy, "cuGraphAddMemcpyNode", (CUgraphNode*, CUgraph, const CUgraphNode*, size_t, const Memcpy3D*, CUcontext)) \
  X(graph_add_empty, "cuGraphAddEmptyNode", (CUgraphNode*, CUgraph, const CUgraphNode*, size_t)) \
  X(graph_instantiate, "cuGraphInstantiateWithFlags", (CUgraphExec*, CUgraph, unsigned long long)) \
  X(graph_set_kernel, "cuGraphExecKernelNodeSetParams", (CUgraphExec, CUgraphNode, const KernelNodeParams*)) \
  X(graph_set_copy, "cuGraphExecMemcpyNodeSetParams", (CUgraphExec, CUgraphNode, const Memcpy3D*, CUcontext)) \
  X(graph_launch, "cuGraphLaunch", (CUgraphExec, CUstream)) \
  X(graph_exec_destroy, "cuGraphExecDestroy", (CUgraphExec))
// clang-format on

struct Driver {
#define PLUGRAD_MEMBER(member, symbol, arguments) CUresult(*member) arguments = nullptr;
  PLUGRAD_CUDA_FUNCTIONS(PLUGRAD_MEMBER)
#undef PLUGRAD_MEMBER
  int version = 0;  // 12040 is version 12.4

  // "CUDA_ERROR_ILLEGAL_ADDRESS"
  std::string name_of(CUresult result) const;
};

// Opens the library (empty: libcuda.so.1) and calls cuInit. Returns false if it is unusable;
// `reason` then has the cause and a remedy.
bool open_driver(const std::string& library, Driver& out, std::string& reason);

// The status for a result.
pgr_status status_of(CUresult result);
// True if the context can only be destroyed after this result.
bool is_sticky(CUresult result);

}  // namespace plugrad::cuda

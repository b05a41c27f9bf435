// Opens libcuda, loads its functions and maps its results to statuses.
#include "driver.h"

#include "plugrad/sdk/dynamic_library.h"

namespace plugrad::cuda {
namespace {

constexpr int kOldestDriver = 11040;  // 11.4: the graph functions used here

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// The first function that the library lacks; empty: none.
std::string find_functions(const sdk::DynamicLibrary& library, Driver& out) {
#define PLUGRAD_FIND(member, symbol, arguments) \
  if (!library.find(symbol, out.member)) return symbol;
  PLUGRAD_CUDA_FUNCTIONS(PLUGRAD_FIND)
#undef PLUGRAD_FIND
  return {};
}

const char* remedy(CUresult result) {
  switch (result) {
    case kNoDevice:
      return "no NVIDIA GPU is visible to this process: check nvidia-smi, CUDA_VISIBLE_DEVICES, "
             "and that a container was started with its GPUs";
    case kStubLibrary:
      return "this is the toolkit's stub of libcuda: put the driver's own before it in the "
             "library path";
    case kOperatingSystem:
      return "the driver was refused by the system: check that the nvidia and nvidia_uvm modules "
             "are loaded and that you may read and write /dev/nvidia*";
    case kNotPermitted:
      return "you may not use the GPU: check the permissions of /dev/nvidia*";
    case kSystemNotReady:
      return "the GPU is not ready yet: on machines with NVSwitch start the fabric manager";
    case kSystemDriverMismatch:
      return "libcuda and the kernel module are of different versions: reboot or reinstall the "
             "driver";
    case kCompatNotSupported:
      return "the forward-compatibility package does not support this GPU: remove it from the "
             "library path";
    default:
      return "check nvidia-smi";
  }
}

}  // namespace

std::string Driver::name_of(CUresult result) const {
  const char* name = nullptr;
  if (error_name && error_name(result, &name) == kSuccess && name) return name;
  return "CUDA error " + std::to_string(result);
}

bool open_driver(const std::string& path, Driver& out, std::string& reason) {
  // The last three are the locations in containers, WSL and NixOS, outside the loader's path.
  const sdk::DynamicLibrary library =
      path.empty() ? sdk::DynamicLibrary({"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1",
                                          "/usr/lib/wsl/lib/libcuda.so.1",
                                          "/run/opengl-driver/lib/libcuda.so.1"})
                   : sdk::DynamicLibrary({path.c_str()});
  if (!library) {
    reason = library.reason() + "; install NVIDIA's driver";
    return false;
  }
  const std::string missing = find_functions(library, out);
  if (out.driver_version) out.driver_version(&out.version);
  if (!missing.empty() || out.version < kOldestDriver) {
    reason = "the driver is too old: it is for CUDA " + version_text(out.version) +
             (missing.empty() ? "" : ", without " + missing) + "; install one for CUDA " +
             version_text(kOldestDriver) + " or newer";
    return false;
  }
  const CUresult result = out.init(0);
  if (result != kSuccess) reason = "cuInit: " + out.name_of(result) + "; " + remedy(result);
  return result == kSuccess;
}

pgr_status status_of(CUresult result) {
  if (is_sticky(result)) return PGR_STATUS_DEVICE_LOST;
  switch (result) {
    case kSuccess:
      return PGR_STATUS_OK;
    case kInvalidValue:
      return PGR_STATUS_INVALID_ARGUMENT;
    case kOutOfMemory:
      return PGR_STATUS_OUT_OF_MEMORY;
    case kNoDevice:
    case kInvalidDevice:
    case kNotFound:
      return PGR_STATUS_NOT_FOUND;
    case kInvalidImage:
    case kNoBinaryForGpu:
    case kInvalidPtx:
    case kUnsupportedPtxVersion:
    case kJitCompilerNotFound:
    case kJitCompilationDisabled:
      return PGR_STATUS_BAD_BINARY;
    case kOperatingSystem:
      return PGR_STATUS_IO_ERROR;
    case kNotReady:
      return PGR_STATUS_NOT_READY;
    case kLaunchOutOfResources:
      return PGR_STATUS_LIMIT_EXCEEDED;
    case kNotPermitted:
      return PGR_STATUS_PERMISSION_DENIED;
    case kNotSupported:
      return PGR_STATUS_UNSUPPORTED;
    default:
      return PGR_STATUS_INTERNAL;
  }
}

bool is_sticky(CUresult result) {
  switch (result) {
    case kNotInitialized:
    case kDeinitialized:
    case kDeviceUnavailable:
    case kEccUncorrectable:
    case kNvlinkUncorrectable:
    case kContained:
    case kIllegalAddress:
    case kLaunchTimeout:
    case kContextIsDestroyed:
    case kAssert:
    case kHardwareStackError:
    case kIllegalInstruction:
    case kMisalignedAddress:
    case kInvalidAddressSpace:
    case kInvalidPc:
    case kLaunchFailed:
    case kUnknown:
      return true;
    default:
      return false;
  }
}

}  // namespace plugrad::cuda

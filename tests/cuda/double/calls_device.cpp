// Device, context and memory functions of the driver, and the controls for tests.
#include <malloc.h>

#include <cstdlib>

#include "double/state.h"

using namespace plugrad::cuda_double;

namespace {

int arch() {
  const char* text = std::getenv("PLUGRAD_CUDA_DOUBLE_ARCH");
  return text ? std::atoi(text) : 90;
}

char kContext;  // the only primary context

char* pointer(CUdeviceptr at) {
  return reinterpret_cast<char*>(at);
}

void report_leaks(State& state) {
  std::map<std::string, int> live;
  for (const auto& [handle, of] : state.handles) ++live[of.kind];
  if (!state.memory.empty()) live["allocation"] = static_cast<int>(state.memory.size());
  if (!state.pinned.empty()) live["pinned allocation"] = static_cast<int>(state.pinned.size());
  for (const auto& [kind, count] : live)
    state.violate("the context ended with " + std::to_string(count) + " live " + kind);
}

}  // namespace

DOUBLE_EXPORT CUresult cuInit(unsigned) {
  State& state = State::get();
  ::mallopt(M_ARENA_MAX, 1);  // one arena per stream would look like a leak
  state.is_initialized = true;
  const CUresult entered = state.enter(__func__, false);
  state.is_initialized = entered == kSuccess;
  return entered;
}
DOUBLE_EXPORT CUresult cuDriverGetVersion(int* out) {
  const char* text = std::getenv("PLUGRAD_CUDA_DOUBLE_VERSION");
  *out = text ? std::atoi(text) : 12040;
  return kSuccess;
}
DOUBLE_EXPORT CUresult cuGetErrorName(CUresult result, const char** out) {
  static const std::map<CUresult, const char*> names = {
      {1, "CUDA_ERROR_INVALID_VALUE"},       {2, "CUDA_ERROR_OUT_OF_MEMORY"},
      {46, "CUDA_ERROR_DEVICE_UNAVAILABLE"}, {100, "CUDA_ERROR_NO_DEVICE"},
      {201, "CUDA_ERROR_INVALID_CONTEXT"},   {214, "CUDA_ERROR_ECC_UNCORRECTABLE"},
      {218, "CUDA_ERROR_INVALID_PTX"},       {304, "CUDA_ERROR_OPERATING_SYSTEM"},
      {400, "CUDA_ERROR_INVALID_HANDLE"},    {500, "CUDA_ERROR_NOT_FOUND"},
      {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},   {716, "CUDA_ERROR_MISALIGNED_ADDRESS"},
      {719, "CUDA_ERROR_LAUNCH_FAILED"}};
  const auto found = names.find(result);
  if (found == names.end()) return kInvalidValue;
  *out = found->second;
  return kSuccess;
}
DOUBLE_EXPORT CUresult cuDeviceGetCount(int* out) {
  DOUBLE_ENTER(false);
  *out = 1;
  return kSuccess;
}
DOUBLE_EXPORT CUresult cuDeviceGet(CUdevice* out, int index) {
  DOUBLE_ENTER(false);
  if (index != 0) return kInvalidDevice;
  *out = 7;  // a handle that differs from any index
  return kSuccess;
}
DOUBLE_EXPORT CUresult cuDeviceGetName(char* out, int size, CUdevice) {
  DOUBLE_ENTER(false);
  std::strncpy(out, "Double of a GPU", static_cast<size_t>(size));
  return kSuccess;
}
DOUBLE_EXPORT CUresult cuDeviceGetUuid(void* out, CUdevice) {
  DOUBLE_ENTER(false);
  for (int i = 0; i < 16; ++i) static_cast<unsigned char*>(out)[i] = static_cast<unsigned char>(i);
  return kSuccess;
}
DOUBLE_EXPORT CUresult cuDeviceGetAttribute(int* out, int which, CUdevice device) {
  DOUBLE_ENTER(false);
  if (device != 7) return kInvalidDevice;
  static const std::map<int, int> attributes = {
      {1, 1024},  {2, 1024}, {3, 1024},   {4, 64}, {5, 2147483647}, {6, 65535},  {7, 65535},
      {8, 49152}, {10, 32},  {12, 65536}, {16, 4}, {38, 4 << 20},   {81, 102400}};
  const auto found = attributes.find(which);
  *out = which == 75 ? arch() / 10 : which == 76 ? arch() % 10 : 0;
  if (found != attributes.end()) *out = found->second;
  return kSuccess;
}
DOUBLE_EXPORT CUresult cuDeviceTotalMem_v2(size_t* out, CUdevice) {
  DOUBLE_ENTER(false);
  *out = kMemoryBytes;
  return kSuccess;
}
DOUBLE_EXPORT CUresult cuDevicePrimaryCtxRetain(void** out, CUdevice device) {
  DOUBLE_ENTER(false);
  if (device != 7) return kInvalidDevice;
  State& state = State::get();
  const std::lock_guard lock(state.mutex);
  ++state.context_users;
  *out = &kContext;
  return kSuccess;
}
// The last release destroys the context and clears its failure.
DOUBLE_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
  State& state = State::get();
  {
    const std::lock_guard lock(state.mutex);
    if (--state.context_users > 0) return state.sticky;
  }
  state.wait_for_all();
  if (state.sticky == kSuccess) report_leaks(state);
  const std::lock_guard lock(state.mutex);
  state.sticky = kSuccess;
  for (const auto& [handle, of] : state.handles) of.end();
  state.handles.clear();
  for (const auto& [begin, size] : state.memory) std::free(const_cast<char*>(begin));
  for (const auto& [begin, size] : state.pinned) std::free(const_cast<char*>(begin));
  state.memory.clear();
  state.pinned.clear();
  state.used_bytes = 0;
  return kSuccess;
}
DOUBLE_EXPORT CUresult cuCtxPushCurrent_v2(void* context) {
  DOUBLE_ENTER(false);
  if (context != &kContext) {
    State::get().violate("cuCtxPushCurrent of a foreign context");
    return kInvalidContext;
  }
  context_stack().push_back(context);
  return kSuccess;
}
DOUBLE_EXPORT CUresult cuCtxPopCurrent_v2(void** out) {
  if (context_stack().empty()) {
    State::get().violate("cuCtxPopCurrent without a current context");
    return kInvalidContext;
  }
  *out = context_stack().back();
  context_stack().pop_back();
  return kSuccess;
}
DOUBLE_EXPORT CUresult cuCtxSynchronize() {
  DOUBLE_ENTER(true);
  State::get().wait_for_all();
  return State::get().sticky;
}

DOUBLE_EXPORT CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  DOUBLE_ENTER(true);
  State& state = State::get();
  const std::lock_guard lock(state.mutex);
  *total_bytes = kMemoryBytes;
  *free_bytes = kMemoryBytes - state.used_bytes;
  return kSuccess;
}
DOUBLE_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t size) {
  DOUBLE_ENTER(true);
  if (size == 0) return kInvalidValue;
  State& state = State::get();
  const std::lock_guard lock(state.mutex);
  if (size > kMemoryBytes - state.used_bytes) return kOutOfMemory;
  char* made = static_cast<char*>(std::aligned_alloc(256, (size + 255) / 256 * 256));
  if (!made) return kOutOfMemory;
  if (size <= 1 << 20) std::memset(made, 0xcd, size);
  state.memory[made] = size;
  state.used_bytes += size;
  *out = reinterpret_cast<CUdeviceptr>(made);
  return kSuccess;
}
DOUBLE_EXPORT CUresult cuMemFree_v2(CUdeviceptr at) {
  DOUBLE_ENTER(true);
  State& state = State::get();
  state.wait_for_all();  // same as the driver
  std::unique_lock lock(state.mutex);
  const auto found = state.memory.find(pointer(at));
  if (found == state.memory.end()) {
    lock.unlock();
    state.violate("cuMemFree of what is no allocation");
    return kInvalidValue;
  }
  state.used_bytes -= found->second;
  if (found->second <= 1 << 20) std::memset(pointer(at), 0xdd, found->second);
  state.memory.erase(found);
  std::free(pointer(at));
  return kSuccess;
}
DOUBLE_EXPORT CUresult cuMemHostAlloc(void** out, size_t size, unsigned) {
  DOUBLE_ENTER(true);
  State& state = State::get();
  const std::lock_guard lock(state.mutex);
  *out = std::aligned_alloc(4096, (size + 4095) / 4096 * 4096);
  state.pinned[static_cast<char*>(*out)] = size;
  return kSuccess;
}
DOUBLE_EXPORT CUresult cuMemFreeHost(void* at) {
  DOUBLE_ENTER(true);
  State& state = State::get();
  state.wait_for_all();
  std::unique_lock lock(state.mutex);
  if (state.pinned.erase(static_cast<char*>(at)) == 0) {
    lock.unlock();
    state.violate("cuMemFreeHost of what is not pinned");
    return kInvalidValue;
  }
  std::free(at);
  return kSuccess;
}

// Makes the nth next call of `function` (0: the next) return `result`.
DOUBLE_EXPORT void cuda_double_fail(const char* function, int nth, int result) {
  State& state = State::get();
  const std::lock_guard lock(state.mutex);
  state.injected[function] = {nth, result};
}
// The next work executed by a stream breaks the context.
DOUBLE_EXPORT void cuda_double_fail_work(int result) {
  State& state = State::get();
  const std::lock_guard lock(state.mutex);
  state.next_work_fails = result;
}
// The errors since the last call of this function; "" for none.
DOUBLE_EXPORT const char* cuda_double_violations() {
  State& state = State::get();
  static std::string given;
  const std::lock_guard lock(state.mutex);
  given.swap(state.violations);
  state.violations.clear();
  return given.c_str();
}
// Live handles of the kind: "stream", "event", "module", "graph", "graph exec".
DOUBLE_EXPORT int cuda_double_live(const char* kind) {
  State& state = State::get();
  const std::lock_guard lock(state.mutex);
  int count = 0;
  for (const auto& [handle, of] : state.handles) count += of.kind == kind;
  if (!std::strcmp(kind, "allocation")) count = static_cast<int>(state.memory.size());
  if (!std::strcmp(kind, "pinned")) count = static_cast<int>(state.pinned.size());
  return count;
}

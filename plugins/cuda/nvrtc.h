// NVIDIA's run-time compiler, opened if it is installed.
#pragma once

#include <string>
#include <vector>

namespace plugrad::cuda {

class Nvrtc {
 public:
  // nullptr if the library cannot be opened, with the cause in `reason`. The library stays open, so
  // that repeated calls are cheap.
  static const Nvrtc* open(const std::string& path, std::string& reason);

  std::string version() const;
  // The newest architecture that NVRTC supports and that runs on `compute_capability`; 0: none.
  int target_for(unsigned compute_capability) const;
  // Returns true and the code, or false; the log in both cases.
  bool compile(const std::string& source, const std::string& name,
               const std::vector<std::string>& options, bool is_ptx, std::string& code,
               std::string& log) const;

 private:
  using Program = struct nvrtcProgram_st*;
  // X(member, symbol, arguments)
#define PLUGRAD_NVRTC_FUNCTIONS(X)                                                     \
  X(version_, "nvrtcVersion", (int*, int*))                                            \
  X(arch_count_, "nvrtcGetNumSupportedArchs", (int*))                                  \
  X(archs_, "nvrtcGetSupportedArchs", (int*))                                          \
  X(create_, "nvrtcCreateProgram",                                                     \
    (Program*, const char*, const char*, int, const char* const*, const char* const*)) \
  X(destroy_, "nvrtcDestroyProgram", (Program*))                                       \
  X(compile_, "nvrtcCompileProgram", (Program, int, const char* const*))               \
  X(ptx_size_, "nvrtcGetPTXSize", (Program, size_t*))                                  \
  X(ptx_, "nvrtcGetPTX", (Program, char*))                                             \
  X(cubin_size_, "nvrtcGetCUBINSize", (Program, size_t*))                              \
  X(cubin_, "nvrtcGetCUBIN", (Program, char*))                                         \
  X(log_size_, "nvrtcGetProgramLogSize", (Program, size_t*))                           \
  X(log_, "nvrtcGetProgramLog", (Program, char*))
#define PLUGRAD_MEMBER(member, symbol, arguments) int(*member) arguments = nullptr;
  PLUGRAD_NVRTC_FUNCTIONS(PLUGRAD_MEMBER)
#undef PLUGRAD_MEMBER
};

}  // namespace plugrad::cuda

// The interface of the compiler for the runner.
#pragma once

#include "binary.h"
#include "plugin.h"

namespace plugrad::opencl {

// The renderer's prefix of kernel names.
inline constexpr std::string_view kKernelPrefix = "k_";

// Changes exactly when the driver may return another binary for the same source.
std::string identity_text(const DeviceFacts& facts);

// The binary's content. Throws StatusError (BAD_BINARY) if it is damaged or from another driver.
Binary require_binary(std::string_view bytes, const DeviceFacts& facts);

// Releases the driver's program.
struct ProgramOwner {
  cl_program handle = nullptr;
  ProgramOwner() = default;
  explicit ProgramOwner(cl_program program) : handle(program) {}
  ProgramOwner(const ProgramOwner&) = delete;
  ProgramOwner& operator=(const ProgramOwner&) = delete;
  ~ProgramOwner() {
    if (handle) api().clReleaseProgram(handle);
  }
};

// Throws StatusError with the driver's log as message.
void build(pgr_device& device, cl_program program, const std::string& options, std::string* log);

// A program for the source, built now or found in the cache; `out` owns a reference. Throws as
// build() does.
void take_program(pgr_device& device, const std::string& source, const std::string& options,
                  ProgramOwner& out, std::string& log);

}  // namespace plugrad::opencl

// Makes kernels: render, look in the disk cache, compile, load.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/device/device_state.h"

namespace plugrad::runtime {

struct Kernel::State {
  Device* device = nullptr;
  std::string name, source;
  std::vector<std::byte> binary;
  pgr_program* program = nullptr;
  pgr_kernel* handle = nullptr;
  bool from_disk = false;
  std::uint64_t compile_ns = 0;
};

/// Identity of the device's compiler; empty if it has none. Errors: Device.
std::string compiler_identity(DeviceState& device);

/// Renders kernel IR to source text; empty if the compiler takes kernel IR itself. Errors:
/// Unsupported; Device.
std::string render(DeviceState& device, std::span<const std::byte> kernel_ir);

/// Makes a kernel without looking for an existing one.
std::shared_ptr<Kernel> make_kernel(Device& device, std::span<const std::byte> kernel_ir,
                                    std::string_view name, const CompileOptions& options);

/// The same from source text, without rendering.
std::shared_ptr<Kernel> make_kernel_of_source(Device& device, std::string_view source,
                                              std::string_view name, const CompileOptions& options);

}  // namespace plugrad::runtime

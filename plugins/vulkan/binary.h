// A binary of this plugin: a header, the kernel's name, and a SPIR-V module.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad::vulkan {

// What the launch of a kernel needs to know, and the module does not say.
struct KernelNote {
  std::string name;
  uint32_t buffers = 0, scalars = 0;
  uint32_t local_size[3] = {1, 1, 1};
  uint64_t local_bytes = 0;
  uint32_t checks_loops = 0;  // 1: its last slot is where it tells of a loop that was cut short
};

// `target` is what the module depends on: device facts and the compiler.
std::string wrap_module(const KernelNote& note, const std::vector<uint32_t>& words,
                        std::string_view target);

enum class BinaryState { Good, Foreign, Damaged };
BinaryState unwrap_module(std::string_view binary, std::string_view target, KernelNote* note,
                          std::vector<uint32_t>* words);

}  // namespace plugrad::vulkan

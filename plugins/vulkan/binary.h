// A binary of this plugin: a header, the kernel's name, and a SPIR-V module.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad::vulkan {

// Facts that a launch needs and the module lacks.
struct KernelNote {
  std::string name;
  uint32_t buffers = 0, scalars = 0;
  uint32_t local_size[3] = {1, 1, 1};
  uint64_t local_bytes = 0;
  uint32_t checks_loops = 0;  // 1: the kernel reports aborted loops in its last slot
};

// `target` identifies the device facts and the compiler on which the module depends.
std::string wrap_module(const KernelNote& note, const std::vector<uint32_t>& words,
                        std::string_view target);

enum class BinaryState { Good, Foreign, Damaged };
BinaryState unwrap_module(std::string_view binary, std::string_view target, KernelNote* note,
                          std::vector<uint32_t>* words);

}  // namespace plugrad::vulkan

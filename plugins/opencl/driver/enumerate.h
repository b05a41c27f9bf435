// Enumerates the devices of the loader's platforms, and queries their attributes.
#pragma once

#include <string>
#include <vector>

#include "api.h"

namespace plugrad::opencl {

struct DeviceFacts {
  cl_platform_id platform = nullptr;
  cl_device_id id = nullptr;
  std::string stable_id, name, vendor, platform_name, platform_version, version, driver, extensions;
  bool has_own_local = false;  // dedicated local memory
  bool is_cpu = false;         // work-items run on the host's processor
  bool is_software = false;
  bool is_pocl = false;
  bool has_fp64 = false, has_fp16 = false, has_fma = false, has_int64_atomics = false;
  bool has_rounded_division = false, keeps_denormals = false, is_unified = false;
  bool has_compiler = false;
  uint32_t compute_units = 1, base_align_bytes = 128, max_params = 128;
  uint32_t lanes_i8 = 1, lanes_i16 = 1, lanes_i32 = 1, lanes_i64 = 1, lanes_f32 = 1, lanes_f64 = 1;
  uint32_t subgroup_size = 1;  // work-items in lockstep
  uint64_t memory_bytes = 0, max_buffer_bytes = 0, local_bytes = 0, cache_bytes = 0,
           cache_line_bytes = 0;
  uint64_t max_local_size[3] = {1, 1, 1}, max_local_total = 1;

  bool has_extension(std::string_view name) const;
};

// All devices, sorted by stable_id. If there are none, `why` has the missing part and a remedy.
std::vector<DeviceFacts> enumerate_devices(std::string& why);

}  // namespace plugrad::opencl

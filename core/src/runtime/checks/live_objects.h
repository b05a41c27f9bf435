// Tracks a device's live buffers, programs and kernels, each with the call that made it. One lock
// for all devices, so that a handle of another device can be distinguished from an invalid one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "plugrad/plugin_api/runner.h"
#include "runtime/device/kernel_facts.h"

namespace plugrad::runtime {

/// The call that created an object.
struct Origin {
  uint64_t number = 0;  // among objects of its kind, from 1
  std::vector<void*> frames;
};

struct LiveBuffer {
  Origin made;
  uint64_t size = 0;
  pgr_buffer* root = nullptr;  // the allocation that contains it, or itself
  uint64_t offset = 0;         // in the root
  uint32_t maps = 0;
  std::string last_kernel;
};

struct LiveProgram {
  Origin made;
  uint64_t binary_bytes = 0;
  std::string kernel_name;  // of the first kernel that was looked up
};

uint64_t dtype_bytes(uint32_t dtype);

struct LiveKernel {
  std::string name;
  pgr_program* program = nullptr;
  std::optional<KernelFacts> facts;
};

class LiveObjects {
 public:
  /// `frames`: number of callers stored in an Origin.
  LiveObjects(std::string device_name, int frames);
  ~LiveObjects();
  LiveObjects(const LiveObjects&) = delete;
  LiveObjects& operator=(const LiveObjects&) = delete;

  // All members below require a Lock.
  class Lock {
   public:
    Lock();
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
  };

  LiveBuffer* buffer(const pgr_buffer* handle);
  LiveProgram* program(const pgr_program* handle);
  LiveKernel* kernel(const pgr_kernel* handle);
  /// Why a handle is not live: "was freed already (…)", "is of CPU:1, not of CPU:0", "was never
  /// made".
  std::string why_not(const void* handle, const char* gone_word) const;

  LiveBuffer& add_buffer(pgr_buffer* handle, uint64_t size);
  LiveProgram& add_program(pgr_program* handle, uint64_t binary_bytes);
  LiveKernel& add_kernel(pgr_kernel* handle, pgr_program* program);
  void remove_buffer(pgr_buffer* handle);
  void remove_program(pgr_program* handle);

  static std::string describe(const LiveBuffer& buffer);
  static std::string describe(const LiveProgram& program);
  /// A line for each live object.
  std::vector<std::string> leaks() const;

 private:
  Origin origin();
  bool owns(const void* handle) const;
  void note_gone(const void* handle, std::string description);

  const std::string device_name_;
  const int frames_;
  uint64_t made_ = 0;
  std::map<const pgr_buffer*, LiveBuffer> buffers_;
  std::map<const pgr_program*, LiveProgram> programs_;
  std::map<const pgr_kernel*, LiveKernel> kernels_;
  std::unordered_map<const void*, std::string> gone_;
};

}  // namespace plugrad::runtime

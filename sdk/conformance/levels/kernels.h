// Kernels of the behaviour tests: only i32 and the mandatory ops.
#pragma once

#include <memory>
#include <vector>

#include "conformance/levels/expect.h"
#include "conformance/plugin/device.h"

namespace plugrad::conformance {

constexpr uint32_t I32 = PGR_DTYPE_I32;

// "spread": out[g] = in[g] * scalar + g over the groups of all axes, g counted along x, y, z.
std::vector<std::byte> spread_kernel(uint64_t x, uint64_t y = 1, uint64_t z = 1);
std::vector<int32_t> spread_result(std::span<const int32_t> in, int32_t scalar);

// "slow": value[0] = value[0] stepped `scalar` times by a generator that compilers cannot fold. The
// time is proportional to the scalar; the result proves that all steps were executed.
std::vector<std::byte> slow_kernel();
int32_t slow_result(int32_t value, uint64_t steps);

// A compiled slow kernel, and the number of steps for a given duration.
class SlowKernel {
 public:
  explicit SlowKernel(Device& device);
  const Kernel& kernel() const { return *kernel_; }
  uint64_t steps_for(double milliseconds) const;

 private:
  std::unique_ptr<Kernel> kernel_;
  double steps_per_ms_ = 1;
};

// A launch description that owns its arguments.
class Launch {
 public:
  Launch(const Kernel& kernel, std::vector<pgr_buffer*> buffers, std::vector<uint64_t> scalars,
         std::array<uint64_t, 3> groups = {1, 1, 1});
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  pgr_kernel* kernel;
  std::vector<pgr_buffer*> buffers;
  std::vector<uint64_t> scalars;
  pgr_launch_desc desc;

  // Launches without waiting.
  void start(const Tables& t, pgr_queue* queue = nullptr, uint64_t* time_ns = nullptr) const;
  pgr_status try_start(const Tables& t, pgr_error* error) const;
};

// Buffers of i32.
Buffer make_ints(Device& device, std::span<const int32_t> values);
std::vector<int32_t> read_ints(const Buffer& buffer);
std::vector<int32_t> random_ints(size_t count, uint64_t seed);
void expect_ints(std::string_view what, std::span<const int32_t> found,
                 std::span<const int32_t> wanted);

}  // namespace plugrad::conformance

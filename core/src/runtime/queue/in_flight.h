// Kernels launched on an asynchronous device and not waited for: possible causes of a late error.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace plugrad::runtime {

class LaunchesInFlight {
 public:
  /// `is_first`: the kernel was not launched before.
  void launched(std::string_view kernel, bool is_first);
  /// Number of launches so far, which a wait that begins now covers.
  std::uint64_t count() const;
  /// A wait for the first `count` launches succeeded.
  void waited(std::uint64_t count);
  /// E.g. "r_4_8, E_16 and 3 before them"; empty if there are none.
  std::string names() const;
  /// Number of these launches that are their kernel's first: many drivers compile then.
  std::uint64_t first_launches() const;

 private:
  static constexpr std::uint64_t kRemembered = 8;
  mutable std::mutex mutex_;
  std::array<std::string, kRemembered> last_;  // a ring, by launch number
  std::uint64_t launched_ = 0, waited_ = 0;
  std::uint64_t first_launches_ = 0;  // after the last wait that covered all of them
  std::uint64_t last_first_ = 0;      // number of launches up to the last first launch
};

}  // namespace plugrad::runtime

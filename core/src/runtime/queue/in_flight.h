// Kernels that were given to an asynchronous device and not waited for: what an error that comes
// late may be about.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace plugrad::runtime {

class LaunchesInFlight {
 public:
  /// `is_first`: the kernel was never launched before.
  void launched(std::string_view kernel, bool is_first);
  /// How many were launched so far: what a wait that begins now covers.
  std::uint64_t count() const;
  /// A wait for the first `count` launches ended well.
  void waited(std::uint64_t count);
  /// "r_4_8, E_16 and 3 before them"; empty where there is none.
  std::string names() const;
  /// How many of the launches not waited for are their kernel's first: many drivers compile then.
  std::uint64_t first_launches() const;

 private:
  static constexpr std::uint64_t kRemembered = 8;
  mutable std::mutex mutex_;
  std::array<std::string, kRemembered> last_;  // a ring, by number of launch
  std::uint64_t launched_ = 0, waited_ = 0;
  std::uint64_t first_launches_ = 0;  // behind the last wait that covered all of them
  std::uint64_t last_first_ = 0;      // number of launches up to the last of them
};

}  // namespace plugrad::runtime

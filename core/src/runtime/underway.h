// Kernels that were given to an asynchronous device and not waited for: what an error that comes
// late may be about.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace plugrad::runtime {

class Underway {
 public:
  void launched(std::string_view kernel);
  /// How many were launched so far: what a wait that begins now covers.
  std::uint64_t count() const;
  /// A wait for the first `count` launches ended well.
  void waited(std::uint64_t count);
  /// "r_4_8, E_16 and 3 before them"; empty where there is none.
  std::string names() const;

 private:
  static constexpr std::uint64_t kRemembered = 8;
  mutable std::mutex mutex_;
  std::array<std::string, kRemembered> last_;  // a ring, by number of launch
  std::uint64_t launched_ = 0, waited_ = 0;
};

}  // namespace plugrad::runtime

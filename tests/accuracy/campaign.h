// Measures the largest errors of functions on a device, in parts that a file remembers.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "accuracy/functions.h"

namespace plugrad::accuracy {

/// The largest error in ulp, and where it is.
struct Worst {
  double ulp = 0, x = 0, y = 0;

  void add(const Worst& other) {
    if (!(other.ulp <= ulp)) *this = other;
  }
};

/// How much of the numbers: every `stride`-th f32, `count` numbers of f64 (and pairs of pow).
struct Extent {
  uint64_t stride = 1, count = 10'000'000;
};

constexpr uint32_t kParts = 256;
/// One of the kParts parts of a function's numbers.
Worst measure(const Function& function, DType dtype, const Extent& extent, uint32_t part);

/// The parts measured so far: lines of function, dtype, extent, part, and the worst. A part is
/// appended when it is done, so several processes may share the file.
class State {
 public:
  explicit State(std::string path);

  bool has(const Function& function, DType dtype, const Extent& extent, uint32_t part) const;
  void add(const Function& function, DType dtype, const Extent& extent, uint32_t part,
           const Worst& worst);
  /// Of all parts, and how many there are.
  std::pair<Worst, uint32_t> total(const Function& function, DType dtype,
                                   const Extent& extent) const;

 private:
  std::string path_;
  std::map<std::string, std::map<uint32_t, Worst>> done_;
};

}  // namespace plugrad::accuracy

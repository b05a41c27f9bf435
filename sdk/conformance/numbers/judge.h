// Checks one result of a device: exact, correctly rounded, or within the table's ulp; denormals by
// the device's declared mode.
#pragma once

#include <span>
#include <string>

#include "conformance/numbers/accuracy.h"
#include "conformance/numbers/reference.h"

namespace plugrad::conformance {

struct Verdict {
  bool is_right = false;
  double ulp = 0;  // distance from the exact result; infinite if undefined
};

class Judge {
 public:
  // `caps` gives the tolerance of division and the denormal mode.
  Judge(const Operation& operation, const pgr_device_caps& caps);

  Verdict judge(std::span<const uint64_t> sources, uint64_t got) const;

  const Operation& operation() const { return operation_; }
  double tolerance() const { return tolerance_; }

  // "ADD f32 of 1.5, -0 gave 1.5, expected -1.5 (error 3 ulp, allowed 0)"
  std::string explain(std::span<const uint64_t> sources, uint64_t got) const;

 private:
  // Assumes that nothing was flushed.
  Verdict judge_kept(std::span<const uint64_t> sources, uint64_t got) const;
  Verdict judge_float(std::span<const uint64_t> sources, uint64_t expected, uint64_t got) const;
  Verdict judge_flushed(std::span<const uint64_t> sources, uint64_t got) const;
  bool may_flush(uint32_t dtype) const;
  bool is_exact_zero(std::span<const uint64_t> sources) const;
  bool is_flushed_result(std::span<const uint64_t> sources, uint64_t got) const;

  Operation operation_;
  uint32_t denormals_;
  double tolerance_;
};

// Error of `got` against the exact value in units of the last place of the format at that value.
double ulp_error(mpfr_srcptr exact, uint32_t dtype, uint64_t got);

}  // namespace plugrad::conformance

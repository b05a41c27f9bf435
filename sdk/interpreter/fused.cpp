// FMA, rounded once in every format.
#include <cmath>

#include "program.h"
#include "values.h"

namespace plugrad::sdk {
namespace {

// a*b + c for 16-bit formats: the product is exact in double and the sum is rounded to odd, so that
// rounding to 16 bits is correct (Boldo and Melquiond 2008).
double fma_to_odd(double a, double b, double c) {
  const double product = a * b;
  const double sum = product + c;
  if (!std::isfinite(sum)) return sum;
  // Knuth's two-sum: the exact error of the addition.
  const double part = sum - product;
  const double lost = (product - (sum - part)) + (c - part);
  const bool is_even = (std::bit_cast<uint64_t>(sum) & 1) == 0;
  if (lost == 0 || !is_even) return sum;
  return std::nextafter(sum, lost > 0 ? HUGE_VAL : -HUGE_VAL);
}

template <uint32_t D>
void run_fma(const Step& s, uint64_t* slots) {
  using N = NumberOf<D>;
  for (uint32_t i = 0; i < s.lanes; ++i) {
    const auto a = N::get(slots[s.src[0] + i * s.stride[0]]);
    const auto b = N::get(slots[s.src[1] + i * s.stride[1]]);
    const auto c = N::get(slots[s.src[2] + i * s.stride[2]]);
    if constexpr (D == PGR_DTYPE_F16 || D == PGR_DTYPE_BF16)
      slots[s.dst + i] = N::put(fma_to_odd(a, b, c));
    else
      slots[s.dst + i] = N::put(std::fma(a, b, c));
  }
}

}  // namespace

AluFn find_fma(uint32_t dtype) {
  switch (dtype) {
    case PGR_DTYPE_F16:
      return run_fma<PGR_DTYPE_F16>;
    case PGR_DTYPE_BF16:
      return run_fma<PGR_DTYPE_BF16>;
    case PGR_DTYPE_F32:
      return run_fma<PGR_DTYPE_F32>;
    case PGR_DTYPE_F64:
      return run_fma<PGR_DTYPE_F64>;
    default:
      return nullptr;
  }
}

}  // namespace plugrad::sdk

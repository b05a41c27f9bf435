#include "conformance/numbers/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "plugrad/sdk/op_info.h"

namespace plugrad::conformance {
namespace {

constexpr double kUndefinedUlp = std::numeric_limits<double>::infinity();

bool moves_bits(uint32_t op) {
  return op == PGR_OP_BITCAST;
}

// Ops that every flushing device flushes in the same way.
bool is_basic(uint32_t op) {
  return op == PGR_OP_ADD || op == PGR_OP_SUB || op == PGR_OP_MUL || op == PGR_OP_FMA;
}

Verdict exactly(bool is_equal) {
  return {is_equal, is_equal ? 0 : kUndefinedUlp};
}

}  // namespace

double ulp_error(mpfr_srcptr exact, uint32_t dtype, uint64_t got) {
  const Format& f = format_of(dtype);
  if (is_nan(dtype, got) || mpfr_nan_p(exact))
    return is_nan(dtype, got) && mpfr_nan_p(exact) ? 0 : kUndefinedUlp;
  Real value, error(256);
  set_value(value, dtype, got);
  if (mpfr_inf_p(exact)) return mpfr_equal_p(exact, value) ? 0 : kUndefinedUlp;
  // Infinity counts as the successor of the largest value.
  if (mpfr_inf_p(value))
    mpfr_set_si_2exp(value, mpfr_signbit(value) ? -1 : 1, f.highest_exponent(), MPFR_RNDN);
  mpfr_sub(error, value, exact, MPFR_RNDN);
  if (mpfr_zero_p(error)) return 0;
  const long exponent = mpfr_zero_p(exact) ? f.lowest_exponent() : mpfr_get_exp(exact);
  const long last =
      std::clamp<long>(exponent, f.lowest_exponent() + f.mantissa_bits, f.highest_exponent());
  mpfr_div_2si(error, error, last - f.precision(), MPFR_RNDN);
  mpfr_abs(error, error, MPFR_RNDN);
  return mpfr_get_d(error, MPFR_RNDN);
}

Judge::Judge(const Operation& operation, const pgr_device_caps& caps)
    : operation_(operation),
      denormals_(caps.denormals),
      tolerance_(tolerance_ulp(operation.op, operation.from, caps.division)) {}

Verdict Judge::judge(std::span<const uint64_t> sources, uint64_t got) const {
  const bool is_plain = denormals_ == PGR_DENORMALS_PRESERVE || moves_bits(operation_.op) ||
                        operation_.op == PGR_OP_WHERE;
  if (is_plain) return judge_kept(sources, got);
  const Verdict flushed = judge_flushed(sources, got);
  if (flushed.is_right) return flushed;
  if (denormals_ == PGR_DENORMALS_FLUSH && is_basic(operation_.op) &&
      std::ranges::any_of(sources, [&](uint64_t bits) {
        return may_flush(operation_.from) && is_denormal(operation_.from, bits);
      }))
    return flushed;
  return judge_kept(sources, got);
}

Verdict Judge::judge_kept(std::span<const uint64_t> sources, uint64_t got) const {
  const Expected expected = expected_result(operation_, sources);
  if (expected.is_unspecified) return {true, 0};
  if (moves_bits(operation_.op) || !is_float(operation_.to)) return exactly(got == expected.bits);
  return judge_float(sources, expected.bits, got);
}

Verdict Judge::judge_float(std::span<const uint64_t> sources, uint64_t expected,
                           uint64_t got) const {
  const uint32_t dtype = operation_.to;
  if (got == expected) {
    if (tolerance_ == 0 || is_infinite(dtype, got)) return {true, 0};
  } else if (is_nan(dtype, expected) || is_nan(dtype, got)) {
    const bool sign_counts = operation_.op == PGR_OP_NEG;
    return exactly(is_nan(dtype, expected) && is_nan(dtype, got) &&
                   (!sign_counts || is_negative(dtype, got) == is_negative(dtype, expected)));
  } else if (is_zero(dtype, got) && is_zero(dtype, expected)) {
    return exactly(operation_.op == PGR_OP_MAX);  // only MAX may return either zero
  }
  if (operation_.op == PGR_OP_WHERE || operation_.op == PGR_OP_MAX || operation_.op == PGR_OP_NEG ||
      operation_.op == PGR_OP_TRUNC)
    return exactly(got == expected);
  Real exact(192);
  set_real_result(exact, operation_, sources);
  const double error = ulp_error(exact, dtype, got);
  if (tolerance_ == 0) return {false, error};
  // A wrong sign that the tolerance does not explain: of a zero or of an exact result.
  const bool is_sign_wrong = is_negative(dtype, got) != (mpfr_signbit(exact) != 0);
  return {error <= tolerance_ && !(is_sign_wrong && is_zero(dtype, got)), error};
}

bool Judge::may_flush(uint32_t dtype) const {
  return dtype == PGR_DTYPE_F32 || dtype == PGR_DTYPE_BF16;
}

bool Judge::is_exact_zero(std::span<const uint64_t> sources) const {
  Real exact(192);
  set_real_result(exact, operation_, sources);
  return mpfr_zero_p(exact) != 0;
}

bool Judge::is_flushed_result(std::span<const uint64_t> sources, uint64_t got) const {
  if (!is_float(operation_.to) || !may_flush(operation_.to) || !is_zero(operation_.to, got))
    return false;
  const Expected expected = expected_result(operation_, sources);
  // A zero that is not a rounded result keeps its sign: trunc(-0.5), -2 * 0.
  if (is_zero(operation_.to, expected.bits)) return !is_exact_zero(sources);
  return is_denormal(operation_.to, expected.bits) ||
         expected.bits == format_of(operation_.to).smallest_normal() ||
         (tolerance_ > 0 && format_of(operation_.to).magnitude(expected.bits) <=
                                format_of(operation_.to).smallest_normal() + 4);
}

// Tries each denormal source unchanged, as a zero of its sign and as +0; likewise the result.
Verdict Judge::judge_flushed(std::span<const uint64_t> sources, uint64_t got) const {
  uint64_t flushed[3] = {};
  const bool has_sources = may_flush(operation_.from);
  uint32_t combinations = 1;
  for (size_t i = 0; i < sources.size(); ++i) combinations *= 3;
  for (uint32_t choice = 0; choice < combinations; ++choice) {
    bool is_possible = choice == 0 || has_sources;
    uint32_t rest = choice;
    for (size_t i = 0; i < sources.size(); ++i, rest /= 3) {
      const bool is_tiny = has_sources && is_denormal(operation_.from, sources[i]);
      const bool must = denormals_ == PGR_DENORMALS_FLUSH && is_basic(operation_.op) && is_tiny;
      is_possible &= rest % 3 == 0 ? !must : is_tiny;
      const uint64_t sign = has_sources ? sources[i] & format_of(operation_.from).sign_bit() : 0;
      flushed[i] = rest % 3 == 0 ? sources[i] : rest % 3 == 1 ? sign : 0;
    }
    if (!is_possible) continue;
    const std::span<const uint64_t> own(flushed, sources.size());
    if (is_flushed_result(own, got)) return {true, 0};
    const Verdict verdict = judge_kept(own, got);
    if (verdict.is_right) return verdict;
  }
  return {false, kUndefinedUlp};
}

std::string Judge::explain(std::span<const uint64_t> sources, uint64_t got) const {
  std::string inputs;
  for (uint32_t i = 0; i < sources.size(); ++i)
    inputs += (i ? ", " : "") + describe(operation_.source_dtype(i), sources[i]);
  const Verdict verdict = judge(sources, got);
  std::string text =
      fmt::format("{} {} of {} gave {}, expected {}", sdk::op_info(operation_.op)->name,
                  operation_.from == operation_.to || operation_.op < PGR_OP_CAST
                      ? std::string(sdk::dtype_name(operation_.from))
                      : fmt::format("{} to {}", sdk::dtype_name(operation_.from),
                                    sdk::dtype_name(operation_.to)),
                  inputs, describe(operation_.to, got),
                  describe(operation_.to, expected_result(operation_, sources).bits));
  if (is_float(operation_.to) && verdict.ulp < kUndefinedUlp)
    text += fmt::format(" (error {:.3g} ulp, allowed {})", verdict.ulp, tolerance_);
  return text;
}

}  // namespace plugrad::conformance

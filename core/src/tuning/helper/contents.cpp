#include "tuning/helper/contents.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "ir/round.h"
#include "plugrad/dtype.h"

namespace plugrad::tuning {
namespace {

uint64_t next_random(uint64_t& state) {  // splitmix64
  uint64_t z = (state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

static_assert(kContentQuantum == -3 && kLargestContent == 16 / 8.0);

// The bits of n / 8, for 1 <= |n| <= 16.
uint64_t eighths(DType dtype, int n) {
  const double value = n / 8.0;
  if (dtype == DType::F64) return std::bit_cast<uint64_t>(value);
  if (dtype == DType::F32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  return encode_small_float(value, dtype);
}

uint64_t element(const ParamSpec& spec, DType dtype, uint64_t random) {
  if (spec.below == 1) return 0;
  if (spec.below == ParamSpec::kAllPlaces) return 1 << 30;
  if (dtype == DType::Bool) return random & 1;
  if (is_float(dtype)) {
    const int n = static_cast<int>(random % 16) + 1;
    return eighths(dtype, random & 16 ? n : -n);
  }
  if (spec.below > 1) return random % spec.below;
  return is_unsigned(dtype) ? random % 16 : random % 16 - 8;
}

double real_at(DType dtype, const std::byte* at) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, size_of(dtype));
  if (dtype == DType::F64) return std::bit_cast<double>(bits);
  if (dtype == DType::F32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  return decode_small_float(static_cast<uint16_t>(bits), dtype);
}

// Describes the first difference.
std::string unequal(const ParamSpec& spec, uint64_t index, const std::byte* want,
                    const std::byte* have) {
  const auto dtype = static_cast<DType>(spec.dtype);
  if (is_float(dtype))
    return fmt::format("element {} is {:.9g}, should be {:.9g}", index, real_at(dtype, have),
                       real_at(dtype, want));
  uint64_t bits[2] = {};
  std::memcpy(&bits[0], have, size_of(dtype));
  std::memcpy(&bits[1], want, size_of(dtype));
  return fmt::format("element {} is {:#x}, should be {:#x}", index, bits[0], bits[1]);
}

double mean_magnitude(DType dtype, std::span<const std::byte> values) {
  double total = 0, count = 0;
  for (size_t at = 0; at < values.size(); at += size_of(dtype)) {
    const double value = std::abs(real_at(dtype, values.data() + at));
    if (!std::isfinite(value)) continue;
    total += value;
    ++count;
  }
  return count > 0 ? total / count : 0;
}

}  // namespace

std::vector<std::byte> contents_of(const ParamSpec& spec, uint32_t slot) {
  const auto dtype = static_cast<DType>(spec.dtype);
  const size_t size = size_of(dtype);
  std::vector<std::byte> out(spec.elem_count * size);
  uint64_t state = slot + 1;
  for (size_t at = 0; at < out.size(); at += size) {
    const uint64_t bits = element(spec, dtype, next_random(state) >> 8);
    std::memcpy(out.data() + at, &bits, size);
  }
  return out;
}

std::string difference(const ParamSpec& spec, const Comparison& compared) {
  const auto dtype = static_cast<DType>(spec.dtype);
  const size_t size = size_of(dtype);
  const double mean = is_float(dtype) ? mean_magnitude(dtype, compared.reference) : 0;
  for (size_t at = 0; at < compared.reference.size(); at += size) {
    const std::byte* want = compared.reference.data() + at;
    const std::byte* have = compared.candidate.data() + at;
    if (!compared.untouched.empty() && std::memcmp(want, compared.untouched.data() + at, size) == 0)
      continue;
    if (std::memcmp(want, have, size) == 0) continue;
    if (is_float(dtype)) {
      const double a = real_at(dtype, want), b = real_at(dtype, have);
      const double scale = std::max(mean, std::max(std::abs(a), std::abs(b)));
      if (std::isnan(a) && std::isnan(b)) continue;
      if (std::isfinite(a) && std::isfinite(b) && std::abs(a - b) <= compared.tolerance * scale)
        continue;
      if (a == b) continue;
    }
    return unequal(spec, at / size, want, have);
  }
  return {};
}

}  // namespace plugrad::tuning

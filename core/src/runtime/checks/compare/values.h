// Values of every dtype from their bits: as numbers, as text, and their distance in ulp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace plugrad::runtime {

bool is_float(uint32_t dtype);
/// The element at `index`, zero-extended.
uint64_t bits_at(std::span<const std::byte> bytes, uint32_t dtype, uint64_t index);
/// The number, rounded to double for 64-bit integers.
double number_of(uint32_t dtype, uint64_t bits);
bool is_nan(uint32_t dtype, uint64_t bits);
/// Whether the value is +0 or -0, or below the smallest normal number.
bool is_zero(uint32_t dtype, uint64_t bits);
bool is_denormal(uint32_t dtype, uint64_t bits);
/// Number of representable values between two values; the difference of integers. UINT64_MAX with
/// a NaN.
uint64_t ulps_between(uint32_t dtype, uint64_t a, uint64_t b);
/// Distance of `bits` to the next larger magnitude; 0 for integers.
double ulp_of(uint32_t dtype, uint64_t bits);
/// Distance of 1 to the next larger value.
double epsilon_of(uint32_t dtype);
/// The bits of the nearest value; floats only.
uint64_t bits_of(uint32_t dtype, double value);
/// Enough digits to tell the value from its neighbours.
std::string value_text(uint32_t dtype, uint64_t bits);

}  // namespace plugrad::runtime

// Elements of every dtype as doubles, written and read one by one.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "ir/round.h"
#include "plugrad/dtype.h"

namespace plugrad::distributed::test {

inline constexpr DType kDTypes[] = {DType::Bool,   DType::I8,  DType::U8,   DType::I16,
                                    DType::U16,    DType::I32, DType::U32,  DType::I64,
                                    DType::U64,    DType::F16, DType::BF16, DType::F8E4M3,
                                    DType::F8E5M2, DType::F32, DType::F64};

inline std::vector<std::byte> stored(DType dtype, const std::vector<double>& values) {
  const std::size_t size = size_of(dtype);
  std::vector<std::byte> out(values.size() * size);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::byte* at = out.data() + i * size;
    if (dtype == DType::F64) {
      std::memcpy(at, &values[i], size);
    } else if (dtype == DType::F32) {
      const auto value = static_cast<float>(values[i]);
      std::memcpy(at, &value, size);
    } else if (is_float(dtype)) {
      const std::uint16_t bits = encode_small_float(values[i], dtype);
      std::memcpy(at, &bits, size);
    } else {
      const auto value = static_cast<std::int64_t>(values[i]);
      std::memcpy(at, &value, size);  // little-endian: the low bytes
    }
  }
  return out;
}

inline std::vector<double> loaded(DType dtype, const std::vector<std::byte>& bytes) {
  const std::size_t size = size_of(dtype);
  std::vector<double> out(bytes.size() / size);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::byte* at = bytes.data() + i * size;
    if (dtype == DType::F64) {
      std::memcpy(&out[i], at, size);
    } else if (dtype == DType::F32) {
      float value;
      std::memcpy(&value, at, size);
      out[i] = value;
    } else if (is_float(dtype)) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, at, size);
      out[i] = decode_small_float(bits, dtype);
    } else {
      std::int64_t value = 0;
      std::memcpy(&value, at, size);
      out[i] = static_cast<double>(round_int(value, dtype));
    }
  }
  return out;
}

}  // namespace plugrad::distributed::test

#include "oracle/array.h"

#include <bit>
#include <cstring>

#include "base/check.h"
#include "ir/round.h"

namespace plugrad::oracle {
namespace {

uint64_t decode(uint64_t stored, DType dtype) {
  switch (dtype) {
    case DType::F64:
      return stored;
    case DType::F32: {
      const float value = std::bit_cast<float>(static_cast<uint32_t>(stored));
      return std::bit_cast<uint64_t>(static_cast<double>(value));
    }
    case DType::F16:
    case DType::BF16:
    case DType::F8E4M3:
    case DType::F8E5M2:
      return std::bit_cast<uint64_t>(decode_small_float(static_cast<uint16_t>(stored), dtype));
    default:
      return static_cast<uint64_t>(round_int(static_cast<int64_t>(stored), dtype));
  }
}

uint64_t encode(uint64_t bits, DType dtype) {
  const double value = std::bit_cast<double>(bits);
  switch (dtype) {
    case DType::F32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case DType::F16:
    case DType::BF16:
    case DType::F8E4M3:
    case DType::F8E5M2:
      return encode_small_float(value, dtype);
    default:
      return bits;
  }
}

}  // namespace

double Array::real(size_t i) const {
  if (is_float(dtype)) return std::bit_cast<double>(bits[i]);
  return dtype == DType::U64 ? static_cast<double>(bits[i]) : static_cast<double>(integer(i));
}

Array from_bytes(DType dtype, std::vector<int64_t> shape, std::span<const std::byte> bytes) {
  const size_t width = size_of(dtype);
  ensure(width != 0 && bytes.size() % width == 0, "{} bytes of {}", bytes.size(), name_of(dtype));
  Array array{dtype, std::move(shape), std::vector<uint64_t>(bytes.size() / width)};
  for (size_t i = 0; i < array.size(); ++i) {
    uint64_t stored = 0;
    std::memcpy(&stored, bytes.data() + i * width, width);
    array.bits[i] = decode(stored, dtype);
  }
  return array;
}

std::vector<std::byte> to_bytes(const Array& array) {
  const size_t width = size_of(array.dtype);
  std::vector<std::byte> bytes(array.size() * width);
  for (size_t i = 0; i < array.size(); ++i) {
    const uint64_t stored = encode(array.bits[i], array.dtype);
    std::memcpy(bytes.data() + i * width, &stored, width);
  }
  return bytes;
}

}  // namespace plugrad::oracle

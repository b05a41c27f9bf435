#include "dtypes/values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ir/graph.h"
#include "ir/round.h"
#include "oracle/alu.h"

namespace plugrad::dtypes {
namespace {

Bits float_edges(DType dtype) {
  std::vector<double> values = {
      0.0,    0.5,     1.0,       1.5,      2.0,        2.5,       3.0,
      7.0,    0.1,     255.0,     256.5,    65504.0,    65519.0,   65520.0,
      1e-45,  1e-40,   1e-310,    5e-324,   3.4e38,     1e39,      1.7e308,
      448.0,  464.0,   57344.0,   61440.0,  0x1p-14,    0x1p-25,   0x1p-126,
      0x1p31, 0x1p32,  0x1p63,    0x1.8p52, 16777217.0, 0x1p-1022, 0x1.fffffep127,
      100.7,  0x1.fp7, 0x1.ffp15, INFINITY, NAN,        12345.678, 0x1.000001p0};
  Bits out;
  for (const double v : values)
    for (const double sign : {1.0, -1.0})
      out.push_back(bits_of(round_float(sign * v, dtype), dtype));
  return out;
}

Bits int_edges(DType dtype) {
  Bits out;
  const int width = dtype == DType::Bool ? 1 : static_cast<int>(size_of(dtype)) * 8;
  const auto add = [&](uint64_t v) { out.push_back(bits_of(static_cast<int64_t>(v), dtype)); };
  for (uint64_t v : {0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 33, 40, 63, 64, 65, 100}) {
    add(v);
    add(0 - v);
  }
  for (int place = 7; place < width; place += place < 24 ? 4 : 1)
    for (int64_t nearby : {-1, 0, 1}) {
      add((uint64_t{1} << place) + static_cast<uint64_t>(nearby));
      if (place % 8 == 7) add(0 - ((uint64_t{1} << place) + static_cast<uint64_t>(nearby)));
    }
  // Midpoints between floats and their neighbours.
  for (uint64_t v :
       {0x1000001ull, 0x1000003ull, 0x80000080ull, 0x8000008000000000ull, 0x8000008000000001ull,
        0x123456789abcdef0ull, 0xfedcba9876543210ull, 0x20000000000001ull, 0xffffffff00000000ull})
    add(v);
  return out;
}

}  // namespace

Bits edges(DType dtype) {
  Bits out = is_float(dtype) ? float_edges(dtype) : int_edges(dtype);
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Bits every_value(DType dtype) {
  Bits out;
  const DType words = size_of(dtype) == 1 ? DType::U8 : DType::U16;
  for (uint64_t v = 0; v < uint64_t{1} << (8 * size_of(dtype)); ++v)
    out.push_back(dtype == DType::Bool ? v & 1 : oracle::bitcast_value(v, words, dtype));
  return out;
}

bool cast_is_defined(uint64_t bits, DType from, DType to) {
  if (!is_float(from) || is_float(to) || to == DType::Bool) return true;
  const double value = std::trunc(std::bit_cast<double>(bits));
  const int width = static_cast<int>(size_of(to)) * 8;
  const double low = is_unsigned(to) ? 0 : -std::ldexp(1.0, width - 1);
  const double end = std::ldexp(1.0, is_unsigned(to) ? width : width - 1);
  return value >= low && value < end;  // NaN: neither
}

}  // namespace plugrad::dtypes

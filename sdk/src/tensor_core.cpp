#include "plugrad/sdk/tensor_core.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "plugrad/sdk/float_bits.h"
#include "plugrad/sdk/guard.h"
#include "plugrad/sdk/op_info.h"

namespace plugrad::sdk {
namespace {

constexpr uint32_t kFractionBits = 23;  // of an f32

uint32_t axis_of(uint8_t bit) {
  return bit >> 4;
}
uint32_t weight_of(uint8_t bit) {
  return bit & 15;
}

uint32_t bits_of_lanes(const TileLayout& layout) {
  return static_cast<uint32_t>(std::countr_zero(layout.lanes));
}

struct Edge {
  uint32_t axis, size;
};

// Error of a tile with two edges; empty: none.
std::string tile_problem(const char* name, const TileLayout& layout, uint32_t threads, Edge rows,
                         Edge columns, bool may_repeat) {
  const std::string text = std::string("layout_") + name;
  if (!std::has_single_bit(layout.lanes))
    return std::string("elems_") + name + " is no power of two";
  const auto used = bits_of_lanes(layout) + static_cast<uint32_t>(std::countr_zero(threads));
  if (used > layout.bits.size()) return text + " is too short for its elements";
  uint32_t row_bits = 0, column_bits = 0;
  for (uint32_t i = 0; i < layout.bits.size(); ++i) {
    const uint8_t bit = layout.bits[i];
    const std::string where = text + "[" + std::to_string(i) + "]";
    if (bit == 0 && (may_repeat || i >= used)) continue;
    if (i >= used) return where + " is behind the last bit";
    if (axis_of(bit) != rows.axis && axis_of(bit) != columns.axis)
      return where + " = " + std::to_string(bit) + " is of no axis of that tile";
    uint32_t& bits = axis_of(bit) == rows.axis ? row_bits : column_bits;
    if (bits >> weight_of(bit) & 1) return where + " is a bit that another one is already";
    bits |= 1u << weight_of(bit);
  }
  if (row_bits != rows.size - 1 || column_bits != columns.size - 1)
    return text + " is not one of " + std::to_string(rows.size) + " x " +
           std::to_string(columns.size);
  return {};
}

}  // namespace

TileLayout layout_of_a(const pgr_tensor_core& core) {
  return {core.layout_a, core.elems_a};
}
TileLayout layout_of_b(const pgr_tensor_core& core) {
  return {core.layout_b, core.elems_b};
}
TileLayout layout_of_c(const pgr_tensor_core& core) {
  return {core.layout_c, core.elems_c};
}

MatrixPlace place_of(const TileLayout& layout, uint32_t item, uint32_t lane) {
  MatrixPlace place;
  const uint64_t number = uint64_t{item} << bits_of_lanes(layout) | lane;
  for (size_t i = 0; i < layout.bits.size(); ++i) {
    const uint32_t bit = static_cast<uint32_t>(number >> i & 1) << weight_of(layout.bits[i]);
    switch (axis_of(layout.bits[i])) {
      case PGR_LANE_AXIS_M:
        place.m |= bit;
        break;
      case PGR_LANE_AXIS_N:
        place.n |= bit;
        break;
      case PGR_LANE_AXIS_K:
        place.k |= bit;
        break;
      default:
        break;
    }
  }
  return place;
}

void set_layout(uint8_t (&layout)[24], std::string_view text) {
  constexpr std::string_view kAxes = " mnk";
  size_t count = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ' || text[i] == '|') continue;
    require(count < std::size(layout), PGR_STATUS_INVALID_ARGUMENT, "a layout of too many bits");
    const size_t axis = kAxes.find(text[i]);
    if (text[i] != '-') {
      require(axis != std::string_view::npos && i + 1 < text.size() && text[i + 1] >= '0' &&
                  text[i + 1] <= '9',
              PGR_STATUS_INVALID_ARGUMENT, "\"" + std::string(text) + "\" is no layout");
      layout[count] = PGR_LANE_BIT(axis, text[++i] - '0');
    }
    ++count;
  }
}

bool is_used(const pgr_tensor_core& core) {
  return core.kind == PGR_TENSOR_CORE_LANES && core.dtype_out == PGR_DTYPE_F32 &&
         (core.dtype_in == PGR_DTYPE_F16 || core.dtype_in == PGR_DTYPE_BF16 ||
          core.dtype_in == PGR_DTYPE_F32);
}

std::string problem_of(const pgr_tensor_core& core) {
  if (core.kind != PGR_TENSOR_CORE_LANES)
    return "kind " + std::to_string(core.kind) + " is unknown";
  for (uint32_t edge : {core.m, core.n, core.k, core.threads})
    if (!std::has_single_bit(edge)) return std::to_string(edge) + " is no power of two";
  const Edge m{PGR_LANE_AXIS_M, core.m}, n{PGR_LANE_AXIS_N, core.n}, k{PGR_LANE_AXIS_K, core.k};
  for (const std::string& problem :
       {tile_problem("a", layout_of_a(core), core.threads, m, k, true),
        tile_problem("b", layout_of_b(core), core.threads, k, n, true),
        tile_problem("c", layout_of_c(core), core.threads, m, n, false)})
    if (!problem.empty()) return problem;
  const DtypeInfo *in = dtype_info(core.dtype_in), *out = dtype_info(core.dtype_out);
  if (!in || !out || !is_used(core))
    return "kernels use products of f16, bf16 and f32 with sums of f32";
  if (core.fraction_bits_in != 0 &&
      (core.dtype_in != PGR_DTYPE_F32 || core.fraction_bits_in >= kFractionBits))
    return "fraction_bits_in is " + std::to_string(core.fraction_bits_in) + " of " +
           std::string(dtype_name(core.dtype_in));
  return {};
}

float rounded_input(float value, uint32_t fraction_bits) {
  constexpr uint32_t kInfinity = 0x7f800000;
  const uint32_t dropped = kFractionBits - fraction_bits;
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & kInfinity) == kInfinity) return value;
  bits += 1u << (dropped - 1);  // Rounding up carries into the exponent correctly.
  return std::bit_cast<float>(bits >> dropped << dropped);
}

double input_value(const pgr_tensor_core& core, uint64_t bits) {
  const double value = decode_float(core.dtype_in, bits);
  return core.fraction_bits_in ? rounded_input(static_cast<float>(value), core.fraction_bits_in)
                               : value;
}

std::vector<pgr_tensor_core> tensor_cores_of(const pgr_device_caps& caps) {
  std::vector<pgr_tensor_core> cores(caps.tensor_cores ? caps.tensor_core_count : 0);
  const auto* record = reinterpret_cast<const std::byte*>(caps.tensor_cores);
  for (pgr_tensor_core& core : cores) {
    uint32_t bytes = 0;
    std::memcpy(&bytes, record, sizeof bytes);
    std::memcpy(&core, record, std::min<size_t>(bytes, sizeof core));
    record += caps.tensor_core_stride;
  }
  return cores;
}

pgr_tensor_core make_warp_core(uint32_t dtype) {
  const bool is_single = dtype == PGR_DTYPE_F32;
  pgr_tensor_core core;
  PGR_INIT(core, TENSOR_CORE);
  core.dtype_in = dtype;
  core.dtype_out = PGR_DTYPE_F32;
  core.fraction_bits_in = is_single ? 10 : 0;
  core.m = 16;
  core.n = 8;
  core.k = is_single ? 8 : 16;
  core.threads = 32;
  core.elems_a = core.m * core.k / core.threads;
  core.elems_b = core.k * core.n / core.threads;
  core.elems_c = core.m * core.n / core.threads;
  set_layout(core.layout_a, is_single ? "m3 k2 | k0 k1 m0 m1 m2" : "k0 m3 k3 | k1 k2 m0 m1 m2");
  set_layout(core.layout_b, is_single ? "k2 | k0 k1 n0 n1 n2" : "k0 k3 | k1 k2 n0 n1 n2");
  set_layout(core.layout_c, "n0 m3 | n1 n2 m0 m1 m2");
  return core;
}

}  // namespace plugrad::sdk

#include "plugrad/sdk/tensor_core.h"

#include <bit>

#include "plugrad/sdk/op_info.h"

namespace plugrad::sdk {
namespace {

constexpr TensorCoreLayout kLayouts[] = {
    {kLayoutPairs, "k0 m3 k3 | k1 k2 m0 m1 m2", "k0 k3 | k1 k2 n0 n1 n2", "n0 m3 | n1 n2 m0 m1 m2",
     false},
    {kLayoutSingles, "m3 k2 | k0 k1 m0 m1 m2", "k2 | k0 k1 n0 n1 n2", "n0 m3 | n1 n2 m0 m1 m2",
     true},
};

// Elements of the fragment, work-items, and rows and columns that its bits count.
struct Extent {
  uint32_t lanes = 1, items = 1, m = 1, n = 1, k = 1;
};

Extent extent_of(std::string_view fragment) {
  Extent extent;
  bool is_lane = true;
  for (char c : fragment) {
    if (c == '|') is_lane = false;
    if (c != 'm' && c != 'n' && c != 'k') continue;
    (is_lane ? extent.lanes : extent.items) *= 2;
    (c == 'm' ? extent.m : c == 'n' ? extent.n : extent.k) *= 2;
  }
  return extent;
}

std::string size_text(const pgr_tensor_core& core) {
  return std::to_string(core.m) + " x " + std::to_string(core.n) + " x " + std::to_string(core.k);
}

}  // namespace

std::span<const TensorCoreLayout> tensor_core_layouts() {
  return kLayouts;
}

const TensorCoreLayout* find_layout(uint32_t number) {
  for (const TensorCoreLayout& layout : kLayouts)
    if (layout.number == number) return &layout;
  return nullptr;
}

MatrixPlace place_of(std::string_view fragment, uint32_t item, uint32_t lane) {
  MatrixPlace place;
  uint32_t bits = lane;
  for (size_t i = 0; i < fragment.size(); ++i) {
    const char axis = fragment[i];
    if (axis == '|') bits = item;
    if (axis != 'm' && axis != 'n' && axis != 'k') continue;
    const uint32_t bit = (bits & 1) << (fragment[i + 1] - '0');
    (axis == 'm' ? place.m : axis == 'n' ? place.n : place.k) |= bit;
    bits >>= 1;
  }
  return place;
}

std::string problem_of(const pgr_tensor_core& core) {
  const TensorCoreLayout* layout = find_layout(core.layout);
  if (!layout) return "layout " + std::to_string(core.layout) + " is not published";
  const Extent a = extent_of(layout->a), b = extent_of(layout->b), c = extent_of(layout->c);
  if (core.m != c.m || core.n != c.n || core.k != a.k)
    return "layout " + std::to_string(core.layout) + " is not one of " + size_text(core);
  if (core.threads != c.items)
    return "layout " + std::to_string(core.layout) + " is of " + std::to_string(c.items) +
           " work-items, not " + std::to_string(core.threads);
  if (core.elems_a != a.lanes || core.elems_b != b.lanes || core.elems_c != c.lanes)
    return "the elements of a work-item are not those of layout " + std::to_string(core.layout);
  const DtypeInfo *in = dtype_info(core.dtype_in), *out = dtype_info(core.dtype_out);
  if (!in || !out || !in->is_float || !out->is_float) return "its dtypes are no floats";
  if (layout->rounds_inputs != (core.dtype_in == PGR_DTYPE_F32))
    return "layout " + std::to_string(core.layout) + " is not one of " +
           std::string(dtype_name(core.dtype_in));
  return {};
}

float rounded_input(float value) {
  constexpr uint32_t kDropped = 13, kInfinity = 0x7f800000;
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & kInfinity) == kInfinity) return value;
  bits += 1u << (kDropped - 1);  // a carry into the exponent is what rounding up means
  return std::bit_cast<float>(bits >> kDropped << kDropped);
}

std::span<const pgr_tensor_core> tensor_cores_of(const pgr_device_caps& caps) {
  if (!caps.tensor_cores || caps.tensor_core_stride != sizeof(pgr_tensor_core)) return {};
  return {caps.tensor_cores, caps.tensor_core_count};
}

pgr_tensor_core make_warp_core(uint32_t dtype) {
  const bool is_single = dtype == PGR_DTYPE_F32;
  pgr_tensor_core core;
  PGR_INIT(core, TENSOR_CORE);
  core.layout = is_single ? kLayoutSingles : kLayoutPairs;
  core.dtype_in = dtype;
  core.dtype_out = PGR_DTYPE_F32;
  core.m = 16;
  core.n = 8;
  core.k = is_single ? 8 : 16;
  core.threads = 32;
  core.elems_a = core.m * core.k / core.threads;
  core.elems_b = core.k * core.n / core.threads;
  core.elems_c = core.m * core.n / core.threads;
  return core;
}

}  // namespace plugrad::sdk

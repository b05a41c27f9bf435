// Interpolation.
#include <fmt/format.h>

#include "ops/case.h"

namespace plugrad::ops {
namespace {

constexpr Checks kResized = {.forward = {1e-5, 1e-4}, .backward = Bound{1e-4, 1e-4}};

struct ImageSizes {
  int64_t from, to;
};
constexpr ImageSizes kSizes[] = {{29, 32}, {52, 29}, {29, 52}, {52, 29}, {12, 12},
                                 {10, 3},  {4, 8},   {3, 1},   {1, 4}};

// Axes after the first are longer by one in the input, shorter by one in the result.
template <int kAt, int kAxes, Interpolation kMode, bool kCorners>
Case resized(const char* mode, const char* torch_mode) {
  constexpr ImageSizes s = kSizes[kAt];
  Shape from = {2, 3};
  std::string to;
  for (int i = 0; i < kAxes; ++i) {
    from.push_back(s.from + i);
    to += fmt::format("{},", std::max<int64_t>(s.to - i, 1));
  }
  const std::string corners = kMode == Interpolation::Linear
                                  ? fmt::format(", align_corners={}", kCorners ? "True" : "False")
                                  : "";
  return {fmt::format("{}_{}d_{}_to_{}{}_{}", mode, kAxes, s.from, s.to, kCorners ? "_corners" : "",
                      kAt),
          fmt::format("F.interpolate(x, size=({}), mode=\"{}\"{})", to, torch_mode, corners),
          {Input{from}},
          [](const In& x) {
            constexpr ImageSizes sizes = kSizes[kAt];
            std::vector<int64_t> size;
            for (int i = 0; i < kAxes; ++i) size.push_back(std::max<int64_t>(sizes.to - i, 1));
            return interpolate(x[0], {.size = size, .mode = kMode, .align_corners = kCorners});
          },
          kResized};
}

template <int kAt>
void add_sizes(std::vector<Case>& rows) {
  using enum Interpolation;
  rows.push_back(resized<kAt, 1, Linear, false>("linear", "linear"));
  rows.push_back(resized<kAt, 1, Linear, true>("linear", "linear"));
  rows.push_back(resized<kAt, 2, Linear, false>("linear", "bilinear"));
  rows.push_back(resized<kAt, 2, Linear, true>("linear", "bilinear"));
  rows.push_back(resized<kAt, 1, Nearest, false>("nearest", "nearest"));
  rows.push_back(resized<kAt, 2, Nearest, false>("nearest", "nearest"));
  rows.push_back(resized<kAt, 1, NearestExact, false>("exact", "nearest-exact"));
  rows.push_back(resized<kAt, 2, NearestExact, false>("exact", "nearest-exact"));
}

std::vector<Case> all_sizes() {
  std::vector<Case> rows;
  add_sizes<0>(rows);
  add_sizes<1>(rows);
  add_sizes<2>(rows);
  add_sizes<4>(rows);
  add_sizes<5>(rows);
  add_sizes<6>(rows);
  add_sizes<7>(rows);
  add_sizes<8>(rows);
  using enum Interpolation;
  rows.push_back(resized<5, 3, Linear, false>("linear", "trilinear"));
  rows.push_back(resized<5, 3, Linear, true>("linear", "trilinear"));
  rows.push_back(resized<6, 3, Linear, false>("linear", "trilinear"));
  rows.push_back(resized<5, 3, Nearest, false>("nearest", "nearest"));
  rows.push_back(resized<6, 3, NearestExact, false>("exact", "nearest-exact"));
  return rows;
}
const Family kGrid("pool", all_sizes());

// clang-format off: rows
const Family kResizeRows("pool", {
    {"scaled", "F.interpolate(x, scale_factor=1.7, mode=\"bilinear\")", {{{2, 3, 7, 9}}}, [](const In& x) { return interpolate(x[0], {.scale = {1.7}, .mode = Interpolation::Linear}); }, kResized},
    {"scaled_axes", "F.interpolate(x, scale_factor=(2.0, 0.6), mode=\"bilinear\")", {{{2, 3, 7, 9}}}, [](const In& x) { return interpolate(x[0], {.scale = {2.0, 0.6}, .mode = Interpolation::Linear}); }, kResized},
    {"scaled_nearest", "F.interpolate(x, scale_factor=2)", {{{2, 3, 7, 9}}}, [](const In& x) { return interpolate(x[0], {.scale = {2}}); }, kResized},
    {"scaled_nearest_uneven", "F.interpolate(x, scale_factor=1.3)", {{{2, 3, 7, 9}}}, [](const In& x) { return interpolate(x[0], {.scale = {1.3}}); }, kResized},
    {"scaled_exact_uneven", "F.interpolate(x, scale_factor=0.7, mode=\"nearest-exact\")", {{{2, 3, 7, 9}}}, [](const In& x) { return interpolate(x[0], {.scale = {0.7}, .mode = Interpolation::NearestExact}); }, kResized},
    {"bytes_bilinear_up", "F.interpolate(x, size=(32, 31), mode=\"bilinear\")", {{{2, 3, 29, 30}, 0, 256, DType::U8}}, [](const In& x) { return interpolate(x[0], {.size = {32, 31}, .mode = Interpolation::Linear}); }, kForwardOnly},
    {"bytes_bilinear_down", "F.interpolate(x, size=(29, 28), mode=\"bilinear\")", {{{2, 8, 52, 53}, 0, 256, DType::U8}}, [](const In& x) { return interpolate(x[0], {.size = {29, 28}, .mode = Interpolation::Linear}); }, kForwardOnly},
    {"bytes_bilinear_corners", "F.interpolate(x, size=(52, 10), mode=\"bilinear\", align_corners=True)", {{{2, 3, 29, 30}, 0, 256, DType::U8}}, [](const In& x) { return interpolate(x[0], {.size = {52, 10}, .mode = Interpolation::Linear, .align_corners = true}); }, kForwardOnly},
    {"bytes_nearest", "F.interpolate(x, size=(13, 50))", {{{2, 3, 29, 30}, 0, 256, DType::U8}}, [](const In& x) { return interpolate(x[0], {.size = {13, 50}}); }, kForwardOnly},
    {"half_bilinear", "F.interpolate(x.float(), size=(13, 10), mode=\"bilinear\").half()", {{{2, 3, 7, 9}, -2, 2, DType::F16}}, [](const In& x) { return interpolate(x[0], {.size = {13, 10}, .mode = Interpolation::Linear}); }, {.forward = {1e-3, 1e-3}, .backward = Bound{1e-2, 4e-3}, .differences = false}},
});
// clang-format on

}  // namespace
}  // namespace plugrad::ops

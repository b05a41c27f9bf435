// Convolutions.
#include <fmt/format.h>

#include "ops/case.h"

namespace plugrad::ops {
namespace {

// Sums of products of numbers in [-2, 2): their rounding is relative to the largest partial sum.
constexpr Bound kSum = {1e-5, 1e-3};
constexpr Checks kConv = {.forward = kSum};

template <int kGroups>
void add_1d(std::vector<Case>& rows) {
  for (int64_t batch : {1, 8})
    for (int64_t channels : {1, 3})
      for (int64_t size : {1, 2, 5}) {
        if (channels % kGroups != 0) continue;
        rows.push_back({fmt::format("conv1d_n{}_c{}_k{}_groups{}", batch, channels, size, kGroups),
                        fmt::format("F.conv1d(x, y, groups={})", kGroups),
                        {{{batch, channels, 11}}, {{6, channels / kGroups, size}}},
                        [](const In& x) { return conv1d(x[0], x[1], {}, {.groups = kGroups}); },
                        kConv});
      }
}

template <int kGroups>
void add_2d(std::vector<Case>& rows) {
  for (int64_t channels : {1, 3})
    for (int64_t height : {2, 3})
      for (int64_t width : {1, 3, 5}) {
        if (channels % kGroups != 0) continue;
        rows.push_back({fmt::format("conv2d_c{}_{}x{}_groups{}", channels, height, width, kGroups),
                        fmt::format("F.conv2d(x, y, groups={})", kGroups),
                        {{{1, channels, 5, 7}}, {{6, channels / kGroups, height, width}}},
                        [](const In& x) { return conv2d(x[0], x[1], {}, {.groups = kGroups}); },
                        kConv});
      }
}

std::vector<Case> grids() {
  std::vector<Case> rows;
  add_1d<1>(rows);
  add_1d<3>(rows);
  add_2d<1>(rows);
  add_2d<3>(rows);
  return rows;
}
const Family kGrids("conv", grids());

// clang-format off: rows
const Family kConvRows("conv", {
    {"conv2d_3x3", "F.conv2d(x, y, z)", {{{1, 3, 5, 7}}, {{6, 3, 3, 3}}, {{6}}},
     [](const In& x) { return conv2d(x[0], x[1], x[2]); }, kConv},
    {"conv3d", "F.conv3d(x, y)", {{{1, 4, 9, 9, 9}}, {{4, 4, 3, 3, 3}}},
     [](const In& x) { return conv3d(x[0], x[1]); }, {.forward = {1e-4, 1e-3}, .backward = Bound{1e-3, 1e-3}}},
    {"conv3d_strided", "F.conv3d(x, y, z, stride=(2,1,3), padding=(1,0,2), dilation=(1,2,1), groups=2)", {{{1, 4, 6, 7, 8}}, {{4, 2, 3, 2, 4}}, {{4}}},
     [](const In& x) { return conv3d(x[0], x[1], x[2], {.stride = {2, 1, 3}, .padding = {1, 0, 2}, .dilation = {1, 2, 1}, .groups = 2}); }, kConv},
    {"conv1d_strided", "F.conv1d(x, y, z, stride=3, padding=2, dilation=2, groups=2)", {{{2, 4, 19}}, {{4, 2, 4}}, {{4}}},
     [](const In& x) { return conv1d(x[0], x[1], x[2], {.stride = 3, .padding = 2, .dilation = 2, .groups = 2}); }, kConv},
    {"padded", "F.conv2d(x, y, padding=(2,1))", {{{4, 3, 11, 28}}, {{4, 3, 3, 3}}},
     [](const In& x) { return conv2d(x[0], x[1], {}, {.padding = {2, 1}}); }, kConv},
    {"padded_both", "F.conv2d(x, y, padding=1)", {{{4, 3, 11, 28}}, {{4, 3, 3, 3}}},
     [](const In& x) { return conv2d(x[0], x[1], {}, {.padding = 1}); }, kConv},
    {"dilated", "F.conv2d(x, y, dilation=2)", {{{4, 3, 11, 28}}, {{4, 3, 3, 3}}},
     [](const In& x) { return conv2d(x[0], x[1], {}, {.dilation = 2}); }, kConv},
    {"dilated_axes", "F.conv2d(x, y, dilation=(2,1))", {{{4, 3, 11, 28}}, {{4, 3, 3, 3}}},
     [](const In& x) { return conv2d(x[0], x[1], {}, {.dilation = {2, 1}}); }, kConv},
    {"strided", "F.conv2d(x, y, stride=2)", {{{4, 3, 11, 28}}, {{4, 3, 3, 3}}},
     [](const In& x) { return conv2d(x[0], x[1], {}, {.stride = 2}); }, kConv},
    {"strided_axes", "F.conv2d(x, y, stride=(2,1))", {{{4, 3, 11, 28}}, {{4, 3, 3, 3}}},
     [](const In& x) { return conv2d(x[0], x[1], {}, {.stride = {2, 1}}); }, kConv},
    {"strided_5", "F.conv2d(x, y, stride=2, padding=2)", {{{2, 3, 14, 15}}, {{4, 3, 5, 5}}},
     [](const In& x) { return conv2d(x[0], x[1], {}, {.stride = 2, .padding = 2}); }, kConv},
    {"strided_1x1", "F.conv2d(x, y, stride=2)", {{{4, 3, 8, 9}}, {{4, 3, 1, 1}}},
     [](const In& x) { return conv2d(x[0], x[1], {}, {.stride = 2}); }, kConv},
    {"strided_gaps", "F.conv2d(x, y, stride=(5,4))", {{{1, 3, 14, 15}}, {{4, 3, 3, 2}}},
     [](const In& x) { return conv2d(x[0], x[1], {}, {.stride = {5, 4}}); }, kConv},
    {"strided_dilated", "F.conv2d(x, y, stride=2, dilation=3)", {{{2, 3, 14, 15}}, {{4, 3, 3, 3}}},
     [](const In& x) { return conv2d(x[0], x[1], {}, {.stride = 2, .dilation = 3}); }, kConv},
    {"patches", "F.conv2d(x, y, stride=4)", {{{2, 3, 16, 16}}, {{8, 3, 4, 4}}},
     [](const In& x) { return conv2d(x[0], x[1], {}, {.stride = 4}); }, kConv},
    {"grouped", "F.conv2d(x, y, groups=4)", {{{2, 8, 5, 5}}, {{8, 2, 3, 3}}},
     [](const In& x) { return conv2d(x[0], x[1], {}, {.groups = 4}); }, kConv},
    {"grouped_more_out", "F.conv2d(x, y, groups=2)", {{{2, 4, 5, 5}}, {{14, 2, 2, 2}}},
     [](const In& x) { return conv2d(x[0], x[1], {}, {.groups = 2}); }, kConv},
    {"depthwise", "F.conv2d(x, y, groups=32)", {{{1, 32, 32, 32}}, {{32, 1, 1, 1}}},
     [](const In& x) { return conv2d(x[0], x[1], {}, {.groups = 32}); }, kConv},
    {"depthwise_3x3", "F.conv2d(x, y, groups=8, padding=1)", {{{2, 8, 9, 9}}, {{8, 1, 3, 3}}},
     [](const In& x) { return conv2d(x[0], x[1], {}, {.padding = 1, .groups = 8}); }, kConv},
    {"grouped_batched", "F.conv2d(x, y, groups=5)", {{{3, 10, 6, 5}}, {{15, 2, 2, 2}}},
     [](const In& x) { return conv2d(x[0], x[1], {}, {.groups = 5}); }, kConv},
    {"nhwc", "F.conv2d(x.permute(0,3,1,2), y.permute(3,2,0,1))", {{{2, 9, 9, 5}}, {{3, 3, 5, 4}}},
     [](const In& x) { return conv2d(x[0].permute({0, 3, 1, 2}), x[1].permute({3, 2, 0, 1})); }, kConv},
    {"pointwise", "F.conv2d(x, y)", {{{8, 4, 9, 9}}, {{4, 4, 1, 1}}}, [](const In& x) { return conv2d(x[0], x[1]); }, kConv},
    {"pointwise_4", "F.conv2d(x, y)", {{{8, 16, 32, 32}}, {{4, 16, 1, 1}}}, [](const In& x) { return conv2d(x[0], x[1]); }, kConv},
    {"nested", "F.conv2d(F.conv2d(x, y).relu(), z)", {{{4, 3, 9, 9}}, {{4, 3, 3, 3}}, {{3, 4, 3, 3}}},
     [](const In& x) { return conv2d(conv2d(x[0], x[1]).relu(), x[2]); }, {.forward = {1e-4, 1e-3}, .backward = Bound{1e-3, 1e-3}, .differences = false}},
    {"padding_ends", "F.conv2d(F.pad(x, (2, 1, 0, 3)), y)", {{{2, 3, 5, 6}}, {{4, 3, 3, 3}}},
     [](const In& x) { return conv2d(x[0], x[1], {}, {.padding = {2, 1, 0, 3}}); }, kConv},
    {"padding_pairs", "F.conv2d(F.pad(x, (2, 1, 0, 3)), y)", {{{2, 3, 5, 6}}, {{4, 3, 3, 3}}},
     [](const In& x) { return conv2d(x[0], x[1], {}, {.padding = {{0, 3}, {2, 1}}}); }, kConv},
    {"padding_negative", "F.conv2d(F.pad(x, (-1, -1, -1, -1)), y)", {{{1, 3, 10, 9}}, {{4, 3, 3, 3}}},
     [](const In& x) { return conv2d(x[0], x[1], {}, {.padding = -1}); }, kConv},
    {"padding_mixed", "F.conv2d(F.pad(x, (1, -2, -1, 2)), y)", {{{1, 3, 10, 9}}, {{4, 3, 3, 3}}},
     [](const In& x) { return conv2d(x[0], x[1], {}, {.padding = {1, -2, -1, 2}}); }, kConv},
    {"padding_1d_ends", "F.conv1d(F.pad(x, (3, 1)), y)", {{{1, 3, 10}}, {{4, 3, 3}}},
     [](const In& x) { return conv1d(x[0], x[1], {}, {.padding = {3, 1}}); }, kConv},
    {"padding_same", "F.conv2d(x, y, padding='same')", {{{2, 3, 7, 8}}, {{4, 3, 3, 5}}},
     [](const In& x) { return conv2d(x[0], x[1], {}, {.padding = "same"}); }, kConv},
    {"padding_same_even", "F.conv2d(x, y, padding='same', dilation=(1, 3))", {{{2, 3, 7, 8}}, {{4, 3, 2, 4}}},
     [](const In& x) { return conv2d(x[0], x[1], {}, {.padding = "same", .dilation = {1, 3}}); }, kConv},
    {"large_image", "F.conv2d(x, y)", {{{4, 16, 64, 64}}, {{6, 16, 5, 2}}},
     [](const In& x) { return conv2d(x[0], x[1]); }, {.forward = {1e-4, 1e-3}, .backward = Bound{2e-3, 1e-3}}},
    {"large_channels", "F.conv2d(x, y)", {{{1, 256, 64, 64}}, {{512, 256, 3, 3}}},
     [](const In& x) { return conv2d(x[0], x[1]); }, {.forward = {1e-3, 1e-3}, .backward = std::nullopt}},
    {"large_batch", "F.conv2d(x, y)", {{{4096, 3, 3, 3}}, {{1, 3, 3, 3}}},
     [](const In& x) { return conv2d(x[0], x[1]); }, {.forward = {1e-3, 1e-3}, .backward = Bound{2e-3, 1e-3}}},
    {"empty_batch", "F.conv2d(x, y, padding=1)", {{{0, 3, 5, 6}}, {{4, 3, 3, 3}}},
     [](const In& x) { return conv2d(x[0], x[1], {}, {.padding = 1}); }, kConv},
    {"half", "F.conv2d(x, y)", {{{2, 3, 9, 9}, -2, 2, DType::F16}, {{4, 3, 3, 3}, -2, 2, DType::F16}},
     [](const In& x) { return conv2d(x[0], x[1]); }, {.forward = {2e-3, 2e-3}, .backward = Bound{5e-2, 4e-3}, .differences = false}},
    {"bf16", "F.conv2d(x, y)", {{{2, 3, 9, 9}, -2, 2, DType::BF16}, {{4, 3, 3, 3}, -2, 2, DType::BF16}},
     [](const In& x) { return conv2d(x[0], x[1]); }, {.forward = {2e-2, 2e-2}, .backward = Bound{0.5, 4e-2}, .differences = false}},
    {"half_in_f32", "F.conv2d(x.float(), y.float())", {{{2, 3, 9, 9}, -2, 2, DType::F16}, {{4, 3, 3, 3}, -2, 2, DType::F16}},
     [](const In& x) { return conv2d(x[0], x[1], {}, {.dtype = DType::F32}); }, {.forward = kSum, .backward = Bound{5e-2, 4e-3}, .differences = false}},
    {"f64", "F.conv2d(x, y, stride=2)", {{{2, 3, 9, 9}, -2, 2, DType::F64}, {{4, 3, 3, 3}, -2, 2, DType::F64}},
     [](const In& x) { return conv2d(x[0], x[1], {}, {.stride = 2}); }, {.forward = {1e-13, 1e-12}, .backward = Bound{1e-12, 1e-11}}},
    {"integers", "F.conv2d(x, y)", {{{2, 3, 5, 5}, -9, 9, DType::I32}, {{4, 3, 3, 3}, -9, 9, DType::I32}},
     [](const In& x) { return conv2d(x[0], x[1]); }, kForwardOnly},
});

const Family kTransposed("conv", {
    {"transposed1d", "F.conv_transpose1d(x, y, z)", {{{2, 4, 9}}, {{4, 4, 3}}, {{4}}},
     [](const In& x) { return conv_transpose1d(x[0], x[1], x[2]); }, kConv},
    {"transposed1d_strided", "F.conv_transpose1d(x, y, stride=3, padding=1, output_padding=2, groups=2)", {{{2, 4, 9}}, {{4, 3, 3}}},
     [](const In& x) { return conv_transpose1d(x[0], x[1], {}, {.stride = 3, .padding = 1, .output_padding = 2, .groups = 2}); }, kConv},
    {"transposed2d", "F.conv_transpose2d(x, y, z)", {{{2, 4, 9, 9}}, {{4, 4, 3, 3}}, {{4}}},
     [](const In& x) { return conv_transpose2d(x[0], x[1], x[2]); }, kConv},
    {"transposed2d_groups", "F.conv_transpose2d(x, y, groups=2)", {{{2, 4, 9, 9}}, {{4, 4, 3, 3}}},
     [](const In& x) { return conv_transpose2d(x[0], x[1], {}, {.groups = 2}); }, kConv},
    {"transposed2d_padded", "F.conv_transpose2d(x, y, padding=(2, 1))", {{{2, 4, 9, 9}}, {{4, 4, 3, 3}}},
     [](const In& x) { return conv_transpose2d(x[0], x[1], {}, {.padding = {2, 1}}); }, kConv},
    {"transposed2d_dilated", "F.conv_transpose2d(x, y, dilation=(2, 1))", {{{2, 4, 9, 9}}, {{4, 4, 3, 3}}},
     [](const In& x) { return conv_transpose2d(x[0], x[1], {}, {.dilation = {2, 1}}); }, kConv},
    {"transposed2d_strided", "F.conv_transpose2d(x, y, stride=2)", {{{2, 4, 4, 5}}, {{4, 4, 3, 3}}},
     [](const In& x) { return conv_transpose2d(x[0], x[1], {}, {.stride = 2}); }, kConv},
    {"transposed2d_strided_axes", "F.conv_transpose2d(x, y, stride=(2, 1))", {{{2, 4, 4, 5}}, {{4, 4, 3, 3}}},
     [](const In& x) { return conv_transpose2d(x[0], x[1], {}, {.stride = {2, 1}}); }, kConv},
    {"transposed2d_whole_strides", "F.conv_transpose2d(x, y, stride=(2, 3))", {{{2, 4, 4, 5}}, {{4, 4, 4, 3}}},
     [](const In& x) { return conv_transpose2d(x[0], x[1], {}, {.stride = {2, 3}}); }, kConv},
    {"transposed2d_gaps", "F.conv_transpose2d(x, y, stride=(4, 3), output_padding=(2, 1))", {{{2, 4, 4, 5}}, {{4, 4, 3, 2}}},
     [](const In& x) { return conv_transpose2d(x[0], x[1], {}, {.stride = {4, 3}, .output_padding = {2, 1}}); }, kConv},
    {"transposed2d_output_padding", "F.conv_transpose2d(x, y, stride=3, padding=2, output_padding=(2, 1), dilation=2)", {{{2, 4, 4, 5}}, {{4, 4, 3, 3}}},
     [](const In& x) { return conv_transpose2d(x[0], x[1], {}, {.stride = 3, .padding = 2, .output_padding = {2, 1}, .dilation = 2}); }, kConv},
    {"transposed2d_dilated_strided", "F.conv_transpose2d(x, y, stride=(2, 1), dilation=(3, 2), padding=1, groups=2)", {{{2, 4, 4, 5}}, {{4, 3, 2, 3}}},
     [](const In& x) { return conv_transpose2d(x[0], x[1], {}, {.stride = {2, 1}, .padding = 1, .dilation = {3, 2}, .groups = 2}); }, kConv},
    {"transposed3d", "F.conv_transpose3d(x, y)", {{{2, 4, 5, 4, 3}}, {{4, 4, 3, 2, 3}}},
     [](const In& x) { return conv_transpose3d(x[0], x[1]); }, kConv},
    {"transposed3d_strided", "F.conv_transpose3d(x, y, stride=(2, 1, 2), padding=(1, 0, 1), output_padding=(1, 0, 0), groups=2)", {{{2, 4, 5, 4, 3}}, {{4, 2, 3, 2, 2}}},
     [](const In& x) { return conv_transpose3d(x[0], x[1], {}, {.stride = {2, 1, 2}, .padding = {1, 0, 1}, .output_padding = {1, 0, 0}, .groups = 2}); }, kConv},
    {"transposed2d_of_infinity", "F.conv_transpose2d(x, y, stride=2)", {{{1, 1, 2, 2}, {kInf, 1, 2, 3}}, {{1, 1, 3, 3}, 1, 2}},
     [](const In& x) { return conv_transpose2d(x[0], x[1], {}, {.stride = 2}); }, {.forward = kSum, .backward = std::nullopt}},
    {"transposed2d_half", "F.conv_transpose2d(x, y, stride=2)", {{{2, 4, 4, 5}, -2, 2, DType::F16}, {{4, 4, 2, 2}, -2, 2, DType::F16}},
     [](const In& x) { return conv_transpose2d(x[0], x[1], {}, {.stride = 2}); }, {.forward = {2e-3, 2e-3}, .backward = Bound{5e-2, 4e-3}, .differences = false}},
});
// clang-format on

}  // namespace
}  // namespace plugrad::ops

// Pooling, unpooling and interpolation.
#include "ops/case.h"

namespace plugrad::ops {
namespace {

constexpr Checks kAverage = {.forward = {1e-6, 1e-5}};

// clang-format off: rows
const Family kMax("pool", {
    {"max_pool2d", "F.max_pool2d(x, 2)", {{{3, 2, 11, 8}}}, [](const In& x) { return x[0].max_pool2d(2); }},
    {"max_2x2", "F.max_pool2d(x, (2, 2))", {{{32, 2, 11, 28}}}, [](const In& x) { return max_pool2d(x[0], {2, 2}); }},
    {"max_3x3", "F.max_pool2d(x, (3, 3))", {{{32, 2, 11, 28}}}, [](const In& x) { return max_pool2d(x[0], {3, 3}); }},
    {"max_3x2", "F.max_pool2d(x, (3, 2))", {{{32, 2, 11, 28}}}, [](const In& x) { return max_pool2d(x[0], {3, 2}); }},
    {"max_5x5", "F.max_pool2d(x, (5, 5))", {{{32, 2, 11, 28}}}, [](const In& x) { return max_pool2d(x[0], {5, 5}); }},
    {"max_5x1", "F.max_pool2d(x, (5, 1))", {{{32, 2, 11, 28}}}, [](const In& x) { return max_pool2d(x[0], {5, 1}); }},
    {"max_1x1", "F.max_pool2d(x, (1, 1))", {{{4, 2, 5, 6}}}, [](const In& x) { return max_pool2d(x[0], 1); }},
    {"max_padding", "F.max_pool2d(x, (3, 3), padding=1)", {{{8, 2, 11, 28}}}, [](const In& x) { return max_pool2d(x[0], 3, {.padding = 1}); }},
    {"max_padding_axes", "F.max_pool2d(x, (5, 3), padding=(2, 1))", {{{8, 2, 11, 28}}}, [](const In& x) { return max_pool2d(x[0], {5, 3}, {.padding = {2, 1}}); }},
    {"max_padding_ends", "F.max_pool2d(F.pad(x, (0, 1, 2, 1), value=-inf), (5, 5))", {{{8, 2, 11, 28}}}, [](const In& x) { return max_pool2d(x[0], 5, {.padding = {0, 1, 2, 1}}); }},
    {"max_padding_ints", "F.max_pool2d(x.float(), (3, 3), padding=1).int()", {{{2, 2, 5, 7}, -99, -9, DType::I32}}, [](const In& x) { return max_pool2d(x[0], 3, {.padding = 1}); }, kForwardOnly},
    {"max_bigger_stride", "F.max_pool2d(x, (2, 2), stride=(3, 4))", {{{8, 2, 11, 28}}}, [](const In& x) { return max_pool2d(x[0], 2, {.stride = {3, 4}}); }},
    {"max_bigger_stride_dilation", "F.max_pool2d(x, (3, 2), stride=5, dilation=(1, 2))", {{{8, 2, 11, 28}}}, [](const In& x) { return max_pool2d(x[0], {3, 2}, {.stride = 5, .dilation = {1, 2}}); }},
    {"max_unit_stride", "F.max_pool2d(x, (5, 5), stride=1)", {{{3, 2, 17, 14}}}, [](const In& x) { return max_pool2d(x[0], 5, {.stride = 1}); }},
    {"max_smaller_stride", "F.max_pool2d(x, (5, 5), stride=(2, 3))", {{{3, 2, 17, 14}}}, [](const In& x) { return max_pool2d(x[0], 5, {.stride = {2, 3}}); }},
    {"max_dilation", "F.max_pool2d(x, (3, 2), dilation=(2, 3))", {{{3, 2, 17, 14}}}, [](const In& x) { return max_pool2d(x[0], {3, 2}, {.dilation = {2, 3}}); }},
    {"max_ceil", "F.max_pool2d(x, (3, 3), stride=2, ceil_mode=True)", {{{3, 2, 11, 14}}}, [](const In& x) { return max_pool2d(x[0], 3, {.stride = 2, .ceil_mode = true}); }},
    {"max_ceil_padding", "F.max_pool2d(x, (3, 3), stride=3, padding=1, ceil_mode=True)", {{{1, 1, 4, 5}}}, [](const In& x) { return max_pool2d(x[0], 3, {.stride = 3, .padding = 1, .ceil_mode = true}); }},
    {"max_ceil_beyond", "F.max_pool2d(x, (1, 2), stride=(5, 6), padding=(0, 1), ceil_mode=True)", {{{1, 1, 6, 13}}}, [](const In& x) { return max_pool2d(x[0], {1, 2}, {.stride = {5, 6}, .padding = {0, 1}, .ceil_mode = true}); }},
    {"max_tall", "F.max_pool2d(x, (3, 3), stride=2)", {{{4, 2, 111, 28}}}, [](const In& x) { return max_pool2d(x[0], 3, {.stride = 2}); }},
    {"max_nan", "F.max_pool2d(x, 2)", {{{1, 1, 2, 6}, {1, kNaN, -kInf, -kInf, 3, kInf, 2, 5, -kInf, -kInf, 4, 0}}}, [](const In& x) { return max_pool2d(x[0], 2); }, kForwardOnly},
    {"max_1d", "F.max_pool1d(x, 3, 2, 1)", {{{4, 2, 17}}}, [](const In& x) { return max_pool1d(x[0], 3, {.stride = 2, .padding = 1}); }},
    {"max_3d", "F.max_pool3d(x, (2, 3, 2), (1, 2, 2), (1, 0, 1))", {{{2, 2, 5, 8, 7}}}, [](const In& x) { return max_pool3d(x[0], {2, 3, 2}, {.stride = {1, 2, 2}, .padding = {1, 0, 1}}); }},
    {"max_f16", "F.max_pool2d(x, 2)", {{{2, 2, 5, 6}, -2, 2, DType::F16}}, [](const In& x) { return max_pool2d(x[0], 2); }, {.differences = false}},
});

const Family kPlaces("pool", {
    {"places", "F.max_pool2d(x, 2, return_indices=True)", {{{3, 2, 11, 8}}}, [](const In& x) { return max_pool2d_with_places(x[0], 2); }, {.torch_dtype = false}},
    {"places_3x3", "F.max_pool2d(x, 3, stride=2, padding=1, return_indices=True)", {{{3, 2, 11, 9}}}, [](const In& x) { return max_pool2d_with_places(x[0], 3, {.stride = 2, .padding = 1}); }, {.torch_dtype = false}},
    {"places_dilation", "F.max_pool2d(x, 3, dilation=2, return_indices=True)", {{{3, 2, 11, 9}}}, [](const In& x) { return max_pool2d_with_places(x[0], 3, {.dilation = 2}); }, {.torch_dtype = false}},
    {"places_ceil", "F.max_pool2d(x, 2, ceil_mode=True, return_indices=True)", {{{3, 2, 11, 9}}}, [](const In& x) { return max_pool2d_with_places(x[0], 2, {.ceil_mode = true}); }, {.torch_dtype = false}},
    {"places_ties", "F.max_pool2d(x, 2, stride=1, return_indices=True)", {{{1, 1, 4, 5}, std::vector<double>(20, 3.0)}}, [](const In& x) { return max_pool2d_with_places(x[0], 2, {.stride = 1}); }, {.backward = std::nullopt, .torch_dtype = false}},
    {"places_lowest", "F.max_pool2d(x, 3, padding=1, return_indices=True)", {{{1, 1, 4, 4}, std::vector<double>(16, -kInf)}}, [](const In& x) { return max_pool2d_with_places(x[0], 3, {.padding = 1}); }, {.backward = std::nullopt, .torch_dtype = false}},
    {"places_nan", "F.max_pool2d(x, 2, return_indices=True)", {{{1, 1, 2, 4}, {1, kNaN, -kInf, -kInf, 3, kInf, 2, 5}}}, [](const In& x) { return max_pool2d_with_places(x[0], 2); }, {.backward = std::nullopt, .torch_dtype = false}},
    {"places_1d", "F.max_pool1d(x, 3, 2, 1, return_indices=True)", {{{2, 3, 10}}}, [](const In& x) { return max_pool1d_with_places(x[0], 3, {.stride = 2, .padding = 1}); }, {.torch_dtype = false}},
    {"places_3d", "F.max_pool3d(x, 2, return_indices=True)", {{{2, 2, 5, 4, 7}}}, [](const In& x) { return max_pool3d_with_places(x[0], 2); }, {.torch_dtype = false}},
    {"places_ints", "F.max_pool2d(x.float(), 2, return_indices=True)", {{{2, 5, 6}, -9, 9, DType::I32}}, [](const In& x) { return max_pool2d_with_places(x[0], 2); }, {.backward = std::nullopt, .torch_dtype = false}},
    {"unpool", "F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)", {{{3, 2, 8, 10}}},
     [](const In& x) { const auto [y, places] = max_pool2d_with_places(x[0], 2); return max_unpool2d(y, places, 2); }},
    {"unpool_size", "F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=(9, 11))", {{{3, 2, 9, 11}}},
     [](const In& x) { const auto [y, places] = max_pool2d_with_places(x[0], 2); return max_unpool2d(y, places, 2, {.output_size = {9, 11}}); }},
    {"unpool_overlap", "F.max_unpool2d(*F.max_pool2d(x, 3, stride=2, padding=1, return_indices=True), 3, stride=2, padding=1, output_size=(7, 8))", {{{2, 7, 8}}},
     [](const In& x) { const auto [y, places] = max_pool2d_with_places(x[0], 3, {.stride = 2, .padding = 1});
                       return max_unpool2d(y, places, 3, {.stride = 2, .padding = 1, .output_size = {7, 8}}); }, kForwardOnly},
    {"unpool_1d", "F.max_unpool1d(*F.max_pool1d(x, 3, return_indices=True), 3)", {{{2, 2, 9}}},
     [](const In& x) { const auto [y, places] = max_pool1d_with_places(x[0], 3); return max_unpool1d(y, places, 3); }},
    {"unpool_3d", "F.max_unpool3d(*F.max_pool3d(x, 2, return_indices=True), 2)", {{{2, 1, 4, 4, 6}}},
     [](const In& x) { const auto [y, places] = max_pool3d_with_places(x[0], 2); return max_unpool3d(y, places, 2); }},
});

const Family kAvg("pool", {
    {"avg_pool2d", "F.avg_pool2d(x, 2)", {{{3, 2, 11, 8}}}, [](const In& x) { return x[0].avg_pool2d(2); }, kAverage},
    {"avg_3x2", "F.avg_pool2d(x, (3, 2))", {{{32, 2, 11, 28}}}, [](const In& x) { return avg_pool2d(x[0], {3, 2}); }, kAverage},
    {"avg_5x1", "F.avg_pool2d(x, (5, 1))", {{{32, 2, 11, 28}}}, [](const In& x) { return avg_pool2d(x[0], {5, 1}); }, kAverage},
    {"avg_stride", "F.avg_pool2d(x, 3, stride=(2, 1))", {{{4, 2, 11, 28}}}, [](const In& x) { return avg_pool2d(x[0], 3, {.stride = {2, 1}}); }, kAverage},
    {"avg_padding", "F.avg_pool2d(x, (3, 3), padding=1)", {{{8, 2, 11, 28}}}, [](const In& x) { return avg_pool2d(x[0], 3, {.padding = 1}); }, kAverage},
    {"avg_padding_axes", "F.avg_pool2d(x, (5, 3), padding=(2, 1), stride=2)", {{{8, 2, 11, 28}}}, [](const In& x) { return avg_pool2d(x[0], {5, 3}, {.stride = 2, .padding = {2, 1}}); }, kAverage},
    {"avg_not_counted", "F.avg_pool2d(x, (3, 3), padding=1, count_include_pad=False)", {{{8, 2, 11, 28}}}, [](const In& x) { return avg_pool2d(x[0], 3, {.padding = 1, .count_include_pad = false}); }, kAverage},
    {"avg_ceil", "F.avg_pool2d(x, (3, 3), stride=2, ceil_mode=True)", {{{4, 2, 8, 9}}}, [](const In& x) { return avg_pool2d(x[0], 3, {.stride = 2, .ceil_mode = true}); }, kAverage},
    {"avg_ceil_padding", "F.avg_pool2d(x, (3, 3), stride=3, padding=1, ceil_mode=True)", {{{4, 2, 4, 5}}}, [](const In& x) { return avg_pool2d(x[0], 3, {.stride = 3, .padding = 1, .ceil_mode = true}); }, kAverage},
    {"avg_ceil_not_counted", "F.avg_pool2d(x, (3, 3), stride=3, padding=1, ceil_mode=True, count_include_pad=False)", {{{4, 2, 4, 5}}},
     [](const In& x) { return avg_pool2d(x[0], 3, {.stride = 3, .padding = 1, .ceil_mode = true, .count_include_pad = false}); }, kAverage},
    {"avg_global", "F.avg_pool2d(x, (111, 28))", {{{4, 2, 111, 28}}}, [](const In& x) { return avg_pool2d(x[0], {111, 28}); }, kAverage},
    {"avg_1d", "F.avg_pool1d(x, 3, 2, 1, count_include_pad=False)", {{{4, 2, 17}}}, [](const In& x) { return avg_pool1d(x[0], 3, {.stride = 2, .padding = 1, .count_include_pad = false}); }, kAverage},
    {"avg_3d", "F.avg_pool3d(x, (8, 8, 8), stride=5)", {{{1, 1, 16, 16, 16}}}, [](const In& x) { return avg_pool3d(x[0], 8, {.stride = 5}); }, kAverage},
    {"avg_3d_padding", "F.avg_pool3d(x, (2, 3, 3), stride=2, padding=1, ceil_mode=True)", {{{1, 2, 6, 7, 8}}}, [](const In& x) { return avg_pool3d(x[0], {2, 3, 3}, {.stride = 2, .padding = 1, .ceil_mode = true}); }, kAverage},
    {"avg_f16", "F.avg_pool2d(x.float(), 3).half()", {{{2, 2, 9, 9}, -2, 2, DType::F16}}, [](const In& x) { return avg_pool2d(x[0], 3); }, {.forward = {1e-3, 1e-3}, .backward = Bound{1e-3, 2e-3}, .differences = false}},
});
// clang-format on

}  // namespace
}  // namespace plugrad::ops

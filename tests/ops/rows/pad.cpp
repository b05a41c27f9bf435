// Padding and cropping.
#include "ops/case.h"

namespace plugrad::ops {
namespace {

// clang-format off: rows
const Family kPadRows("movement", {
    {"pad_0", "F.pad(x, (1, 2, 3, 4), value=0)", {{{3, 3}}}, [](const In& x) { return x[0].pad({1, 2, 3, 4}, 0.0); }},
    {"pad_1", "F.pad(x, (-1, 2, -3, 4), value=0)", {{{3, 3}}}, [](const In& x) { return x[0].pad({-1, 2, -3, 4}, 0.0); }},
    {"pad_2", "F.pad(x, (1, 2, 3, 4), value=5)", {{{3, 3}}}, [](const In& x) { return x[0].pad({1, 2, 3, 4}, 5.0); }},
    {"pad_3", "F.pad(x, (0, 0, 3, 4), value=inf)", {{{3, 3}}}, [](const In& x) { return x[0].pad({0, 0, 3, 4}, kInf); }, {.differences = false}},
    {"pad_4", "F.pad(x, (0, -1, 1, 0), value=2)", {{{3, 3}}}, [](const In& x) { return x[0].pad({0, -1, 1, 0}, 2.0); }},
    {"pad_5", "F.pad(x, (0, 0, 0, 0), value=1)", {{{3, 3}}}, [](const In& x) { return x[0].pad({0, 0, 0, 0}, 1.0); }},
    {"pad_6", "F.pad(x, (1, 2), value=0)", {{{3, 3, 4}}}, [](const In& x) { return x[0].pad({1, 2}, 0.0); }},
    {"pad_7", "F.pad(x, (1, 2, 0, 3), value=-1.5)", {{{3, 3, 4}}}, [](const In& x) { return x[0].pad({1, 2, 0, 3}, -1.5); }},
    {"pad_8", "F.pad(x, (-3, 0, 0, 0), value=0)", {{{3, 3}}}, [](const In& x) { return x[0].pad({-3, 0, 0, 0}, 0.0); }},
    {"pad_9", "F.pad(x, (0, 0, 2, 0), value=7)", {{{0, 3}}}, [](const In& x) { return x[0].pad({0, 0, 2, 0}, 7.0); }},
    {"pad_10", "F.pad(x, (0, 3), value=0)", {{{2}}}, [](const In& x) { return x[0].pad({0, 3}, 0.0); }},
    {"reflect_0", "F.pad(x, (0, 2, 3, 2), mode='reflect')", {{{1, 1, 5, 5}}}, [](const In& x) { return x[0].pad({0, 2, 3, 2}, PadMode::Reflect); }},
    {"reflect_1", "F.pad(x, (1, 1, 1, 1), mode='reflect')", {{{1, 1, 5, 5}}}, [](const In& x) { return x[0].pad({1, 1, 1, 1}, PadMode::Reflect); }},
    {"reflect_2", "F.pad(x, (2, 0, 0, 3), mode='reflect')", {{{2, 3, 5, 6}}}, [](const In& x) { return x[0].pad({2, 0, 0, 3}, PadMode::Reflect); }},
    {"reflect_3", "F.pad(x, (4, 4), mode='reflect')", {{{2, 3, 6}}}, [](const In& x) { return x[0].pad({4, 4}, PadMode::Reflect); }},
    {"reflect_5", "F.pad(x, (1, 2, 0, 1, 2, 0), mode='reflect')", {{{1, 1, 4, 4, 4}}}, [](const In& x) { return x[0].pad({1, 2, 0, 1, 2, 0}, PadMode::Reflect); }},
    {"replicate_0", "F.pad(x, (0, 2, 3, 2), mode='replicate')", {{{1, 1, 5, 5}}}, [](const In& x) { return x[0].pad({0, 2, 3, 2}, PadMode::Replicate); }},
    {"replicate_1", "F.pad(x, (1, 1, 1, 1), mode='replicate')", {{{1, 1, 5, 5}}}, [](const In& x) { return x[0].pad({1, 1, 1, 1}, PadMode::Replicate); }},
    {"replicate_2", "F.pad(x, (2, 0, 0, 3), mode='replicate')", {{{2, 3, 5, 6}}}, [](const In& x) { return x[0].pad({2, 0, 0, 3}, PadMode::Replicate); }},
    {"replicate_3", "F.pad(x, (4, 4), mode='replicate')", {{{2, 3, 6}}}, [](const In& x) { return x[0].pad({4, 4}, PadMode::Replicate); }},
    {"replicate_4", "F.pad(x, (-1, 2, 2, -1), mode='replicate')", {{{2, 3, 5, 6}}}, [](const In& x) { return x[0].pad({-1, 2, 2, -1}, PadMode::Replicate); }},
    {"replicate_5", "F.pad(x, (1, 2, 0, 1, 2, 0), mode='replicate')", {{{1, 1, 4, 4, 4}}}, [](const In& x) { return x[0].pad({1, 2, 0, 1, 2, 0}, PadMode::Replicate); }},
    {"circular_0", "F.pad(x, (0, 2, 3, 2), mode='circular')", {{{1, 1, 5, 5}}}, [](const In& x) { return x[0].pad({0, 2, 3, 2}, PadMode::Circular); }},
    {"circular_1", "F.pad(x, (1, 1, 1, 1), mode='circular')", {{{1, 1, 5, 5}}}, [](const In& x) { return x[0].pad({1, 1, 1, 1}, PadMode::Circular); }},
    {"circular_2", "F.pad(x, (2, 0, 0, 3), mode='circular')", {{{2, 3, 5, 6}}}, [](const In& x) { return x[0].pad({2, 0, 0, 3}, PadMode::Circular); }},
    {"circular_3", "F.pad(x, (4, 4), mode='circular')", {{{2, 3, 6}}}, [](const In& x) { return x[0].pad({4, 4}, PadMode::Circular); }},
    {"circular_4", "F.pad(x, (-1, 2, 2, -1), mode='circular')", {{{2, 3, 5, 6}}}, [](const In& x) { return x[0].pad({-1, 2, 2, -1}, PadMode::Circular); }},
    {"circular_5", "F.pad(x, (1, 2, 0, 1, 2, 0), mode='circular')", {{{1, 1, 4, 4, 4}}}, [](const In& x) { return x[0].pad({1, 2, 0, 1, 2, 0}, PadMode::Circular); }},
    {"pad_pairs", "F.pad(x, (3, 4, 1, 2))", {{{3, 3}}}, [](const In& x) { return x[0].pad({{1, 2}, {3, 4}}); }},
    {"pad_twice", "F.pad(F.pad(x, (1, 1), value=3.), (2, 0, 0, 1), value=4.)", {{{3, 3}}}, [](const In& x) { return x[0].pad({1, 1}, 3.0).pad({2, 0, 0, 1}, 4.0); }},
    {"pad_int", "F.pad(x, (1, 2), value=-3)", {{{4}, -9, 9, DType::I32}}, [](const In& x) { return x[0].pad({1, 2}, -3); }, kForwardOnly},
    {"pad_to", "F.pad(x, (0, 1, 0, 2), value=2.)", {{{3, 3}}}, [](const In& x) { return x[0].pad_to({5, 4}, 2.0); }},
    {"shrink", "x[1:2, :, 2:]", {{{3, 4, 5}}}, [](const In& x) { return x[0].shrink({{1, 2}, std::nullopt, {2, 5}}); }},
    {"shrink_to", "x[:2, :, :0]", {{{3, 4, 5}}}, [](const In& x) { return x[0].shrink_to({2, std::nullopt, 0}); }},
    {"pad_slice_0", "F.pad(x, (1, 2))[1:]", {{{5}}}, [](const In& x) { return x[0].pad({1, 2})[Slice(1, {})]; }},
    {"slice_pad_1", "F.pad(x[1:], (2, 1))", {{{7}}}, [](const In& x) { return x[0][Slice(1, {})].pad({2, 1}); }},
    {"pad_slice_1", "F.pad(x, (-1, 2))[:2]", {{{5}}}, [](const In& x) { return x[0].pad({-1, 2})[Slice(0, 2)]; }},
    {"slice_pad_2", "F.pad(x[:2], (2, 1))", {{{7}}}, [](const In& x) { return x[0][Slice(0, 2)].pad({2, 1}); }},
    {"pad_slice_2", "F.pad(x, (2, -1))[::2]", {{{5}}}, [](const In& x) { return x[0].pad({2, -1})[Slice({}, {}, 2)]; }},
    {"slice_pad_3", "F.pad(x[::2], (2, 1))", {{{7}}}, [](const In& x) { return x[0][Slice({}, {}, 2)].pad({2, 1}); }},
    {"pad_slice_3", "F.pad(x, (0, 2))[1:3]", {{{5}}}, [](const In& x) { return x[0].pad({0, 2})[Slice(1, 3)]; }},
    {"slice_pad_4", "F.pad(x[1:3], (2, 1))", {{{7}}}, [](const In& x) { return x[0][Slice(1, 3)].pad({2, 1}); }},
    {"pad_slice_4", "F.pad(x, (3, 3))[2:-2]", {{{5}}}, [](const In& x) { return x[0].pad({3, 3})[Slice(2, -2)]; }},
    {"slice_pad_5", "F.pad(x[2:-2], (2, 1))", {{{7}}}, [](const In& x) { return x[0][Slice(2, -2)].pad({2, 1}); }},
    {"pad_slice_5", "F.pad(x, (2, 2))[:-3]", {{{5}}}, [](const In& x) { return x[0].pad({2, 2})[Slice({}, -3)]; }},
    {"slice_pad_6", "F.pad(x[:-3], (2, 1))", {{{7}}}, [](const In& x) { return x[0][Slice({}, -3)].pad({2, 1}); }},
});
// clang-format on

}  // namespace
}  // namespace plugrad::ops

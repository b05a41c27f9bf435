// Movement: padding by modes, windows, diagonals, patterns. tests/ops compares ordinary values with
// PyTorch.
#include "expect.h"

namespace plugrad {
namespace {

using D = std::vector<double>;

TEST(Pad, Modes) {
  const Tensor a = counting({4}, 1);
  expect_values(a.pad({{2, 3}}, PadMode::Reflect), {3, 2, 1, 2, 3, 4, 3, 2, 1});
  expect_values(a.pad({{2, 1}}, PadMode::Replicate), {1, 1, 1, 2, 3, 4, 4});
  expect_values(a.pad({{2, 3}}, PadMode::Circular), {3, 4, 1, 2, 3, 4, 1, 2, 3});
  expect_values(a.pad({{-1, 2}}, PadMode::Circular), {2, 3, 4, 2, 3});
  expect_values(a.pad({{-1, 2}}, PadMode::Reflect), {2, 3, 4, 3, 2});
  expect_values(a.pad({1, -2}, PadMode::Constant, 9), {9, 1, 2});
  expect_values(a.reshape({2, 2}).pad({1, 0, 0, 1}), {0, 1, 2, 0, 3, 4, 0, 0, 0});
  expect_values(a.pad_to({6}, 7), {1, 2, 3, 4, 7, 7});
  expect_values(a.reshape({2, 2}).pad_to({std::nullopt, 3}), {1, 2, 0, 3, 4, 0});
  EXPECT_TRUE(std::signbit(values(a.pad({{1, 0}}, -0.0))[0]));
  EXPECT_EQ(error_of([&] { a.pad({{4, 0}}, PadMode::Reflect); }),
            "[pad] reflecting 4 of axis 0 of (4,): at most 3 are there");
  EXPECT_EQ(error_of([&] { a.pad({{0, 5}}, PadMode::Circular); }),
            "[pad] going round 5 of axis 0 of (4,): at most 4 are there");
  EXPECT_EQ(error_of([&] { Tensor::zeros({0}).pad({{0, 1}}, PadMode::Replicate); }),
            "[pad] axis 0 of (0,) has no edge to repeat");
  EXPECT_EQ(error_of([&] { a.pad({1, 2, 3}); }),
            "[pad] (1, 2, 3) are 3 numbers for shape (4,): two for each axis, the last axis first");
  EXPECT_EQ(error_of([&] { a.cast(DType::I32).pad({{1, 0}}, std::nan("")); }),
            "[pad] nan is no value of a i32 tensor");
  EXPECT_EQ(error_of([&] { a.pad({{-3, -2}}); }),
            "[pad] (-3, -2) removes more than axis 0 of (4,) has");
  EXPECT_THAT(error_of([&] { a.pad({{INT64_MIN, INT64_MAX}}); }), testing::HasSubstr("too many"));
  EXPECT_EQ(error_of([&] { a.pad_to({3}); }), "[pad_to] 3 is less than axis 0 of (4,) has");
}

TEST(Pad, ValuesAreExactNumbersOfTheDtype) {
  const int64_t big = (int64_t{1} << 53) + 1;
  const Tensor whole = Tensor::from({int64_t{1}}), small = Tensor::from({1}),
               flag = Tensor::from({false});
  using Values = std::vector<int64_t>;
  EXPECT_EQ(whole.pad({1, 0}, big).to_vector<int64_t>(), (Values{big, 1}));
  EXPECT_EQ(whole.pad_to({2}, big).to_vector<int64_t>(), (Values{1, big}));
  EXPECT_EQ(whole.pad({1, 0}, -0x1p63).to_vector<int64_t>(), (Values{INT64_MIN, 1}));
  EXPECT_EQ(whole.cast(DType::U64).pad({0, 1}, UINT64_MAX).to_vector<uint64_t>(),
            (std::vector<uint64_t>{1, UINT64_MAX}));
  EXPECT_EQ(flag.pad({1, 0}, true).dtype(), DType::Bool);
  expect_values(flag.pad({1, 0}, true).cast(DType::I32), {1, 0});
  expect_values(small.pad({1, 0}, 7.0), {7, 1});
  expect_values(whole.pad({1, 0}, small.reshape({}) + 4), {5, 1});
  EXPECT_EQ(error_of([&] { small.pad({1, 0}, .5); }), "[pad] 0.5 is no value of a i32 tensor");
  EXPECT_EQ(error_of([&] { small.cast(DType::I8).pad({1, 0}, 300); }),
            "[pad] 300 is no value of a i8 tensor");
  EXPECT_EQ(error_of([&] { flag.pad_to({2}, 2); }), "[pad] 2 is no value of a bool tensor");
  EXPECT_EQ(error_of([&] { small.pad({1, 0}, whole.sum()); }),
            "[pad] a i64 value into a i32 tensor; cast it first");
  EXPECT_EQ(error_of([&] { small.pad({1, 0}, small); }),
            "[pad] the value has shape (1,), not one number");
}

TEST(Shrink, PartsMayBeOpen) {
  const Tensor a = counting({2, 3});
  expect_values(a.shrink({std::nullopt, {1, 3}}), {1, 2, 4, 5});
  expect_values(a.shrink({{0, 1}, {1, 3}}), {1, 2});
  expect_values(a.shrink_to({std::nullopt, 1}), {0, 3});
  EXPECT_EQ(Tensor::zeros({1, 2, 1, 1}).squeeze({0, 1, -1}).shape(), (Shape{2, 1}));
  EXPECT_EQ(Tensor::zeros({1, 2, 1}).squeeze().shape(), Shape{2});
}

TEST(Move, RollRepeatAndDiagonals) {
  const Tensor a = counting({2, 3});
  expect_values(a.roll(1), {5, 0, 1, 2, 3, 4});
  expect_values(a.roll({1, -4}, {0, 1}), {4, 5, 3, 1, 2, 0});
  expect_values(Tensor::zeros({0, 2}).roll(3, 0), {});
  expect_values(a.repeat_interleave(2, 1), {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5});
  expect_values(a.repeat_interleave(2), {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5});
  expect_values(a.diagonal(), {0, 4});
  expect_values(a.diagonal(1), {1, 5});
  expect_values(a.diagonal(-1), {3});
  EXPECT_EQ(a.diagonal(5).shape(), Shape{0});
  EXPECT_EQ(a.diagonal(INT64_MIN).shape(), Shape{0});
  EXPECT_EQ(counting({2, 3, 4}).diagonal(0, 2, 0).shape(), (Shape{3, 2}));
  expect_values(counting({2, 3, 4}).diagonal(1, 0, 2), {1, 14, 5, 18, 9, 22});
  expect_values(a[0].diag(), {0, 0, 0, 0, 1, 0, 0, 0, 2});
  expect_values(a[0].slice(0, {1, 3}).diag(-1), {0, 0, 0, 1, 0, 0, 0, 2, 0});
  expect_values(a.diag(1), {1, 5});
  EXPECT_EQ(Tensor::zeros({0}).diag().shape(), (Shape{0, 0}));
  EXPECT_EQ(error_of([&] { a.roll({1, 2}, 0); }), "[roll] 2 shifts for 1 axes");
  EXPECT_EQ(error_of([&] { a.diagonal(0, 1, -1); }), "[diagonal] axes 1 and -1 are the same");
}

TEST(Move, Unfold) {
  const Tensor a = counting({5});
  expect_values(a.unfold(0, 3, 1), {0, 1, 2, 1, 2, 3, 2, 3, 4});
  expect_values(a.unfold(0, 2, 3), {0, 1, 3, 4});
  expect_values(a.unfold(0, 2, 2), {0, 1, 2, 3});
  expect_values(a.unfold(0, 5, 1), {0, 1, 2, 3, 4});
  EXPECT_EQ(a.unfold(0, 0, 2).shape(), (Shape{3, 0}));
  const Tensor b = counting({3, 2, 2});
  expect_values(b.unfold(0, 2, 1), {0, 4, 1, 5, 2, 6, 3, 7, 4, 8, 5, 9, 6, 10, 7, 11});
  EXPECT_EQ(b.unfold(0, 2, 1).shape(), (Shape{2, 2, 2, 2}));
  EXPECT_EQ(error_of([&] { a.unfold(0, 6, 1); }),
            "[unfold] windows of 6 do not fit axis 0 of (5,)");
  EXPECT_EQ(error_of([&] { a.unfold(0, 2, 0); }), "[unfold] step 0 is not positive");
}

TEST(Move, SplitAndChunkOfNothing) {
  EXPECT_EQ(Tensor::zeros({0, 2}).chunk(3).size(), 3u);
  EXPECT_EQ(Tensor::zeros({0, 2}).split(2).size(), 1u);
  EXPECT_EQ(Tensor::arange(5).split(2)[2].shape(), Shape{1});
}

TEST(Rearrange, Patterns) {
  const Tensor a = counting({2, 6, 3});
  EXPECT_EQ(a.rearrange("b (h w) c -> b c h w", {{"h", 2}}).shape(), (Shape{2, 3, 2, 3}));
  expect_values(a.rearrange("b (h w) c -> b c h w", {{"h", 2}}),
                values(a.reshape({2, 2, 3, 3}).permute({0, 3, 1, 2})));
  expect_values(a.rearrange("... c -> c ..."), values(a.permute({2, 0, 1})));
  EXPECT_EQ(a.rearrange("b ... -> 1 (b) () ...").shape(), (Shape{1, 2, 1, 6, 3}));
  EXPECT_EQ(counting({2, 1, 3}).rearrange("a 1 b -> (b a)").shape(), Shape{6});
  EXPECT_EQ(Tensor(2.0).rearrange("->1").shape(), Shape{1});
}

TEST(Rearrange, PointsAtWhatDoesNotParse) {
  const Tensor a = counting({2, 6});
  const auto error = [&](const char* pattern, std::vector<std::pair<std::string, int64_t>> s = {}) {
    return error_of([&] { a.rearrange(pattern, s); });
  };
  EXPECT_EQ(error("a b -> a c"),
            "[rearrange] the right side does not have this\n  a b -> a c\n    ^");
  EXPECT_EQ(error("a b -> a b c"),
            "[rearrange] the left side does not have this\n  a b -> a b c\n             ^");
  EXPECT_EQ(error("a (b -> a b"),
            "[rearrange] this parenthesis is not closed\n  a (b -> a b\n    ^");
  EXPECT_EQ(error("a b -> a, b"),
            "[rearrange] a name, a parenthesis or ... is expected\n  a b -> a, b\n          ^");
  EXPECT_EQ(error("a b"), "[rearrange] -> is missing\n  a b\n     ^");
  EXPECT_EQ(error("a a -> a"), "[rearrange] this name occurs twice\n  a a -> a\n    ^");
  EXPECT_EQ(error("a (b c) -> a b c"),
            "[rearrange] the sizes of b and c are both open; give one of them\n"
            "  a (b c) -> a b c\n       ^");
  EXPECT_EQ(error("a b c -> a b c"),
            "[rearrange] \"a b c -> a b c\" has 3 axes on the left, shape (2, 6) has 2");
  EXPECT_EQ(error("a (b c) -> a b c", {{"b", 4}}),
            "[rearrange] axis 1 of (2, 6) does not divide into parts of 4 together");
  EXPECT_EQ(error("a b -> b a", {{"h", 4}}),
            "[rearrange] a size is given for h, which the left side does not name");
}

}  // namespace
}  // namespace plugrad

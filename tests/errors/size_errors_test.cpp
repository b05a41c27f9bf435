// Excessive sizes: one error each, and the process continues.
#include "unit/tensor/expect.h"

namespace plugrad {
namespace {

using testing::HasSubstr;

TEST(SizeErrors, TensorsOfMoreThan64Axes) {
  const std::string too_many = "a tensor has at most 64 axes, not ";
  EXPECT_EQ(Tensor::zeros(Shape(64, 1)).ndim(), 64);
  EXPECT_EQ(error_of([] { Tensor::zeros(Shape(65, 1)); }), "[zeros] " + too_many + "65");
  EXPECT_THAT(error_of([] { Tensor(1.0F).reshape(Shape(256, 1)); }), HasSubstr(too_many));
  EXPECT_THAT(error_of([] { Tensor::zeros(Shape(64, 1)).unsqueeze(0); }), HasSubstr(too_many));
  EXPECT_THAT(error_of([] { Tensor::from(std::vector<float>{1}, Shape(65, 1)); }),
              HasSubstr(too_many));
}

TEST(SizeErrors, ShapesThatOverflow) {
  const int64_t huge = int64_t{1} << 40;
  const std::string too_many = "has more than 2^60 elements";
  EXPECT_EQ(error_of([&] { Tensor::zeros({huge, huge}); }),
            "[zeros] a tensor of shape (1099511627776, 1099511627776) has more than 2^60 elements");
  EXPECT_THAT(error_of([&] { Tensor::rand({huge, huge}); }), HasSubstr("[rand] a tensor of shape"));
  EXPECT_THAT(error_of([&] { Tensor::randint({huge, huge}, 0, 5); }), HasSubstr(too_many));
  EXPECT_THAT(error_of([&] { Tensor::randn({huge, huge}); }), HasSubstr(too_many));
  EXPECT_THAT(error_of([&] { Tensor::from_bytes({}, {huge, huge}, DType::F32); }),
              HasSubstr("[from] a tensor of shape"));
  EXPECT_THAT(error_of([&] { Tensor::from_bytes({}, {int64_t{1} << 50}, DType::F32); }),
              HasSubstr("[from] 0 values for the 1125899906842624 elements"));
  EXPECT_THAT(error_of([&] { Tensor::from_bytes({}, {-1}, DType::F32); }), HasSubstr("negative"));
  EXPECT_EQ(Tensor::zeros({0, huge, huge}).numel(), 0);
}

TEST(SizeErrors, MoreRandomNumbersThanOneDrawHas) {
  EXPECT_EQ(error_of([] { Tensor::rand({1000000000000}); }),
            "[rand] draws at most 2^32 - 1 words of 32 bits at once, and 1000000000000 elements of "
            "4 bytes need more; draw parts and join them");
  EXPECT_THAT(error_of([] { Tensor::rand({int64_t{1} << 31}, DType::F64); }),
              HasSubstr("2147483648 elements of 8 bytes need more"));
}

TEST(SizeErrors, ReadingMoreThanTheHostHolds) {
  const Tensor huge = Tensor::zeros({1000000000000000});
  EXPECT_THAT(error_of([&] { huge.to_vector<float>(); }),
              HasSubstr("[to_vector] the 1000000000000000 elements of shape (1000000000000000,) do "
                        "not fit the host's memory of"));
  EXPECT_THAT(error_of([&] { huge.to_bytes(); }), HasSubstr("[to_bytes] the 1000000000000000"));
}

TEST(SizeErrors, ProductsOfSizesThatWrapAround) {
  const Tensor x = Tensor::ones({12});
  const int64_t other = 2635249153387078804;  // times 7: 2^64 + 12
  EXPECT_THAT(error_of([&] { x.reshape({7, other}); }), HasSubstr("has more than 2^60 elements"));
  EXPECT_THAT(error_of([&] { x.reshape({int64_t{1} << 62, 4, -1}); }),
              HasSubstr("has more than 2^60 elements"));
  EXPECT_THAT(error_of([&] { Tensor::arange(INT64_MAX); }), HasSubstr("[arange] a tensor of"));
  EXPECT_THAT(error_of([&] { Tensor::arange(0.0, 1e30); }), HasSubstr("[arange] a tensor of"));
  EXPECT_THAT(error_of([&] { Tensor::eye(INT64_MAX); }), HasSubstr("has more than 2^60 elements"));
  EXPECT_THAT(error_of([&] { Tensor::ones({0}).chunk(int64_t{1} << 50); }),
              HasSubstr("[chunk] the 1125899906842624 elements"));
  EXPECT_EQ(x.chunk(INT64_MAX).size(), 12u);
  EXPECT_EQ(Tensor::ones({3, 3}).tril(int64_t{1} << 40).sum().item<float>(), 9);
  EXPECT_EQ(Tensor::ones({3, 3}).triu(INT64_MAX).sum().item<float>(), 0);
  EXPECT_EQ(Tensor::ones({3, 3}).triu(INT64_MIN).sum().item<float>(), 9);
}

// Each call works or is refused; none ends in an exception of the standard library.
TEST(SizeErrors, HostileSizesEverywhere) {
  const Tensor x = Tensor::arange(12).cast(DType::F32), square = x.reshape({3, 4});
  const std::vector<std::function<void(int64_t)>> calls = {
      [&](int64_t s) { x.reshape({s, s}); },
      [&](int64_t s) { x.reshape({s, s, -1}); },
      [&](int64_t s) { x.unflatten(0, {s, -1}); },
      [&](int64_t s) { x.reshape({12, 1}).expand({12, s}).sum(); },
      [&](int64_t s) { x.repeat({s, s}); },
      [&](int64_t s) { x.pad({{s, s}}); },
      [&](int64_t s) { x.shrink({{s, s}}); },
      [&](int64_t s) { x[Slice{s, s}]; },
      [&](int64_t s) { Tensor::zeros({s, s}); },
      [&](int64_t s) { Tensor::zeros({s, 1 << 20}).to_vector<float>(); },
      [&](int64_t s) { Tensor::rand({s, s}); },
      [&](int64_t s) { Tensor::eye(s).sum(); },
      [&](int64_t s) { Tensor::arange(s); },
      [&](int64_t s) { Tensor::arange(s, -s, s); },
      [&](int64_t s) { Tensor::linspace(0, 1, s); },
      [&](int64_t s) { Tensor::randperm(s); },
      [&](int64_t s) { Tensor::randint({2}, 0, s); },
      [&](int64_t s) { x.roll(s, 0); },
      [&](int64_t s) { x.cast(DType::I32).one_hot(s); },
      [&](int64_t s) { x.unfold(0, s, s); },
      [&](int64_t s) { x.chunk(s); },
      [&](int64_t s) { x.split(s); },
      [&](int64_t s) { square.tril(s), square.triu(s); },
      [&](int64_t s) { square.diagonal(s); },
      [&](int64_t s) { x.topk(s); },
      [&](int64_t s) { x.cumsum(s); },
      [&](int64_t s) { x.unsqueeze(s), x.squeeze(s), x.flip({s}); },
      [&](int64_t s) { square.transpose(s, s); },
      [&](int64_t s) { avg_pool1d(x.reshape({1, 1, 12}), s, {.stride = s}); },
      [&](int64_t s) { max_pool1d(x.reshape({1, 1, 12}), 2, {.dilation = s}); },
      [&](int64_t s) {
        conv1d(x.reshape({1, 1, 12}), Tensor::ones({1, 1, 3}), {}, {.padding = s});
      },
      [&](int64_t s) { nn::Linear(s, s); },
      [&](int64_t s) { nn::Embedding(s, s); },
      [&](int64_t s) { nn::Conv2d(s, s, {s, s}); },
      [&](int64_t s) { nn::LSTM(s, s); },
      [&](int64_t s) { Variable("v", s, s).bind(s); },
  };
  for (const int64_t size : {INT64_MIN, int64_t{-1}, int64_t{1} << 31, int64_t{1} << 40,
                             int64_t{1} << 59, int64_t{1} << 62, INT64_MAX})
    for (size_t i = 0; i < calls.size(); ++i) try {
        calls[i](size);
      } catch (const Error&) {
      } catch (const std::exception& e) {
        ADD_FAILURE() << "call " << i << " of " << size << ": " << e.what();
      }
}

TEST(JitErrors, AFunctionThatCallsItselfWithoutEnd) {
  std::function<Tensor(const Tensor&)> call;
  const auto function = jit([&](const Tensor& x) { return call(x) + 1; });
  call = [&](const Tensor& x) { return function(x); };
  EXPECT_THAT(error_of([&] { function(Tensor::ones({3})); }),
              HasSubstr("[jit] 100 calls of jitted functions are inside each other"));
  int left = 90;  // one that ends, and after the error
  const auto ending = jit([&](const Tensor& x) { return left-- > 0 ? call(x) + 1 : x; });
  call = [&](const Tensor& x) { return ending(x); };
  EXPECT_EQ(ending(Tensor::ones({3})).to_vector<float>(), (std::vector<float>{91, 91, 91}));
}

}  // namespace
}  // namespace plugrad

// Sizes that no machine has: one error each, and the process goes on.
#include "unit/tensor/expect.h"

namespace plugrad {
namespace {

using testing::HasSubstr;

TEST(SizeErrors, ShapesThatOverflow) {
  const int64_t huge = int64_t{1} << 40;
  const std::string too_many = "has more than 2^60 elements";
  EXPECT_EQ(error_of([&] { Tensor::zeros({huge, huge}); }),
            "[full] a tensor of shape (1099511627776, 1099511627776) has more than 2^60 elements");
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

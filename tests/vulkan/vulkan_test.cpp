// The plugin on the present driver, through the runtime: cases outside the conformance suite.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>

#include "base/settings.h"
#include "plugrad/error.h"
#include "plugrad/sdk/ir_builder.h"
#include "runtime/runtime.h"
#include "unit/base/temporary_directory.h"

using namespace plugrad;
using namespace plugrad::runtime;
using sdk::IrBuilder;
using testing::HasSubstr;

namespace {

class Vulkan : public testing::Test {
 protected:
  Device& device() { return registry.find_device("VULKAN"); }
  std::shared_ptr<Buffer> ints(std::vector<std::int32_t> values) {
    auto buffer = device().allocate(values.size() * sizeof(std::int32_t));
    buffer->copy_in(values.data(), values.size() * sizeof(std::int32_t));
    return buffer;
  }
  TemporaryDirectory cache;
  SettingScope scope{[this](Settings& s) { s.cache_dir = cache.path(); }};
  Registry registry{options_from_settings()};
};

// Increments out[0] in `turns` iterations; if `turns` is 0, a scalar argument is the count.
std::vector<std::byte> count_kernel(std::int64_t turns) {
  IrBuilder b("count");
  auto out = b.buffer(PGR_DTYPE_I32, 1);
  auto zero = b.constant_int(PGR_DTYPE_I32, 0);
  auto end = turns ? b.constant_int(PGR_DTYPE_I32, turns) : b.scalar(PGR_DTYPE_I32, 0, INT32_MAX);
  auto acc = b.array(PGR_SPACE_PRIVATE, PGR_DTYPE_I32, 1);
  b.store(acc, zero, zero);
  auto i = b.loop(zero, end);
  auto other = b.alu(PGR_OP_XOR, {i, b.load(acc, zero)});  // has no closed form
  b.store(acc, zero, b.alu(PGR_OP_ADD, {other, b.constant_int(PGR_DTYPE_I32, 1)}));
  b.end_loop(i);
  b.store(out, zero, b.load(acc, zero));
  return b.finish();
}

std::int32_t counted(std::int64_t turns) {
  std::uint32_t acc = 0;
  for (std::uint32_t i = 0; i < turns; ++i) acc = (i ^ acc) + 1;
  return static_cast<std::int32_t>(acc);
}

}  // namespace

// llvmpipe of Mesa 22.3 ends loops after 65,535 iterations. The result must be right regardless.
TEST_F(Vulkan, ALongLoop_IsRight) {
  for (std::int64_t turns : {50'000, 200'000, 1'000'003, 3'000'000}) {
    auto kernel = device().compile(count_kernel(turns), "count");
    auto out = ints({-1});
    Buffer* buffers[] = {out.get()};
    std::int32_t got = -1;
    const bool is_prime = turns == 1'000'003;
    try {
      device().launch(*kernel, {.buffers = buffers, .scalars = {}});
      out->copy_out(&got, sizeof got);
      EXPECT_EQ(got, counted(turns)) << turns;
    } catch (const Error& e) {
      EXPECT_TRUE(is_prime) << turns << ": " << e.what();
      EXPECT_THAT(e.what(), HasSubstr("ended a loop"));
    }
  }
}

// llvmpipe of Mesa 22.3 ends loops after 65,535 iterations. The plugin must report an error.
TEST_F(Vulkan, ALoopThatTheDriverEnds_IsAnError) {
  auto kernel = device().compile(count_kernel(0), "count");
  for (std::uint64_t turns : {60'000, 200'000, 100}) {
    auto out = ints({-1});
    Buffer* buffers[] = {out.get()};
    std::uint64_t scalars[] = {turns};
    std::int32_t got = -1;
    try {
      device().launch(*kernel, {.buffers = buffers, .scalars = scalars});
      out->copy_out(&got, sizeof got);
      EXPECT_EQ(got, counted(static_cast<std::int64_t>(turns)));
    } catch (const Error& e) {
      EXPECT_GT(turns, 65'535u);
      EXPECT_THAT(e.what(), HasSubstr("ended a loop"));
    }
  }
}

// More parameters than fit push constants.
TEST_F(Vulkan, ManyParameters_AllArrive) {
  constexpr std::uint32_t kBuffers = 40;
  IrBuilder b("many");
  auto zero = b.constant_int(PGR_DTYPE_I32, 0);
  auto out = b.buffer(PGR_DTYPE_I32, 1);
  std::vector<IrBuilder::Value> terms;
  for (std::uint32_t i = 1; i < kBuffers; ++i)
    terms.push_back(b.load(b.buffer(PGR_DTYPE_I32, 1), zero));
  terms.push_back(b.scalar(PGR_DTYPE_I32, -1000000, 1000000));
  auto sum = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i)
    sum = b.alu(PGR_OP_SUB, {b.alu(PGR_OP_MUL, {sum, b.constant_int(PGR_DTYPE_I32, 3)}), terms[i]});
  b.store(out, zero, sum);
  auto kernel = device().compile(b.finish(), "many");
  for (std::int32_t round = 0; round < 300; ++round) {
    std::vector<std::shared_ptr<Buffer>> held;
    std::vector<Buffer*> buffers;
    std::uint32_t want = 0;
    for (std::uint32_t i = 0; i < kBuffers; ++i) {
      const std::int32_t value = static_cast<std::int32_t>(i * 17) + round;
      held.push_back(ints({value}));
      buffers.push_back(held.back().get());
      if (i > 0) want = i == 1 ? static_cast<std::uint32_t>(value) : want * 3 - value;
    }
    std::uint64_t scalars[] = {static_cast<std::uint64_t>(std::int64_t{-5} * round)};
    want = want * 3 - static_cast<std::uint32_t>(-5 * round);
    device().launch(*kernel, {.buffers = buffers, .scalars = scalars});
    std::int32_t got = 0;
    held[0]->copy_out(&got, sizeof got);
    ASSERT_EQ(got, static_cast<std::int32_t>(want)) << round;
  }
}

TEST_F(Vulkan, ASourceThatIsRefused_SaysWhere) {
  IrBuilder b("too_large");
  b.set_local(100'000);
  b.store(b.buffer(PGR_DTYPE_I32, 1), b.constant_int(PGR_DTYPE_I32, 0), b.local_id(0));
  try {
    auto kernel = device().compile(b.finish(), "too_large");
    FAIL() << "groups of 100,000 work-items";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("too_large"));
    EXPECT_THAT(e.what(), HasSubstr("100000"));
  }
}

// llvmpipe simplifies sums and products with a constant 0, which is wrong for floats.
TEST_F(Vulkan, AConstantZero_IsAFloatLikeAnyOther) {
  IrBuilder b("zeros");
  b.set_groups(4);
  auto in = b.buffer(PGR_DTYPE_F32, 4), product = b.buffer(PGR_DTYPE_F32, 4),
       sum = b.buffer(PGR_DTYPE_F32, 4);
  auto id = b.group_id(0), zero = b.constant_float(PGR_DTYPE_F32, 0), x = b.load(in, id);
  b.store(product, id, b.alu(PGR_OP_MUL, {zero, x}));
  b.store(sum, id, b.alu(PGR_OP_ADD, {x, zero}));
  auto kernel = device().compile(b.finish(), "zeros");
  const std::array<float, 4> x_values = {-1, INFINITY, -0.0f, 3};
  std::array<float, 4> products{}, sums{};
  auto given = device().allocate(16), first = device().allocate(16), second = device().allocate(16);
  given->copy_in(x_values.data(), 16);
  Buffer* buffers[] = {given.get(), first.get(), second.get()};
  device().launch(*kernel, {.buffers = buffers, .scalars = {}, .group_count = {4, 1, 1}});
  first->copy_out(products.data(), 16);
  second->copy_out(sums.data(), 16);
  EXPECT_TRUE(products[0] == 0 && std::signbit(products[0]));
  EXPECT_TRUE(std::isnan(products[1]));
  EXPECT_TRUE(products[3] == 0 && !std::signbit(products[3]));
  EXPECT_TRUE(sums[2] == 0 && !std::signbit(sums[2]));
  EXPECT_EQ(sums[3], 3);
}

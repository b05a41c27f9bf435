// Claims that some driver computes wrongly: VULKAN claims exactly those that the present driver
// computes correctly, and tensor values are correct in both cases. ctest runs this with the
// processor as it is, and with GALLIUM_OVERRIDE_CPU_CAPS, which makes Mesa assume an older one.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/settings.h"
#include "plugrad/plugrad.h"
#include "plugrad/sdk/ir_builder.h"
#include "runtime/runtime.h"
#include "unit/base/temporary_directory.h"

using namespace plugrad;
using namespace plugrad::runtime;
using sdk::IrBuilder;

namespace {

class VulkanSuspects : public testing::Test {
 protected:
  // out[i] = TRUNC(in[i]) by the driver, regardless of the device's claims.
  template <typename Float>
  std::vector<Float> trunc_of(const std::vector<Float>& values, std::uint32_t dtype) {
    const std::uint64_t count = values.size(), bytes = count * sizeof(Float);
    IrBuilder b("trunc");
    b.set_groups(static_cast<std::uint32_t>(count));
    auto in = b.buffer(dtype, count), out = b.buffer(dtype, count), id = b.group_id(0);
    b.store(out, id, b.alu(PGR_OP_TRUNC, {b.load(in, id)}));
    auto kernel = device.compile(b.finish(), "trunc");
    auto given = device.allocate(bytes), taken = device.allocate(bytes);
    given->copy_in(values.data(), bytes);
    Buffer* buffers[] = {given.get(), taken.get()};
    device.launch(*kernel, {.buffers = buffers, .scalars = {}, .group_count = {count, 1, 1}});
    std::vector<Float> got(count);
    taken->copy_out(got.data(), bytes);
    return got;
  }
  TemporaryDirectory cache;
  SettingScope scope{[this](Settings& s) { s.cache_dir = cache.path(); }};
  Registry registry{options_from_settings()};
  runtime::Device& device = registry.find_device("VULKAN");
};

// On both sides of every power of two, up to and beyond the point where fractions vanish.
template <typename Float>
std::vector<Float> near_powers_of_two() {
  std::vector<Float> values = {0, -Float(0), Float(0.5), Float(-0.5), INFINITY, -INFINITY};
  for (int exponent = -3; exponent < 70; ++exponent)
    for (Float offset : {Float(-0.5), Float(0), Float(0.25), Float(0.5)})
      for (Float sign : {Float(1), Float(-1)})
        values.push_back(sign * (std::ldexp(Float(1), exponent) + offset));
  return values;
}

template <typename Float>
bool same_bits(const std::vector<Float>& a, const std::vector<Float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Float)) == 0;
}

template <typename Float>
std::vector<Float> expected_of(std::vector<Float> values) {
  for (Float& value : values) value = std::trunc(value);
  return values;
}

}  // namespace

TEST_F(VulkanSuspects, Trunc_IsClaimedWhereTheDriverComputesIt) {
  const auto singles = near_powers_of_two<float>();
  const auto doubles = near_powers_of_two<double>();
  const std::uint32_t claimed = device.caps().op_dtypes[PGR_OP_TRUNC];
  EXPECT_EQ(claimed >> PGR_DTYPE_F32 & 1,
            same_bits(trunc_of(singles, PGR_DTYPE_F32), expected_of(singles)));
  if (!(device.caps().op_dtypes[PGR_OP_ADD] >> PGR_DTYPE_F64 & 1)) return;
  EXPECT_EQ(claimed >> PGR_DTYPE_F64 & 1,
            same_bits(trunc_of(doubles, PGR_DTYPE_F64), expected_of(doubles)));
}

TEST_F(VulkanSuspects, Trunc_OfATensor_IsRight) {
  const auto singles = near_powers_of_two<float>();
  const auto doubles = near_powers_of_two<double>();
  const auto trunc_there = [](const auto& values) {
    using Float = std::decay_t<decltype(values[0])>;
    return Tensor::from(values, "VULKAN").trunc().template to_vector<Float>();
  };
  EXPECT_TRUE(same_bits(trunc_there(singles), expected_of(singles)));
  EXPECT_TRUE(same_bits(trunc_there(doubles), expected_of(doubles)));
}

// Device properties as the host reads them.
#include "runtime/device/device_facts.h"

#include <gtest/gtest.h>

#include "plugrad/error.h"

namespace plugrad::runtime {
namespace {

pgr_tensor_core tile(uint32_t kind, uint32_t dtype) {
  pgr_tensor_core core;
  PGR_INIT(core, TENSOR_CORE);
  core.kind = kind;
  core.n = core.m = core.k = 8;
  core.threads = 4;
  core.dtype_in = dtype;
  core.dtype_out = PGR_DTYPE_F32;
  return core;
}

// Kernels refer to tensor cores by their index in the plugin's table.
TEST(DeviceFacts, TensorCoresOfALaterMinorKeepTheirNumbers) {
  const pgr_tensor_core theirs[] = {tile(7, PGR_DTYPE_F16), tile(0, 40), tile(0, PGR_DTYPE_BF16)};
  pgr_device_caps caps;
  PGR_INIT(caps, DEVICE_CAPS);
  caps.tensor_cores = theirs;
  caps.tensor_core_count = 3;
  caps.tensor_core_stride = sizeof(pgr_tensor_core);
  std::vector<pgr_tensor_core> ours;
  check_caps("ACME:0", caps, ours);
  ASSERT_EQ(caps.tensor_core_count, 3u);
  EXPECT_NE(caps.tensor_cores[0].kind, PGR_TENSOR_CORE_LANES);
  EXPECT_NE(caps.tensor_cores[1].kind, PGR_TENSOR_CORE_LANES);
  EXPECT_EQ(caps.tensor_cores[2].kind, PGR_TENSOR_CORE_LANES);
  EXPECT_EQ(caps.tensor_cores[2].dtype_in, uint32_t{PGR_DTYPE_BF16});
}

TEST(DeviceFacts, FewerParametersThanEveryKernelMayHaveAreRefused) {
  for (const uint32_t count : {0u, 1u, 2u, 7u, 8u}) {
    pgr_device_caps caps;
    PGR_INIT(caps, DEVICE_CAPS);
    caps.max_params = count;
    std::vector<pgr_tensor_core> none;
    if (count == 0 || count >= 8)
      EXPECT_NO_THROW(check_caps("ACME:0", caps, none)) << count;
    else
      EXPECT_THROW(check_caps("ACME:0", caps, none), Error) << count;
  }
}

TEST(DeviceFacts, BanksThatCannotBeAreUnknown) {
  const auto banks = [](uint32_t count, uint32_t bytes) {
    pgr_device_caps caps;
    PGR_INIT(caps, DEVICE_CAPS);
    caps.local_banks = count;
    caps.local_bank_bytes = bytes;
    std::vector<pgr_tensor_core> none;
    check_caps("ACME:0", caps, none);
    return caps.local_banks;
  };
  EXPECT_EQ(banks(32, 4), 32u);
  EXPECT_EQ(banks(32, 0), 0u);
  EXPECT_EQ(banks(UINT32_MAX, 4), 0u);
}

// A longer record of a later minor is read by its stride.
TEST(DeviceFacts, TensorCoresAreReadByTheirStride) {
  struct Later {
    pgr_tensor_core base;
    uint64_t added;
  };
  const Later theirs[] = {{tile(0, PGR_DTYPE_F16), 1}, {tile(0, PGR_DTYPE_BF16), 2}};
  pgr_device_caps caps;
  PGR_INIT(caps, DEVICE_CAPS);
  caps.tensor_cores = &theirs[0].base;
  caps.tensor_core_count = 2;
  caps.tensor_core_stride = sizeof(Later);
  std::vector<pgr_tensor_core> ours;
  check_caps("ACME:0", caps, ours);
  ASSERT_EQ(caps.tensor_core_stride, sizeof(pgr_tensor_core));
  EXPECT_EQ(caps.tensor_cores[1].dtype_in, uint32_t{PGR_DTYPE_BF16});
}

}  // namespace
}  // namespace plugrad::runtime

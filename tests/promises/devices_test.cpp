// Statements of the documents about devices.
#include <gtest/gtest.h>

#include <sstream>

#include "plugrad/device.h"
#include "plugrad/plugrad.h"

namespace plugrad {
namespace {

class Devices : public testing::Test {
 protected:
  void TearDown() override { Device::set_default_device(before_); }
  std::string before_ = Device::default_device();
};

TEST_F(Devices, a_tensor_prints_its_device) {
  for (const char* device : {"CPU", "REFERENCE"}) {
    std::ostringstream out;
    out << Tensor::from({1, 2, 3}, device);
    EXPECT_NE(out.str().find(device), std::string::npos) << out.str();
  }
}

TEST_F(Devices, the_default_can_be_read_and_set) {
  Device::set_default_device("REFERENCE");
  EXPECT_EQ(Device::default_device(), "REFERENCE");
  EXPECT_EQ(Tensor::ones({2}).contiguous().realize().device(), "REFERENCE");
  Device::set_default_device("CPU");
  EXPECT_EQ(Device::default_device(), "CPU");
  EXPECT_EQ(Tensor::from({1}).device(), "CPU");
}

TEST_F(Devices, a_tensor_that_moves_keeps_its_values) {
  const std::vector<float> values = {1.5f, -0.0f, 3e38f, 1e-40f};
  const Tensor here = Tensor::from(values, "CPU"), there = here.to("REFERENCE");
  EXPECT_EQ(there.device(), "REFERENCE");
  EXPECT_EQ(there.to_bytes(), here.to_bytes());
  EXPECT_EQ((there * 2).to("CPU").to_vector<float>(), (here * 2).to_vector<float>());
}

}  // namespace
}  // namespace plugrad

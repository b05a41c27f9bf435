// Copies between any two devices: every dtype that both store; sizes that are copied at once,
// mapped and in pieces; order of copies and kernels on both sides.
#include <gtest/gtest.h>

#include <random>

#include "devices/at_hand.h"
#include "engine/session.h"
#include "plugrad/functional.h"
#include "plugrad/optim.h"
#include "plugrad/tensor.h"
#include "tensor/handles.h"

using namespace plugrad;

namespace {

using Bytes = std::vector<std::byte>;

Bytes random_bytes(size_t count, DType dtype) {
  std::mt19937 random(static_cast<unsigned>(count) * 31 + static_cast<unsigned>(dtype));
  Bytes bytes(count);
  for (std::byte& b : bytes) b = std::byte(dtype == DType::Bool ? random() & 1 : random() & 255);
  return bytes;
}

Bytes read(const Tensor& t, size_t count) {
  Bytes bytes(count);
  engine::Session::current().read(*tensor::state_of(t), bytes);
  return bytes;
}

bool holds_values(const std::string& device, DType dtype) {
  const auto& caps = runtime::Registry::instance().find_device(device).caps();
  return caps.storage_dtypes >> static_cast<uint32_t>(dtype) & 1;
}

struct CopiedPair {
  std::string from, to;
  friend void PrintTo(const CopiedPair& pair, std::ostream* out) { *out << pair.from << pair.to; }
};

std::vector<CopiedPair> pairs() {
  std::vector<CopiedPair> out;
  for (const std::string& from : devices_at_hand())
    for (const std::string& to : devices_at_hand())
      if (from != to) out.push_back({from, to});
  return out;
}

std::vector<DType> storable() {
  std::vector<DType> out;
  for (uint32_t d = PGR_DTYPE_BOOL; d < PGR_DTYPE_COUNT; ++d) out.push_back(static_cast<DType>(d));
  return out;
}

class Copies : public testing::TestWithParam<CopiedPair> {
 protected:
  const std::string from = GetParam().from, to = GetParam().to;
};

TEST_P(Copies, EveryDtypeThatBothHoldArrivesBitByBit) {
  for (const DType dtype : storable()) {
    const int64_t elems = 1000;
    const size_t size = 1000 * size_of(dtype);
    const Bytes bytes = random_bytes(size, dtype);
    SCOPED_TRACE(name_of(dtype));
    const Tensor sent = Tensor::from_bytes(bytes, {elems}, dtype, from).to(to);
    if (holds_values(from, dtype) && holds_values(to, dtype)) {
      EXPECT_EQ(read(sent, size), bytes);
      continue;
    }
    try {
      Tensor(sent).realize();
      ADD_FAILURE() << "a device that does not hold it took it";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Unsupported) << error.what();
      EXPECT_NE(std::string(error.what()).find("does not hold"), std::string::npos);
    }
  }
}

// Larger than a single copy and a piece, and not a multiple of either.
TEST_P(Copies, LargeValuesArrive) {
  for (const int64_t elems : {(1 << 18) + 1, (1 << 20) + 7, (5 << 19) + 3}) {
    const size_t size = static_cast<size_t>(elems) * 4;
    const Bytes bytes = random_bytes(size, DType::I32);
    const Tensor sent = Tensor::from_bytes(bytes, {elems}, DType::I32, from).to(to);
    EXPECT_TRUE(read(sent, size) == bytes) << elems;
  }
}

// One plan in which kernels need copies and copies need kernels.
TEST_P(Copies, ArriveInOrderWithKernelsOnBothSides) {
  for (const int64_t elems : {5, 300'000}) {
    Tensor x = Tensor::full({elems}, 1.0f, DType::F32, from).contiguous();
    for (int round = 0; round < 6; ++round) x = (x * 2 + 1).to(round % 2 ? from : to);
    const std::vector<float> got = (x + 0).to_vector<float>();
    EXPECT_EQ(std::ranges::count(got, 127.0f), elems);
  }
}

// Memory freed after a copy is reused immediately.
TEST_P(Copies, MemoryIsUsedAgainOnlyWhenTheCopyIsDone) {
  for (int round = 0; round < 20; ++round) {
    Tensor source =
        (Tensor::full({70'000}, static_cast<float>(round), DType::F32, from) + 1).contiguous();
    Tensor sent = source.to(to);
    sent.realize();
    source = Tensor();
    Tensor other = (Tensor::full({70'000}, -1.0f, DType::F32, from) * 3).contiguous();
    other.realize();
    const std::vector<float> got = sent.to_vector<float>();
    EXPECT_EQ(std::ranges::count(got, static_cast<float>(round + 1)), 70'000);
  }
}

// One layer per device; gradients and optimiser state are on the parameter's device.
std::vector<double> train(const std::string& first, const std::string& second) {
  const auto values = [](int64_t count, double step) {
    std::vector<float> out;
    for (int64_t i = 0; i < count; ++i)
      out.push_back(static_cast<float>(std::sin(step * static_cast<double>(i))));
    return out;
  };
  Tensor a = Tensor::from(values(12, 0.7), {4, 3}, first).requires_grad_();
  Tensor b = Tensor::from(values(6, 1.3), {3, 2}, second).requires_grad_();
  const Tensor x = Tensor::from(values(20, 0.3), {5, 4}, first);
  optim::Adam adam({a, b}, {.lr = 0.125});
  std::vector<double> losses;
  for (int step = 0; step < 5; ++step) {
    adam.zero_grad();
    Tensor loss = matmul(matmul(x, a).relu().to(second), b).square().mean();
    loss.backward();
    optim::clip_grad_norm({a, b}, 0.5);
    adam.step();
    losses.push_back(loss.item<double>());
  }
  return losses;
}

// Clipping sums the gradients of both.
TEST_P(Copies, GradientsAndOptimisersWorkAcrossDevices) {
  const std::vector<double> wanted = train(from, from), got = train(from, to);
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-4) << i;
}

INSTANTIATE_TEST_SUITE_P(Devices, Copies, testing::ValuesIn(pairs()), [](const auto& tested) {
  return test_name(tested.param.from) + "_to_" + test_name(tested.param.to);
});

}  // namespace

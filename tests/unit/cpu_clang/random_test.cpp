// Random kernels: machine code against the interpreter, compared bitwise.
#include <gtest/gtest.h>

#include <cmath>

#include "plugrad/sdk/interpreter.h"
#include "unit/cpu_clang/cpu_device.h"
#include "unit/cpu_clang/random_kernel.h"

namespace plugrad::testing {
namespace {

using Contents = std::vector<std::vector<std::byte>>;

void interpret(const std::vector<std::byte>& block, Contents& contents) {
  std::vector<sdk::InterpreterBuffer> buffers;
  for (auto& bytes : contents) buffers.push_back({bytes.data(), bytes.size()});
  sdk::InterpreterLaunch launch;
  launch.buffers = buffers;
  launch.group_count = {2, 1, 1};
  sdk::Interpreter(sdk::decode_ir(block)).run(launch);
}

void run_on_cpu(CpuDevice& cpu, const std::string& source, Contents& contents) {
  std::vector<std::unique_ptr<Buffer<std::byte>>> buffers;
  std::vector<pgr_buffer*> handles;
  for (auto& bytes : contents) {
    buffers.push_back(std::make_unique<Buffer<std::byte>>(cpu, bytes));
    handles.push_back(buffers.back()->handle);
  }
  Program(cpu, cpu.compile(source), "k").run(handles, {}, 2);
  for (size_t i = 0; i < contents.size(); ++i) contents[i] = buffers[i]->values();
}

// Equal bits, or both NaN.
bool is_equal(uint32_t dtype, const std::byte* a, const std::byte* b) {
  const uint32_t size = sdk::dtype_size(dtype);
  if (std::memcmp(a, b, size) == 0) return true;
  if (!sdk::dtype_info(dtype)->is_float) return false;
  uint64_t one = 0, other = 0;
  std::memcpy(&one, a, size);
  std::memcpy(&other, b, size);
  return std::isnan(sdk::decode_float(dtype, one)) && std::isnan(sdk::decode_float(dtype, other));
}

// The first difference of the contents; empty if they are equal.
std::string difference(const Contents& want, const Contents& got) {
  for (size_t p = 0; p < want.size(); ++p) {
    const uint32_t dtype = RandomKernel::dtype_of_param(p), size = sdk::dtype_size(dtype);
    for (uint64_t i = 0; i < RandomKernel::kElems; ++i)
      if (!is_equal(dtype, &want[p][i * size], &got[p][i * size]))
        return "parameter " + std::to_string(p) + " (" + std::string(sdk::dtype_name(dtype)) +
               ") element " + std::to_string(i);
  }
  return {};
}

class CpuRandomKernels : public ::testing::TestWithParam<const char*> {};

TEST_P(CpuRandomKernels, AgreeWithTheInterpreter) {
  CpuDevice cpu(GetParam());
  const pgr_device_caps caps = cpu.caps();
  for (uint32_t seed = 1; seed <= PLUGRAD_RANDOM_KERNELS; ++seed) {
    RandomKernel kernel(seed, caps);
    const auto block = kernel.block();
    Contents want = kernel.contents(), got = want;
    std::string source;
    try {
      interpret(block, want);
      source = cpu.render(block);
      run_on_cpu(cpu, source, got);
    } catch (const std::exception& error) {
      FAIL() << "seed " << seed << ": " << error.what() << "\n" << source;
    }
    ASSERT_EQ(difference(want, got), "") << "seed " << seed << "\n"
                                         << sdk::print_ir(sdk::decode_ir(block)) << source;
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, CpuRandomKernels,
                         ::testing::Values("native", "x86-64-v3", "x86-64-v2", "x86-64"));

}  // namespace
}  // namespace plugrad::testing

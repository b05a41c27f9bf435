#include "conformance/levels/kernels.h"

#include <algorithm>
#include <chrono>

#include "plugrad/sdk/ir_builder.h"

namespace plugrad::conformance {
namespace {

using sdk::IrBuilder;
// Each step is slow by itself, because some drivers abort loops after 65,535 iterations: a chain of
// divisions by 1, where no compiler can prove the divisor to be 1 or constant.
constexpr int kPartsOfStep = 256;
constexpr uint64_t kMostSteps = 65'000;
constexpr double kCalibrationMs = 8;
constexpr int32_t kFactor = 1664525, kIncrement = 1013904223;

int32_t low_i32(uint64_t bits) {
  return static_cast<int32_t>(static_cast<uint32_t>(bits));
}

}  // namespace

std::vector<std::byte> spread_kernel(uint64_t x, uint64_t y, uint64_t z) {
  IrBuilder b("spread");
  b.set_groups(x, y, z);
  auto out = b.buffer(I32, x * y * z, PGR_PARAM_WRITE);
  auto in = b.buffer(I32, x * y * z, PGR_PARAM_READ);
  auto factor = b.scalar(I32, INT32_MIN, INT32_MAX);
  auto number = [&](uint64_t value) { return b.constant_int(I32, static_cast<int64_t>(value)); };
  auto row = b.alu(PGR_OP_ADD, {b.group_id(1), b.alu(PGR_OP_MUL, {b.group_id(2), number(y)})});
  auto g = b.alu(PGR_OP_ADD, {b.group_id(0), b.alu(PGR_OP_MUL, {row, number(x)})});
  auto product = b.alu(PGR_OP_MUL, {b.load(in, g), factor});
  b.store(out, g, b.alu(PGR_OP_ADD, {product, g}));
  return b.finish();
}

std::vector<int32_t> spread_result(std::span<const int32_t> in, int32_t scalar) {
  std::vector<int32_t> out(in.size());
  for (size_t g = 0; g < in.size(); ++g)
    out[g] = low_i32(static_cast<uint64_t>(int64_t{in[g]} * scalar) + g);
  return out;
}

std::vector<std::byte> slow_kernel() {
  IrBuilder b("slow");
  auto value = b.buffer(I32, 1);
  auto steps = b.scalar(I32, 0, INT32_MAX);
  auto zero = b.constant_int(I32, 0);
  auto state = b.array(PGR_SPACE_PRIVATE, I32, 1);
  auto factor = b.constant_int(I32, kFactor), increment = b.constant_int(I32, kIncrement);
  auto one = b.constant_int(I32, 1);
  auto none = b.alu(PGR_OP_IDIV, {steps, b.constant_int(I32, 1 << 30)});
  b.store(state, zero, b.load(value, zero));
  auto loop = b.loop(zero, steps);
  auto next = b.load(state, zero);
  for (int i = 0; i < kPartsOfStep; ++i) {
    auto sum = b.alu(PGR_OP_ADD, {b.alu(PGR_OP_MUL, {next, factor}), increment});
    auto divisor = b.alu(PGR_OP_ADD, {b.alu(PGR_OP_AND, {next, none}), one});
    next = b.alu(PGR_OP_IDIV, {sum, divisor});
  }
  b.store(state, zero, next);
  b.end_loop(loop);
  b.store(value, zero, b.load(state, zero));
  return b.finish();
}

int32_t slow_result(int32_t value, uint64_t steps) {
  steps *= kPartsOfStep;
  // Exponentiation by squaring, so that the expected value is ready before the launch ends.
  uint32_t state = static_cast<uint32_t>(value);
  uint32_t factor = static_cast<uint32_t>(kFactor), increment = static_cast<uint32_t>(kIncrement);
  for (; steps; steps >>= 1) {
    if (steps & 1) state = state * factor + increment;
    increment *= factor + 1;
    factor *= factor;
  }
  return static_cast<int32_t>(state);
}

SlowKernel::SlowKernel(Device& device) : kernel_(device.compile(slow_kernel())) {
  using Clock = std::chrono::steady_clock;
  Buffer value = device.allocate(4, PGR_ALLOC_ZERO);
  const auto milliseconds_of = [&](uint64_t steps) {
    const auto begin = Clock::now();
    device.launch(*kernel_, {.buffers = {value.handle()}, .scalars = {steps}});
    device.synchronize();
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  };
  // Enough steps that launch overhead and scheduling are negligible; the minimum of several runs.
  for (uint64_t steps = 250; steps <= kMostSteps; steps *= 4) {
    double ms = milliseconds_of(steps);
    for (int i = 0; i < 4 && ms > kCalibrationMs; ++i) ms = std::min(ms, milliseconds_of(steps));
    steps_per_ms_ = static_cast<double>(steps) / ms;
    if (ms > kCalibrationMs) return;
  }
}

uint64_t SlowKernel::steps_for(double milliseconds) const {
  return std::clamp<uint64_t>(static_cast<uint64_t>(steps_per_ms_ * milliseconds), 1, kMostSteps);
}

Launch::Launch(const Kernel& used, std::vector<pgr_buffer*> given_buffers,
               std::vector<uint64_t> given_scalars, std::array<uint64_t, 3> groups)
    : kernel(used.handle()), buffers(std::move(given_buffers)), scalars(std::move(given_scalars)) {
  PGR_INIT(desc, LAUNCH_DESC);
  desc.buffers = buffers.data();
  desc.buffer_count = static_cast<uint32_t>(buffers.size());
  desc.scalars = scalars.data();
  desc.scalar_count = static_cast<uint32_t>(scalars.size());
  std::copy(groups.begin(), groups.end(), desc.group_count);
  for (uint32_t& size : desc.local_size) size = 1;
}

pgr_status Launch::try_start(const Tables& t, pgr_error* error) const {
  return t.runner.launch(t.handle, nullptr, kernel, &desc, nullptr, error);
}

void Launch::start(const Tables& t, pgr_queue* queue, uint64_t* time_ns) const {
  expect_ok("runner.launch", [&](pgr_error* error) {
    return t.runner.launch(t.handle, queue, kernel, &desc, time_ns, error);
  });
}

Buffer make_ints(Device& device, std::span<const int32_t> values) {
  Buffer buffer = device.allocate(values.size_bytes());
  buffer.write(std::as_bytes(values));
  return buffer;
}

std::vector<int32_t> read_ints(const Buffer& buffer) {
  std::vector<int32_t> values(buffer.size_bytes() / 4);
  buffer.read(std::as_writable_bytes(std::span(values)));
  return values;
}

std::vector<int32_t> random_ints(size_t count, uint64_t seed) {
  std::vector<int32_t> values(count);
  uint64_t state = seed;
  for (int32_t& value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = low_i32(state >> 32);
  }
  return values;
}

void expect_ints(std::string_view what, std::span<const int32_t> found,
                 std::span<const int32_t> wanted) {
  expect(found.size() == wanted.size(), std::string(what) + ": sizes differ");
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i] != wanted[i])
      throw Failed(std::string(what) + ": element " + std::to_string(i) + " is " +
                   std::to_string(found[i]) + ", not " + std::to_string(wanted[i]));
}

}  // namespace plugrad::conformance

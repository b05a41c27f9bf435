// Tests 64-bit indices, and elements beyond 2^31 if the device has enough memory.
#include <fmt/format.h>

#include <algorithm>

#include "conformance/kernels/shapes/shapes.h"

namespace plugrad::conformance {
namespace {

// Index arithmetic that needs 64 bits on the way to a small index.
void run_wide_indices(Context& context) {
  constexpr int64_t kCount = 100, kFar = int64_t{1} << 35;
  IrBuilder ir("wide_indices");
  ir.set_groups(kCount);
  const Value input = ir.buffer(kI32, kCount, kInput), output = ir.buffer(kI32, kCount, kOutput);
  const Value i = ir.group_id(0, kI64);
  const Value far = ir.alu(PGR_OP_MUL, {i, index_constant(ir, kFar, kI64)});
  const Value back = ir.alu(PGR_OP_SHR, {far, index_constant(ir, 35, kI64)});
  const Value from =
      ir.alu(PGR_OP_SUB, {index_constant(ir, kFar + kCount - 1, kI64),
                          ir.alu(PGR_OP_ADD, {back, index_constant(ir, kFar, kI64)})});
  ir.store(output, back, ir.load(input, from));
  Random random(context.seed());
  const std::vector<uint64_t> values = mixed_values(kI32, kCount, random);
  std::vector<Bytes> buffers = {pack(kI32, values), pack(kI32, std::vector<uint64_t>(kCount))};
  run_block(context, ir.finish(), buffers);
  expect_equal(kI32, std::vector<uint64_t>(values.rbegin(), values.rend()),
               unpack(kI32, buffers[1]), "indices computed in 64 bits");
}

// More than 2^32 groups would take too long, but products of 64-bit ids must not be truncated.
constexpr uint64_t kStride = (uint64_t{1} << 31) / 1000;
constexpr uint64_t kTouched = 1100;  // the last one is beyond 2^31
constexpr uint64_t kLargeElements = kStride * kTouched;

Bytes large_block(uint32_t dtype) {
  IrBuilder ir("large");
  ir.set_groups(kTouched);
  const Value input = ir.buffer(dtype, kLargeElements, kInput),
              output = ir.buffer(dtype, kLargeElements, kOutput);
  const Value at = ir.alu(PGR_OP_MUL, {ir.group_id(0, kI64), index_constant(ir, kStride, kI64)});
  ir.store(output, at, ir.load(input, at));
  return ir.finish();
}

Buffer allocate_large(Device& device, uint64_t bytes) {
  if (device.caps().max_buffer_bytes < bytes || device.info().memory_bytes < 3 * bytes)
    throw Unsupported(fmt::format("the device has no room for two buffers of {} bytes", bytes));
  return device.allocate(bytes);
}

// One byte an element: two buffers of 2.2 GB.
void run_large(Context& context) {
  constexpr uint32_t dtype = PGR_DTYPE_U8;
  const Bytes block = large_block(dtype);
  context.about(block);
  Device& device = context.device();
  device.require_claims(block);
  Buffer input = allocate_large(device, kLargeElements),
         output = allocate_large(device, kLargeElements);
  Random random(context.seed());
  std::vector<std::byte> values(kTouched);
  for (uint64_t i = 0; i < kTouched; ++i) {
    values[i] = static_cast<std::byte>(random());
    input.write(std::span(&values[i], 1), i * kStride);
    const std::byte other = ~values[i];
    output.write(std::span(&other, 1), i * kStride);
  }
  const auto kernel = device.compile(block);
  KernelLaunch launch;
  launch.buffers = {input.handle(), output.handle()};
  launch.group_count = {kTouched, 1, 1};
  device.launch(*kernel, launch);
  for (uint64_t i = 0; i < kTouched; ++i) {
    std::byte got{};
    output.read(std::span(&got, 1), i * kStride);
    expect(got == values[i], fmt::format("element {} is {}, expected {}", i * kStride,
                                         static_cast<int>(got), static_cast<int>(values[i])));
  }
}

// Indices of f32 elements: at the ends, and on both sides of each likely limit of a driver.
std::vector<uint64_t> places_of(uint64_t elements) {
  std::vector<uint64_t> places = {0, elements - 1};
  for (const uint64_t bytes : {uint64_t{1} << 27, uint64_t{1} << 30, uint64_t{1} << 31,
                               uint64_t{1} << 32, uint64_t{5} << 30})
    if (bytes / 4 < elements) places.insert(places.end(), {bytes / 4 - 1, bytes / 4});
  return places;
}

// out[place[g]] = in[place[g]] * 3 in buffers of `bytes`.
void run_far_places(Context& context, uint64_t bytes) {
  constexpr uint32_t f32 = PGR_DTYPE_F32;
  Device& device = context.device();
  const uint64_t elements = bytes / 4;
  const std::vector<uint64_t> places = places_of(elements);
  IrBuilder ir("far_places");
  ir.set_groups(places.size());
  const Value input = ir.buffer(f32, elements, kInput), output = ir.buffer(f32, elements, kOutput);
  const Value where = ir.buffer(kI64, places.size(), kInput);
  const Value at = ir.load(where, ir.group_id(0));
  ir.store(output, at, ir.alu(PGR_OP_MUL, {ir.load(input, at), ir.constant_float(f32, 3)}));
  const Bytes block = ir.finish();
  context.about(block);
  device.require_claims(block);
  Buffer in = allocate_large(device, bytes), out = allocate_large(device, bytes);
  Buffer list = device.allocate(places.size() * 8);
  list.write(std::as_bytes(std::span(places)));
  const auto value = [](size_t i) { return static_cast<float>(i) + 0.5f; };
  for (size_t i = 0; i < places.size(); ++i) {
    const float before[2] = {value(i), -1};
    in.write(std::as_bytes(std::span(before, 1)), places[i] * 4);
    out.write(std::as_bytes(std::span(before + 1, 1)), places[i] * 4);
  }
  const auto kernel = device.compile(block);
  KernelLaunch launch;
  launch.buffers = {in.handle(), out.handle(), list.handle()};
  launch.group_count = {places.size(), 1, 1};
  device.launch(*kernel, launch);
  for (size_t i = 0; i < places.size(); ++i) {
    float got = 0;
    out.read(std::as_writable_bytes(std::span(&got, 1)), places[i] * 4);
    expect(got == 3 * value(i), fmt::format("element {} of {} is {}, expected {}", places[i],
                                            elements, got, 3 * value(i)));
  }
}

// Limited by the device, a third of its memory, and the test's time.
void run_largest(Context& context) {
  const uint64_t most =
      std::min(context.device().caps().max_buffer_bytes, context.device().info().memory_bytes / 3);
  run_far_places(context, std::min(most, (uint64_t{5} << 30) + 64) / 64 * 64);
}

void add_large(Tests& tests, const char* id, bool quick, std::function<void(Context&)> run) {
  Test test;
  test.id = id;
  test.level = Level::L2;
  test.quick = quick;
  test.alone = true;  // needs the memory of many tests
  test.limit_seconds = 120;
  test.run = std::move(run);
  tests.push_back(std::move(test));
}

}  // namespace

void add_large_tests(Tests& tests) {
  Test wide;
  wide.id = "l2.index.i64";
  wide.level = Level::L2;
  wide.run = run_wide_indices;
  tests.push_back(std::move(wide));
  // The maximum storage buffer range of many drivers.
  add_large(tests, "l2.index.past_128_mib", true,
            [](Context& context) { run_far_places(context, (uint64_t{128} << 20) + 4096); });
  add_large(tests, "l2.index.past_2_31", false, run_large);
  add_large(tests, "l2.index.largest_buffer", false, run_largest);
}

}  // namespace plugrad::conformance

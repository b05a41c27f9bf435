// Tests the arguments of a launch: group counts, scalars, aliasing buffers, many buffers.
#include <fmt/format.h>

#include <algorithm>

#include "conformance/kernels/elements.h"
#include "conformance/kernels/mandatory/core.h"

namespace plugrad::conformance {
namespace {

constexpr uint32_t kReal32 = PGR_DTYPE_F32, kBool = PGR_DTYPE_BOOL;

std::vector<uint64_t> sevens(size_t count) {
  return std::vector<uint64_t>(count, 7);
}

// Group ids along three axes; each group writes its own element.
void run_group_axes(Context& context) {
  constexpr int64_t kCounts[] = {7, 5, 3};
  IrBuilder ir("group_axes");
  ir.set_groups(kCounts[0], kCounts[1], kCounts[2]);
  const Value output = ir.buffer(kI32, 7 * 5 * 3, kOutput);
  Value index = ir.group_id(2);
  for (uint32_t axis : {1u, 0u}) {
    index = ir.alu(PGR_OP_MUL, {index, index_constant(ir, kCounts[axis])});
    index = ir.alu(PGR_OP_ADD, {index, ir.group_id(axis)});
  }
  const Value code = ir.alu(
      PGR_OP_ADD,
      {ir.alu(PGR_OP_MUL, {ir.group_id(0), index_constant(ir, 10000)}),
       ir.alu(PGR_OP_ADD,
              {ir.alu(PGR_OP_MUL, {ir.group_id(1), index_constant(ir, 100)}), ir.group_id(2)})});
  ir.store(output, index, code);
  std::vector<uint64_t> want;
  for (uint64_t z = 0; z < 3; ++z)
    for (uint64_t y = 0; y < 5; ++y)
      for (uint64_t x = 0; x < 7; ++x) want.push_back(x * 10000 + y * 100 + z);
  std::vector<Bytes> buffers = {pack(kI32, sevens(want.size()))};
  run_block(context, ir.finish(), buffers);
  expect_equal(kI32, want, unpack(kI32, buffers[0]), "ids of groups along three axes");
}

// A kernel compiled once and launched repeatedly; its output is filled with 7 before each launch.
class Repeated {
 public:
  Repeated(Context& context, const Bytes& block, uint64_t count)
      : device_(context.device()), count_(count), output_(prepare(context, block, count)) {
    kernel_ = device_.compile(block);
  }
  std::vector<uint64_t> launch(std::array<uint64_t, 3> groups, std::vector<uint64_t> scalars = {}) {
    output_.write(pack(kI32, sevens(count_)));
    KernelLaunch launch;
    launch.buffers = {output_.handle()};
    launch.scalars = std::move(scalars);
    launch.group_count = groups;
    device_.launch(*kernel_, launch);
    Bytes bytes(count_ * 4);
    output_.read(bytes);
    return unpack(kI32, bytes);
  }

 private:
  static Buffer prepare(Context& context, const Bytes& block, uint64_t count) {
    context.about(block);
    context.device().require_claims(block);
    return context.device().allocate(count * 4);
  }
  Device& device_;
  uint64_t count_;
  Buffer output_;
  std::unique_ptr<Kernel> kernel_;
};

// A launch may use fewer groups than planned, along each axis, and zero.
void run_fewer(Context& context) {
  IrBuilder ir("fewer_groups");
  ir.set_groups(6, 4, 2);
  const Value output = ir.buffer(kI32, 48, kOutput);
  Value index = ir.alu(PGR_OP_MUL, {ir.group_id(2), index_constant(ir, 4)});
  index = ir.alu(PGR_OP_MUL, {ir.alu(PGR_OP_ADD, {index, ir.group_id(1)}), index_constant(ir, 6)});
  ir.store(output, ir.alu(PGR_OP_ADD, {index, ir.group_id(0)}), index_constant(ir, 1));
  Repeated kernel(context, ir.finish(), 48);
  for (const std::array<uint64_t, 3>& groups : {std::array<uint64_t, 3>{6, 4, 2},
                                                {5, 3, 1},
                                                {1, 1, 1},
                                                {0, 4, 2},
                                                {6, 0, 2},
                                                {6, 4, 0},
                                                {6, 1, 2}}) {
    std::vector<uint64_t> want = sevens(48);
    for (uint64_t z = 0; z < groups[2]; ++z)
      for (uint64_t y = 0; y < groups[1]; ++y)
        for (uint64_t x = 0; x < groups[0]; ++x) want[(z * 4 + y) * 6 + x] = 1;
    expect_equal(kI32, want, kernel.launch(groups),
                 fmt::format("a launch of {} x {} x {} groups of 6 x 4 x 2", groups[0], groups[1],
                             groups[2]));
  }
}

// n elements in groups of 32: the last group stops at the scalar n.
void run_tails(Context& context) {
  constexpr int64_t kMost = 300, kGroup = 32;
  IrBuilder ir("tails");
  ir.set_groups((kMost + kGroup - 1) / kGroup);
  const Value output = ir.buffer(kI32, kMost, kOutput);
  const Value n = ir.scalar(kI32, 0, kMost);
  const Value base = ir.alu(PGR_OP_MUL, {ir.group_id(0), index_constant(ir, kGroup)});
  const Value loop = ir.loop(index_constant(ir, 0), index_constant(ir, kGroup));
  const Value at = ir.alu(PGR_OP_ADD, {base, loop});
  ir.store_gated(output, at, ir.alu(PGR_OP_MUL, {at, at}), ir.alu(PGR_OP_CMPLT, {at, n}));
  ir.end_loop(loop);
  Repeated kernel(context, ir.finish(), kMost);
  for (uint64_t count : {0, 1, 2, 3, 31, 32, 33, 61, 127, 128, 251, 299, 300}) {
    std::vector<uint64_t> want = sevens(kMost);
    for (uint64_t i = 0; i < count; ++i) want[i] = i * i;
    expect_equal(kI32, want, kernel.launch({(count + kGroup - 1) / kGroup, 1, 1}, {count}),
                 fmt::format("{} elements", count));
  }
}

// Scalars of each dtype, at their extremes, between buffers.
void run_scalars(Context& context) {
  IrBuilder ir("scalars");
  const Value a = ir.scalar(kI32, INT32_MIN, INT32_MAX);
  const Value output = ir.buffer(kI32, 4, kOutput);
  const Value b = ir.scalar(kReal32, 0, 0), c = ir.scalar(kBool, 0, 1);
  const Value second = ir.buffer(kReal32, 2, kOutput);
  const Value d = ir.scalar(kI32, -5, 5);
  ir.store(output, index_constant(ir, 0), a);
  ir.store(output, index_constant(ir, 1), d);
  ir.store(output, index_constant(ir, 2), ir.alu(PGR_OP_WHERE, {c, a, d}));
  ir.store(output, index_constant(ir, 3), ir.cast(c, kI32));
  ir.store(second, index_constant(ir, 0), b);
  ir.store(second, index_constant(ir, 1), ir.alu(PGR_OP_NEG, {b}));
  const Bytes block = ir.finish();
  struct Row {
    int64_t first;
    uint64_t real, flag;
    int64_t last;
  };
  for (const Row& row : {Row{INT32_MIN, 0x3fc00000, 0, -5}, Row{INT32_MAX, 0x80000000, 1, 5},
                         Row{-1, 0x00000001, 1, 0}, Row{0, 0x7f800000, 0, 4}}) {
    const std::vector<uint64_t> scalars = {static_cast<uint64_t>(row.first), row.real, row.flag,
                                           static_cast<uint64_t>(row.last)};
    std::vector<Bytes> buffers = {pack(kI32, sevens(4)), pack(kReal32, sevens(2))};
    run_block(context, block, buffers, scalars);
    const uint64_t low = scalars[0] & 0xffffffff, high = scalars[3] & 0xffffffff;
    expect_equal(kI32, std::vector{low, high, row.flag ? low : high, row.flag},
                 unpack(kI32, buffers[0]), "scalars of i32 and bool");
    expect_equal(kReal32, std::vector<uint64_t>{row.real, row.real ^ 0x80000000u},
                 unpack(kReal32, buffers[1]), "a scalar of f32");
  }
}

// Two parameters without NO_ALIAS may be one buffer: each step reads the previous store.
void run_alias(Context& context) {
  constexpr int64_t kSize = 200;
  IrBuilder ir("alias");
  const Value from = ir.buffer(kI32, kSize, PGR_PARAM_READ);
  const Value to = ir.buffer(kI32, kSize, PGR_PARAM_WRITE);
  const Value loop = ir.loop(index_constant(ir, 0), index_constant(ir, kSize - 1));
  const Value next = ir.alu(PGR_OP_ADD, {loop, index_constant(ir, 1)});
  const Value value = ir.alu(PGR_OP_MUL, {ir.load(from, loop), index_constant(ir, 3)});
  ir.store(to, next, ir.alu(PGR_OP_ADD, {value, loop}));
  ir.end_loop(loop);
  const Bytes block = ir.finish();
  context.about(block);
  Device& device = context.device();
  device.require_claims(block);
  Buffer buffer = device.allocate(kSize * 4);
  std::vector<uint64_t> want = sevens(kSize);
  buffer.write(pack(kI32, want));
  for (size_t i = 0; i + 1 < want.size(); ++i) want[i + 1] = (want[i] * 3 + i) & 0xffffffff;
  const auto kernel = device.compile(block);
  KernelLaunch launch;
  launch.buffers = {buffer.handle(), buffer.handle()};
  device.launch(*kernel, launch);
  Bytes bytes(kSize * 4);
  buffer.read(bytes);
  expect_equal(kI32, want, unpack(kI32, bytes), "one buffer as two parameters that may alias");
}

// A bool in memory is 0 or 1; any other byte reads as true and is stored as 1.
void run_bool_bytes(Context& context) {
  const std::vector<uint64_t> bytes = {0, 1, 2, 3, 0x7f, 0x80, 0xfe, 0xff, 0, 16};
  IrBuilder ir("bool_bytes");
  const Value input = ir.buffer(kBool, bytes.size(), kInput);
  const Value numbers = ir.buffer(kI32, bytes.size(), kOutput);
  const Value copies = ir.buffer(kBool, bytes.size(), kOutput);
  const Value equal = ir.buffer(kBool, bytes.size(), kOutput);
  const Value loop =
      ir.loop(index_constant(ir, 0), index_constant(ir, static_cast<int64_t>(bytes.size())));
  const Value value = ir.load(input, loop);
  ir.store(numbers, loop, ir.cast(value, kI32));
  ir.store(copies, loop, value);
  ir.store(equal, loop, ir.alu(PGR_OP_CMPEQ, {value, ir.constant_int(kBool, 1)}));
  ir.end_loop(loop);
  std::vector<uint64_t> want;
  for (uint64_t byte : bytes) want.push_back(byte != 0);
  std::vector<Bytes> buffers = {pack(kBool, bytes), pack(kI32, want), pack(kBool, bytes),
                                pack(kBool, bytes)};
  std::fill(buffers[1].begin(), buffers[1].end(), std::byte{9});
  run_block(context, ir.finish(), buffers);
  expect_equal(kI32, want, unpack(kI32, buffers[1]), "bytes of bools as numbers");
  expect_equal(kBool, want, unpack(kBool, buffers[2]), "bytes of bools, loaded and stored");
  expect_equal(kBool, want, unpack(kBool, buffers[3]), "bytes of bools, compared with true");
}

// The device's maximum number of buffers, at most 40.
void run_many(Context& context) {
  const auto count = std::min<uint32_t>(context.device().caps().max_params, 40);
  expect(count >= 8, fmt::format("caps.max_params is {}; kernels need 8 at least", count));
  IrBuilder ir("many_parameters");
  std::vector<Value> params;
  for (uint32_t i = 0; i + 1 < count; ++i) params.push_back(ir.buffer(kI32, 3, kInput));
  const Value output = ir.buffer(kI32, 3, kOutput);
  const Value loop = ir.loop(index_constant(ir, 0), index_constant(ir, 3));
  Value sum = index_constant(ir, 0);
  for (Value param : params)
    sum = ir.alu(PGR_OP_ADD,
                 {ir.alu(PGR_OP_MUL, {sum, index_constant(ir, 3)}), ir.load(param, loop)});
  ir.store(output, loop, sum);
  ir.end_loop(loop);
  std::vector<Bytes> buffers;
  std::vector<uint64_t> want(3);
  for (uint64_t i = 0; i + 1 < count; ++i) {
    const std::vector<uint64_t> values = {i, i * i, 1000 - i};
    buffers.push_back(pack(kI32, values));
    for (size_t k = 0; k < 3; ++k) want[k] = (want[k] * 3 + values[k]) & 0xffffffff;
  }
  buffers.push_back(pack(kI32, sevens(3)));
  run_block(context, ir.finish(), buffers);
  expect_equal(kI32, want, unpack(kI32, buffers.back()), "a kernel of many parameters");
}

}  // namespace

void add_argument_tests(Tests& tests) {
  add_test(tests, Level::L1, "l1.launch.axes", run_group_axes);
  add_test(tests, Level::L1, "l1.launch.fewer_groups", run_fewer);
  add_test(tests, Level::L1, "l1.launch.tails", run_tails);
  add_test(tests, Level::L1, "l1.launch.scalars", run_scalars);
  add_test(tests, Level::L1, "l1.launch.alias", run_alias);
  add_test(tests, Level::L1, "l1.launch.many_parameters", run_many);
  add_test(tests, Level::L1, "l1.access.bool_bytes", run_bool_bytes);
}

}  // namespace plugrad::conformance

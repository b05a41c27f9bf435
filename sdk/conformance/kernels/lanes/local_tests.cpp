// Tests communication in a group: local ids, local arrays, barriers. Dropping any barrier changes
// the results.
#include <fmt/format.h>

#include <algorithm>

#include "conformance/kernels/elements.h"
#include "conformance/kernels/lanes/lanes.h"

namespace plugrad::conformance {
namespace {

constexpr int64_t kLocalGroups = 6;

// Group and local ids of a kernel with groups of `size` along axis 0, and the global index.
struct Ids {
  Value group, local, global;
};
Ids make_ids(IrBuilder& ir, int64_t size) {
  ir.set_groups(kLocalGroups);
  ir.set_local(static_cast<uint32_t>(size));
  const Value group = ir.group_id(0), local = ir.local_id(0);
  const Value base = ir.alu(PGR_OP_MUL, {group, index_constant(ir, size)});
  return {group, local, ir.alu(PGR_OP_ADD, {base, local})};
}

std::vector<uint64_t> make_input(Context& context, uint32_t dtype, int64_t size) {
  Random random(context.seed());
  return tame_values(dtype, static_cast<size_t>(size * kLocalGroups), random);
}

// out[i] = the value loaded by the work-item at the mirrored index.
void run_mirror(Context& context, uint32_t dtype, int64_t size) {
  IrBuilder ir("mirror");
  const Value input = ir.buffer(dtype, static_cast<uint64_t>(size * kLocalGroups), kInput);
  const Value output = ir.buffer(dtype, static_cast<uint64_t>(size * kLocalGroups), kOutput);
  const Value array = ir.array(PGR_SPACE_LOCAL, dtype, static_cast<uint64_t>(size));
  const Ids ids = make_ids(ir, size);
  ir.store(array, ids.local, ir.load(input, ids.global));
  ir.barrier();
  const Value mirrored =
      ir.alu(PGR_OP_ADD, {ir.alu(PGR_OP_NEG, {ids.local}), index_constant(ir, size - 1)});
  ir.store(output, ids.global, ir.load(array, mirrored));
  const std::vector<uint64_t> values = make_input(context, dtype, size);
  std::vector<Bytes> buffers = {pack(dtype, values), pack(dtype, values)};
  run_block(context, ir.finish(), buffers);
  std::vector<uint64_t> want(values.size());
  for (int64_t i = 0; i < size * kLocalGroups; ++i)
    want[static_cast<size_t>(i)] =
        values[static_cast<size_t>(i / size * size + size - 1 - i % size)];
  expect_equal(dtype, want, unpack(dtype, buffers[1]), "neighbours mirrored through local memory");
}

// Tree reduction with a barrier in the loop: one result per group.
void run_tree(Context& context, uint32_t dtype, int64_t size) {
  IrBuilder ir("tree");
  const Value input = ir.buffer(dtype, static_cast<uint64_t>(size * kLocalGroups), kInput);
  const Value output = ir.buffer(dtype, kLocalGroups, kOutput);
  const Value array = ir.array(PGR_SPACE_LOCAL, dtype, static_cast<uint64_t>(size));
  const Ids ids = make_ids(ir, size);
  ir.store(array, ids.local, ir.load(input, ids.global));
  ir.barrier();
  int64_t rounds = 0;
  while ((int64_t{1} << rounds) < size) ++rounds;
  const Value loop = ir.loop(index_constant(ir, 0), index_constant(ir, rounds));
  const Value back =
      ir.alu(PGR_OP_ADD, {ir.alu(PGR_OP_NEG, {loop}), index_constant(ir, rounds - 1)});
  const Value half = ir.alu(PGR_OP_SHL, {index_constant(ir, 1), back});
  const Value opener = ir.begin_if(ir.alu(PGR_OP_CMPLT, {ids.local, half}));
  const Value other = ir.load(array, ir.alu(PGR_OP_ADD, {ids.local, half}));
  ir.store(array, ids.local, ir.alu(PGR_OP_ADD, {ir.load(array, ids.local), other}));
  ir.end_if(opener);
  ir.barrier();
  ir.end_loop(loop);
  const Value first = ir.begin_if(ir.alu(PGR_OP_CMPEQ, {ids.local, index_constant(ir, 0)}));
  ir.store(output, ids.group, ir.load(array, index_constant(ir, 0)));
  ir.end_if(first);
  std::vector<uint64_t> values = make_input(context, dtype, size);
  std::vector<Bytes> buffers = {pack(dtype, values),
                                pack(dtype, std::vector<uint64_t>(kLocalGroups))};
  run_block(context, ir.finish(), buffers);
  const Operation add = make_operation(PGR_OP_ADD, dtype);
  std::vector<uint64_t> want;
  for (int64_t group = 0; group < kLocalGroups; ++group) {
    uint64_t* own = &values[static_cast<size_t>(group * size)];
    for (int64_t width = size / 2; width > 0; width /= 2)
      for (int64_t i = 0; i < width; ++i)
        own[i] = expected_result(add, std::vector{own[i], own[i + width]}).bits;
    want.push_back(own[0]);
  }
  expect_equal(dtype, want, unpack(dtype, buffers[1]), "sums through local memory");
}

// Nine rounds of: read the neighbour, barrier, write own value, barrier.
void run_rotate(Context& context, uint32_t dtype, int64_t size) {
  constexpr int64_t kRounds = 9;
  IrBuilder ir("rotate");
  const Value input = ir.buffer(dtype, static_cast<uint64_t>(size * kLocalGroups), kInput);
  const Value output = ir.buffer(dtype, static_cast<uint64_t>(size * kLocalGroups), kOutput);
  const Value array = ir.array(PGR_SPACE_LOCAL, dtype, static_cast<uint64_t>(size));
  const Ids ids = make_ids(ir, size);
  ir.store(array, ids.local, ir.load(input, ids.global));
  ir.barrier();
  const Value next = ir.alu(PGR_OP_MOD, {ir.alu(PGR_OP_ADD, {ids.local, index_constant(ir, 1)}),
                                         index_constant(ir, size)});
  const Value loop = ir.loop(index_constant(ir, 0), index_constant(ir, kRounds));
  const Value neighbour = ir.load(array, next);
  ir.barrier();
  ir.store(array, ids.local, neighbour);
  ir.barrier();
  ir.end_loop(loop);
  ir.store(output, ids.global, ir.load(array, ids.local));
  const std::vector<uint64_t> values = make_input(context, dtype, size);
  std::vector<Bytes> buffers = {pack(dtype, values), pack(dtype, values)};
  run_block(context, ir.finish(), buffers);
  std::vector<uint64_t> want(values.size());
  for (int64_t i = 0; i < size * kLocalGroups; ++i)
    want[static_cast<size_t>(i)] =
        values[static_cast<size_t>(i / size * size + (i % size + kRounds) % size)];
  expect_equal(dtype, want, unpack(dtype, buffers[1]), "values handed on through local memory");
}

// A barrier also orders buffers: each work-item reads its neighbour's store.
void run_global(Context& context, uint32_t dtype, int64_t size) {
  IrBuilder ir("through_a_buffer");
  const auto count = static_cast<uint64_t>(size * kLocalGroups);
  const Value input = ir.buffer(dtype, count, kInput), middle = ir.buffer(dtype, count, kBoth);
  const Value output = ir.buffer(dtype, count, kOutput);
  const Ids ids = make_ids(ir, size);
  ir.store(middle, ids.global, ir.load(input, ids.global));
  ir.barrier();
  const Value mirrored =
      ir.alu(PGR_OP_ADD, {ir.alu(PGR_OP_NEG, {ids.local}), index_constant(ir, size - 1)});
  const Value base = ir.alu(PGR_OP_MUL, {ids.group, index_constant(ir, size)});
  ir.store(output, ids.global, ir.load(middle, ir.alu(PGR_OP_ADD, {base, mirrored})));
  const std::vector<uint64_t> values = make_input(context, dtype, size);
  const Bytes zeros = pack(dtype, std::vector<uint64_t>(values.size()));
  std::vector<Bytes> buffers = {pack(dtype, values), zeros, zeros};
  run_block(context, ir.finish(), buffers);
  std::vector<uint64_t> want(values.size());
  for (int64_t i = 0; i < size * kLocalGroups; ++i)
    want[static_cast<size_t>(i)] =
        values[static_cast<size_t>(i / size * size + size - 1 - i % size)];
  expect_equal(dtype, want, unpack(dtype, buffers[2]), "values handed on through a buffer");
}

// Group and local ids along three axes.
void run_local_axes(Context& context) {
  constexpr int64_t kLocal[] = {4, 3, 2}, kCounts[] = {3, 2, 2};
  IrBuilder ir("axes");
  ir.set_groups(kCounts[0], kCounts[1], kCounts[2]);
  ir.set_local(kLocal[0], kLocal[1], kLocal[2]);
  constexpr uint64_t kItems = 4 * 3 * 2 * 3 * 2 * 2;
  const Value output = ir.buffer(PGR_DTYPE_I32, kItems, kOutput);
  Value index = index_constant(ir, 0);
  for (uint32_t axis = 3; axis-- > 0;) {
    index = ir.alu(PGR_OP_MUL, {index, index_constant(ir, kCounts[axis])});
    index = ir.alu(PGR_OP_ADD, {index, ir.group_id(axis)});
    index = ir.alu(PGR_OP_MUL, {index, index_constant(ir, kLocal[axis])});
    index = ir.alu(PGR_OP_ADD, {index, ir.local_id(axis)});
  }
  ir.store(output, index, ir.alu(PGR_OP_MUL, {index, index_constant(ir, 3)}));
  std::vector<uint64_t> want(kItems);
  for (uint64_t i = 0; i < kItems; ++i) want[i] = 3 * i;
  std::vector<Bytes> buffers = {pack(PGR_DTYPE_I32, std::vector<uint64_t>(kItems, 7))};
  run_block(context, ir.finish(), buffers);
  expect_equal(PGR_DTYPE_I32, want, unpack(PGR_DTYPE_I32, buffers[0]), "ids along three axes");
}

// All work-items of a group add to one local element.
void run_local_atomic(Context& context, uint32_t dtype, int64_t size) {
  IrBuilder ir("local_atomic");
  const Value output = ir.buffer(dtype, kLocalGroups, kOutput);
  const Value array = ir.array(PGR_SPACE_LOCAL, dtype, 1);
  const Ids ids = make_ids(ir, size);
  const Value zero = index_constant(ir, 0);
  const Value first = ir.begin_if(ir.alu(PGR_OP_CMPEQ, {ids.local, zero}));
  ir.store(array, zero, ir.cast(zero, dtype));
  ir.end_if(first);
  ir.barrier();
  ir.atomic_add(array, zero, ir.cast(ids.local, dtype));
  ir.barrier();
  const Value last = ir.begin_if(ir.alu(PGR_OP_CMPEQ, {ids.local, index_constant(ir, size - 1)}));
  ir.store(output, ids.group, ir.load(array, zero));
  ir.end_if(last);
  const uint64_t sum = static_cast<uint64_t>(size * (size - 1) / 2);
  const uint64_t want = expected_result({PGR_OP_CAST, PGR_DTYPE_I32, dtype}, std::vector{sum}).bits;
  std::vector<Bytes> buffers = {pack(dtype, std::vector<uint64_t>(kLocalGroups))};
  run_block(context, ir.finish(), buffers);
  expect_equal(dtype, std::vector<uint64_t>(kLocalGroups, want), unpack(dtype, buffers[0]),
               "atomic sums in local memory");
}

// Groups of the device's maximum size along one axis; each work-item writes its own element.
void run_largest_group(Context& context, uint32_t axis) {
  const pgr_device_caps& caps = context.device().caps();
  if (!caps.has_local) throw Unsupported("the device does not claim groups of work-items");
  const uint32_t items = std::min({caps.max_local_size[axis], caps.max_local_total, 1u << 16});
  if (items < 2) throw Unsupported("groups have one work-item along this axis");
  uint32_t size[3] = {1, 1, 1};
  size[axis] = items;
  IrBuilder ir("largest_group");
  ir.set_groups(2);
  ir.set_local(size[0], size[1], size[2]);
  const Value output = ir.buffer(PGR_DTYPE_I32, uint64_t{items} * 2, kOutput);
  const Value base = ir.alu(PGR_OP_MUL, {ir.group_id(0), index_constant(ir, items)});
  const Value index = ir.alu(PGR_OP_ADD, {base, ir.local_id(axis)});
  ir.barrier();
  ir.store(output, index, ir.alu(PGR_OP_MUL, {index, index_constant(ir, 5)}));
  std::vector<uint64_t> want(uint64_t{items} * 2);
  for (uint64_t i = 0; i < want.size(); ++i) want[i] = 5 * i;
  std::vector<Bytes> buffers = {pack(PGR_DTYPE_I32, std::vector<uint64_t>(want.size(), 7))};
  run_block(context, ir.finish(), buffers);
  expect_equal(PGR_DTYPE_I32, want, unpack(PGR_DTYPE_I32, buffers[0]),
               fmt::format("groups of {} along axis {}", items, axis));
}

// All local memory, filled by the group and read mirrored.
void run_whole_local_memory(Context& context) {
  const pgr_device_caps& caps = context.device().caps();
  if (!caps.has_local) throw Unsupported("the device does not claim groups of work-items");
  const int64_t items = std::min({caps.max_local_size[0], caps.max_local_total, 32u});
  const int64_t rounds =
      static_cast<int64_t>(std::min(caps.local_bytes, uint64_t{1} << 20)) / 4 / items;
  const int64_t count = items * rounds;
  IrBuilder ir("whole_local_memory");
  ir.set_groups(2);
  ir.set_local(static_cast<uint32_t>(items));
  const Value output = ir.buffer(PGR_DTYPE_I32, static_cast<uint64_t>(count) * 2, kOutput);
  const Value array = ir.array(PGR_SPACE_LOCAL, PGR_DTYPE_I32, static_cast<uint64_t>(count));
  const Value local = ir.local_id(0), step = index_constant(ir, items);
  const Value base = ir.alu(PGR_OP_MUL, {ir.group_id(0), index_constant(ir, count)});
  const auto place = [&](Value round) {
    return ir.alu(PGR_OP_ADD, {ir.alu(PGR_OP_MUL, {round, step}), local});
  };
  const Value fill = ir.loop(index_constant(ir, 0), index_constant(ir, rounds));
  const Value at = place(fill);
  ir.store(array, at, ir.alu(PGR_OP_ADD, {base, at}));
  ir.end_loop(fill);
  ir.barrier();
  const Value drain = ir.loop(index_constant(ir, 0), index_constant(ir, rounds));
  const Value to = place(drain);
  const Value from = ir.alu(PGR_OP_SUB, {index_constant(ir, count - 1), to});
  ir.store(output, ir.alu(PGR_OP_ADD, {base, to}), ir.load(array, from));
  ir.end_loop(drain);
  std::vector<uint64_t> want(static_cast<size_t>(count) * 2);
  for (int64_t i = 0; i < 2 * count; ++i)
    want[static_cast<size_t>(i)] = static_cast<uint64_t>(i / count * count + count - 1 - i % count);
  std::vector<Bytes> buffers = {pack(PGR_DTYPE_I32, std::vector<uint64_t>(want.size(), 7))};
  run_block(context, ir.finish(), buffers);
  expect_equal(PGR_DTYPE_I32, want, unpack(PGR_DTYPE_I32, buffers[0]),
               fmt::format("{} bytes of local memory, mirrored", count * 4));
}

using LocalTest = void (*)(Context&, uint32_t dtype, int64_t size);

void add_local(Tests& tests, const char* name, uint32_t dtype, int64_t size, LocalTest run) {
  Test test;
  test.id = "l2.local." + std::string(name) + "." + id_of_dtype(dtype) + "." + std::to_string(size);
  test.level = Level::L2;
  test.run = [=](Context& context) { run(context, dtype, size); };
  tests.push_back(std::move(test));
}

}  // namespace

void add_local_tests(Tests& tests) {
  for (int64_t size : {2, 32, 256})
    for (uint32_t dtype : {PGR_DTYPE_F32, PGR_DTYPE_I32}) {
      add_local(tests, "mirror", dtype, size, run_mirror);
      add_local(tests, "tree", dtype, size, run_tree);
      add_local(tests, "rotate", dtype, size, run_rotate);
      add_local(tests, "buffer", dtype, size, run_global);
      add_local(tests, "atomic", dtype, size, run_local_atomic);
    }
  for (uint32_t dtype = PGR_DTYPE_BOOL; dtype < PGR_DTYPE_COUNT; ++dtype)
    add_local(tests, "mirror", dtype, 61, run_mirror);
  const auto add = [&](std::string id, std::function<void(Context&)> run) {
    Test& test = tests.emplace_back();
    test.id = "l2.local." + std::move(id);
    test.level = Level::L2;
    test.run = std::move(run);
  };
  add("axes", run_local_axes);
  for (const uint32_t axis : {0, 1, 2})
    add("largest_group." + std::to_string(axis),
        [axis](Context& context) { run_largest_group(context, axis); });
  add("whole_memory", run_whole_local_memory);
}

}  // namespace plugrad::conformance

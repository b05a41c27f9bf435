// Tests asynchronous copies from a buffer to local memory: a copy is visible after its wait and may
// be pending before. Dropping any wait changes the results.
#include <fmt/format.h>

#include "conformance/kernels/elements.h"
#include "conformance/kernels/lanes/lanes.h"
#include "plugrad/sdk/op_info.h"

namespace plugrad::conformance {
namespace {

constexpr int64_t kCopyGroups = 5, kCopyItems = 32, kCopyRounds = 7;
constexpr uint32_t kCopyAlign = 16;

// kCopyItems - 1 - i
Value mirrored(IrBuilder& ir, Value i) {
  return ir.alu(PGR_OP_SUB, {index_constant(ir, kCopyItems - 1), i});
}

// A group's tiles of an input: kCopyItems copies of `lanes` elements each.
struct Tiles {
  IrBuilder ir{"async_copy"};
  Value input, output, array, item, group;
  uint32_t lanes;
  int64_t size;

  Tiles(uint32_t dtype, uint32_t copied, int64_t tiles, int64_t arrays, uint64_t stored)
      : lanes(copied), size(kCopyItems * copied) {
    ir.set_groups(kCopyGroups);
    ir.set_local(kCopyItems);
    input = ir.buffer(dtype, static_cast<uint64_t>(size * tiles * kCopyGroups), kInput, kCopyAlign);
    output = ir.buffer(dtype, stored, kOutput);
    array = ir.array(PGR_SPACE_LOCAL, dtype, static_cast<uint64_t>(size * arrays), 1, kCopyAlign);
    item = ir.local_id(0);
    group = ir.group_id(0);
  }
  // Start of the work-item's own part of a tile.
  Value own(Value tile) { return plus(ir, times(ir, tile, size), times(ir, item, lanes)); }
};

// out = the input, with the work-items' parts of a tile reversed.
void run_copied_tile(Context& context, uint32_t dtype, uint32_t lanes) {
  const int64_t count = kCopyGroups * kCopyItems * lanes;
  Tiles t(dtype, lanes, 1, 1, static_cast<uint64_t>(count));
  IrBuilder& ir = t.ir;
  const Value from = t.own(t.group);
  ir.async_copy(t.array, times(ir, t.item, lanes), t.input, from, lanes);
  ir.async_commit();
  ir.async_wait(0);
  ir.barrier();
  const Value other = times(ir, mirrored(ir, t.item), lanes);
  const Value lane = ir.loop(index_constant(ir, 0), index_constant(ir, lanes));
  ir.store(t.output, plus(ir, from, lane), ir.load(t.array, plus(ir, other, lane)));
  ir.end_loop(lane);
  Random random(context.seed());
  const auto values = tame_values(dtype, static_cast<size_t>(count), random);
  std::vector<Bytes> buffers = {pack(dtype, values), pack(dtype, values)};
  run_block(context, ir.finish(), buffers);
  std::vector<uint64_t> want(values.size());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t part = i / lanes, group = part / kCopyItems * kCopyItems;
    want[static_cast<size_t>(i)] = values[static_cast<size_t>(
        (group + kCopyItems - 1 - part % kCopyItems) * lanes + i % lanes)];
  }
  expect_equal(dtype, want, unpack(dtype, buffers[1]), "a tile, its parts in reverse");
}

// Double buffering: the next tile is copied while one is used; out = neighbours' elements, tile by
// tile.
void run_rounds(Context& context, uint32_t dtype, uint32_t lanes) {
  const int64_t count = kCopyGroups * kCopyRounds * kCopyItems * lanes;
  Tiles t(dtype, lanes, kCopyRounds, 2, static_cast<uint64_t>(count / lanes));
  IrBuilder& ir = t.ir;
  const Value zero = index_constant(ir, 0), one = index_constant(ir, 1);
  const Value rounds = index_constant(ir, kCopyRounds), first = times(ir, t.group, kCopyRounds);
  const auto place = [&](Value round) {
    const Value half = ir.alu(PGR_OP_AND, {round, one});
    return plus(ir, times(ir, half, t.size), times(ir, t.item, lanes));
  };
  ir.async_copy(t.array, place(zero), t.input, t.own(first), lanes);
  ir.async_commit();
  const Value round = ir.loop(zero, rounds);
  const Value next = plus(ir, round, one);
  const Value goes_on = ir.begin_if(ir.alu(PGR_OP_CMPLT, {next, rounds}));
  ir.async_copy(t.array, place(next), t.input, t.own(plus(ir, first, next)), lanes);
  ir.end_if(goes_on);
  ir.async_commit();
  ir.async_wait(1);
  ir.barrier();
  const Value half = times(ir, ir.alu(PGR_OP_AND, {round, one}), t.size);
  const Value read = ir.load(t.array, plus(ir, half, times(ir, mirrored(ir, t.item), lanes)));
  ir.store(t.output, plus(ir, times(ir, plus(ir, first, round), kCopyItems), t.item), read);
  ir.barrier();
  ir.end_loop(round);
  Random random(context.seed());
  const auto values = tame_values(dtype, static_cast<size_t>(count), random);
  std::vector<uint64_t> want(static_cast<size_t>(count / lanes));
  std::vector<Bytes> buffers = {pack(dtype, values), pack(dtype, want)};
  run_block(context, ir.finish(), buffers);
  for (int64_t i = 0; i < count / lanes; ++i)
    want[static_cast<size_t>(i)] = values[static_cast<size_t>(
        (i / kCopyItems * kCopyItems + kCopyItems - 1 - i % kCopyItems) * lanes)];
  expect_equal(dtype, want, unpack(dtype, buffers[1]), "tiles that were copied two at a time");
}

// A closed gate reads nothing, for any index, and writes zeros. The work-item reads only its own
// copy, so that no barrier is needed.
void run_gated_copies(Context& context, uint32_t dtype, uint32_t lanes) {
  const int64_t count = kCopyGroups * kCopyItems * lanes;
  Tiles t(dtype, lanes, 1, 1, static_cast<uint64_t>(count));
  IrBuilder& ir = t.ir;
  const Value from = t.own(t.group), own = times(ir, t.item, lanes);
  const Value third = ir.alu(PGR_OP_MOD, {t.item, index_constant(ir, 3)});
  const Value gate = ir.alu(PGR_OP_CMPNE, {third, index_constant(ir, 1)});
  const Value outside = index_constant(ir, -int64_t{lanes} * (1 << 20));
  ir.async_copy_gated(t.array, own, t.input, ir.alu(PGR_OP_WHERE, {gate, from, outside}), gate,
                      lanes);
  ir.async_commit();
  ir.async_wait(0);
  const Value lane = ir.loop(index_constant(ir, 0), index_constant(ir, lanes));
  ir.store(t.output, plus(ir, from, lane), ir.load(t.array, plus(ir, own, lane)));
  ir.end_loop(lane);
  Random random(context.seed());
  auto values = tame_values(dtype, static_cast<size_t>(count), random);
  std::vector<Bytes> buffers = {pack(dtype, values), pack(dtype, values)};
  run_block(context, ir.finish(), buffers);
  for (int64_t i = 0; i < count; ++i)
    if (i / lanes % kCopyItems % 3 == 1) values[static_cast<size_t>(i)] = 0;
  expect_equal(dtype, values, unpack(dtype, buffers[1]), "copies with gates");
}

void add_async_copy(Tests& tests, const char* name, uint32_t dtype, uint32_t bytes,
                    void (*run)(Context&, uint32_t dtype, uint32_t lanes)) {
  const uint32_t lanes = bytes / sdk::dtype_size(dtype);
  Test& test = tests.emplace_back();
  test.id = fmt::format("l2.async_copy.{}.{}.{}", name, id_of_dtype(dtype), bytes);
  test.op = "async_copy";
  test.level = Level::L2;
  test.run = [=](Context& context) { run(context, dtype, lanes); };
}

}  // namespace

void add_async_copy_tests(Tests& tests) {
  for (const uint32_t bytes : {4, 8, 16})
    for (uint32_t dtype = PGR_DTYPE_BOOL; dtype < PGR_DTYPE_COUNT; ++dtype) {
      if (bytes < sdk::dtype_size(dtype)) continue;
      add_async_copy(tests, "tile", dtype, bytes, run_copied_tile);
      if (dtype != PGR_DTYPE_F32 && dtype != PGR_DTYPE_F16 && dtype != PGR_DTYPE_I32) continue;
      add_async_copy(tests, "rounds", dtype, bytes, run_rounds);
      add_async_copy(tests, "gates", dtype, bytes, run_gated_copies);
    }
}

}  // namespace plugrad::conformance

// Tests loops, conditions, and the order of a work-item's loads and stores.
#include <algorithm>

#include "conformance/kernels/elements.h"
#include "conformance/kernels/mandatory/core.h"

namespace plugrad::conformance {
namespace {

std::vector<uint64_t> zeros(size_t count) {
  return std::vector<uint64_t>(count);
}

// Adds to an element of a private array.
void add_to(IrBuilder& ir, Value array, Value at, Value value) {
  ir.store(array, at, ir.alu(PGR_OP_ADD, {ir.load(array, at), value}));
}

struct Bounds {
  int64_t begin, end;
};

// For each pair of bounds: the iteration count and the sum of the counter.
void run_loops(Context& context, uint32_t dtype, const std::vector<Bounds>& all) {
  IrBuilder ir("loops");
  ir.set_groups(all.size());
  const Value bounds = ir.buffer(dtype, 2 * all.size(), kInput);
  const Value output = ir.buffer(dtype, 2 * all.size(), kOutput);
  const Value results = ir.array(PGR_SPACE_PRIVATE, dtype, 2);
  const Value zero = ir.constant_int(dtype, 0), one = ir.constant_int(dtype, 1);
  ir.store(results, zero, zero);
  ir.store(results, one, zero);
  const Value first = ir.alu(PGR_OP_MUL, {ir.group_id(0, dtype), ir.constant_int(dtype, 2)});
  const Value second = ir.alu(PGR_OP_ADD, {first, one});
  const Value loop = ir.loop(ir.load(bounds, first), ir.load(bounds, second));
  add_to(ir, results, zero, one);
  add_to(ir, results, one, loop);
  ir.end_loop(loop);
  ir.store(output, first, ir.load(results, zero));
  ir.store(output, second, ir.load(results, one));
  std::vector<uint64_t> in, want;
  const Operation wrap{PGR_OP_CAST, kI64, dtype};
  for (const Bounds& b : all) {
    uint64_t count = 0, sum = 0;
    for (int64_t i = b.begin; i < b.end; ++i, ++count) sum += static_cast<uint64_t>(i);
    for (int64_t bound : {b.begin, b.end})
      in.push_back(expected_result(wrap, std::vector{static_cast<uint64_t>(bound)}).bits);
    want.push_back(count);
    want.push_back(expected_result(wrap, std::vector{sum}).bits);
  }
  std::vector<Bytes> buffers = {pack(dtype, in), pack(dtype, zeros(in.size()))};
  run_block(context, ir.finish(), buffers);
  expect_equal(dtype, want, unpack(dtype, buffers[1]), "trips and sums of loops");
}

std::vector<Bounds> small_bounds() {
  return {{0, 0}, {0, 1}, {0, 2}, {5, 5}, {5, 4}, {9, -9}, {-3, 2}, {0, 100}, {-7, -6}};
}

void run_i32_loops(Context& context) {
  run_loops(context, kI32, small_bounds());
}
void run_extreme_loops(Context& context) {
  run_loops(context, kI32,
            {{INT32_MAX - 3, INT32_MAX},
             {INT32_MIN, INT32_MIN + 3},
             {INT32_MAX, INT32_MIN},
             {INT32_MAX, INT32_MAX}});
}
void run_i64_loops(Context& context) {
  std::vector<Bounds> all = small_bounds();
  all.insert(all.end(), {{int64_t{1} << 33, (int64_t{1} << 33) + 5},
                         {INT64_MAX - 2, INT64_MAX},
                         {INT64_MIN, INT64_MIN + 2},
                         {-(int64_t{1} << 40), 3 - (int64_t{1} << 40)}});
  run_loops(context, kI64, all);
}

// Loops bounded by outer counters: every (i, j, k) with i >= j >= k.
void run_nested(Context& context) {
  constexpr int64_t kSize = 6;
  IrBuilder ir("nested");
  const Value output = ir.buffer(kI32, kSize * kSize * kSize, kBoth);
  const Value zero = index_constant(ir, 0), one = index_constant(ir, 1);
  const Value size = index_constant(ir, kSize);
  const Value i = ir.loop(zero, size);
  const Value j = ir.loop(zero, ir.alu(PGR_OP_ADD, {i, one}));
  const Value row =
      ir.alu(PGR_OP_MUL, {ir.alu(PGR_OP_ADD, {ir.alu(PGR_OP_MUL, {i, size}), j}), size});
  const Value k = ir.loop(zero, ir.alu(PGR_OP_ADD, {j, one}));
  add_to(ir, output, ir.alu(PGR_OP_ADD, {row, k}), ir.alu(PGR_OP_ADD, {row, one}));
  ir.end_loop(k);
  ir.end_loop(j);
  ir.end_loop(i);
  std::vector<uint64_t> want(kSize * kSize * kSize);
  for (uint64_t x = 0; x < kSize; ++x)
    for (uint64_t y = 0; y <= x; ++y)
      for (uint64_t z = 0; z <= y; ++z)
        want[(x * kSize + y) * kSize + z] = (x * kSize + y) * kSize + 1;
  std::vector<Bytes> buffers = {pack(kI32, zeros(want.size()))};
  run_block(context, ir.finish(), buffers);
  expect_equal(kI32, want, unpack(kI32, buffers[0]), "nested loops");
}

// Eight nested loops of two iterations each.
void run_deep(Context& context) {
  constexpr int kDepth = 8;
  IrBuilder ir("deep");
  const Value output = ir.buffer(kI32, 1 << kDepth, kOutput);
  std::vector<Value> loops;
  Value index = index_constant(ir, 0);
  for (int depth = 0; depth < kDepth; ++depth) {
    loops.push_back(ir.loop(index_constant(ir, 0), index_constant(ir, 2)));
    index = ir.alu(PGR_OP_ADD, {ir.alu(PGR_OP_MUL, {index, index_constant(ir, 2)}), loops.back()});
  }
  ir.store(output, index, ir.alu(PGR_OP_MUL, {index, index}));
  for (int depth = kDepth; depth-- > 0;) ir.end_loop(loops[static_cast<size_t>(depth)]);
  std::vector<uint64_t> want(1 << kDepth);
  for (uint64_t i = 0; i < want.size(); ++i) want[i] = i * i;
  std::vector<Bytes> buffers = {pack(kI32, zeros(want.size()))};
  run_block(context, ir.finish(), buffers);
  expect_equal(kI32, want, unpack(kI32, buffers[0]), "deeply nested loops");
}

// A condition in a loop, with another condition and a loop inside; the store in the last block
// would be out of bounds where the block is skipped.
void run_conditions(Context& context) {
  constexpr int64_t kSize = 64;
  IrBuilder ir("conditions");
  const Value input = ir.buffer(kI32, kSize, kInput), output = ir.buffer(kI32, kSize, kBoth);
  const Value zero = index_constant(ir, 0), three = index_constant(ir, 3);
  const Value i = ir.loop(zero, index_constant(ir, kSize));
  const Value x = ir.load(input, i);
  const Value is_negative = ir.alu(PGR_OP_CMPLT, {x, zero});
  const Value outer = ir.begin_if(is_negative);
  ir.store(output, i, three);
  const Value inner = ir.begin_if(ir.alu(PGR_OP_CMPEQ, {ir.alu(PGR_OP_MOD, {i, three}), zero}));
  const Value j = ir.loop(zero, ir.alu(PGR_OP_MOD, {i, three}));
  ir.store(output, i, x);  // never: the loop has no iterations if the condition holds
  ir.end_loop(j);
  add_to(ir, output, i, i);
  ir.end_if(inner);
  ir.end_if(outer);
  const Value wild = ir.alu(PGR_OP_WHERE, {is_negative, index_constant(ir, 1 << 30), i});
  const Value other =
      ir.begin_if(ir.alu(PGR_OP_CMPEQ, {is_negative, ir.constant_int(PGR_DTYPE_BOOL, 0)}));
  ir.store(output, wild, ir.alu(PGR_OP_NEG, {x}));
  ir.end_if(other);
  ir.end_loop(i);
  Random random(context.seed());
  std::vector<uint64_t> in = tame_values(kI32, kSize, random), want(kSize);
  for (uint64_t at = 0; at < kSize; ++at) {
    const auto value = static_cast<int32_t>(in[at]);
    want[at] = value < 0 ? 3 + (at % 3 == 0 ? at : 0) : static_cast<uint32_t>(-value);
  }
  std::vector<Bytes> buffers = {pack(kI32, in), pack(kI32, zeros(kSize))};
  run_block(context, ir.finish(), buffers);
  expect_equal(kI32, want, unpack(kI32, buffers[1]), "conditions in a loop");
}

// Loads after stores to the same element of a buffer: Fibonacci numbers, wrapping.
void run_order(Context& context) {
  constexpr size_t kSize = 90;
  IrBuilder ir("order");
  const Value buffer = ir.buffer(kI32, kSize, kBoth);
  const Value zero = index_constant(ir, 0), one = index_constant(ir, 1),
              two = index_constant(ir, 2);
  ir.store(buffer, zero, two);
  ir.store(buffer, zero, one);
  ir.store(buffer, one, ir.load(buffer, zero));
  const Value i = ir.loop(two, index_constant(ir, kSize));
  const Value before = ir.load(buffer, ir.alu(PGR_OP_ADD, {i, index_constant(ir, -1)}));
  const Value earlier = ir.load(buffer, ir.alu(PGR_OP_ADD, {i, index_constant(ir, -2)}));
  ir.store(buffer, i, ir.alu(PGR_OP_ADD, {before, earlier}));
  ir.end_loop(i);
  std::vector<uint64_t> want = {1, 1};
  while (want.size() < kSize)
    want.push_back((want[want.size() - 1] + want[want.size() - 2]) & 0xffffffff);
  std::vector<Bytes> buffers = {pack(kI32, zeros(kSize))};
  run_block(context, ir.finish(), buffers);
  expect_equal(kI32, want, unpack(kI32, buffers[0]), "loads behind stores");
}

// Hundreds of dependent instructions, and values with distant uses.
void run_long(Context& context) {
  IrBuilder ir("long_kernel");
  const Value input = ir.buffer(kI32, 1, kInput), output = ir.buffer(kI32, 1, kOutput);
  const Value zero = index_constant(ir, 0);
  std::vector<Value> values = {ir.load(input, zero)};
  std::vector<uint32_t> want = {12345};
  for (uint32_t i = 1; i < 600; ++i) {
    const uint32_t far = (i * 7 + 3) * i / 4 % i;
    const uint32_t op = i % 3 == 0 ? PGR_OP_MUL : i % 3 == 1 ? PGR_OP_ADD : PGR_OP_XOR;
    const Value last = ir.alu(PGR_OP_ADD, {values.back(), index_constant(ir, i)});
    values.push_back(ir.alu(op, {last, values[far]}));
    const uint32_t x = want.back() + i, y = want[far];
    want.push_back(i % 3 == 0 ? x * y : i % 3 == 1 ? x + y : x ^ y);
  }
  ir.store(output, zero, values.back());
  std::vector<Bytes> buffers = {pack(kI32, std::vector<uint64_t>{want[0]}), pack(kI32, zeros(1))};
  run_block(context, ir.finish(), buffers);
  expect_equal(kI32, std::vector<uint64_t>{want.back()}, unpack(kI32, buffers[1]), "a long kernel");
}

}  // namespace

void add_control_tests(Tests& tests) {
  add_test(tests, Level::L1, "l1.control.loops", run_i32_loops);
  add_test(tests, Level::L1, "l1.control.extreme_loops", run_extreme_loops);
  add_test(tests, Level::L1, "l1.control.nested", run_nested);
  add_test(tests, Level::L1, "l1.control.deep", run_deep);
  add_test(tests, Level::L1, "l1.control.conditions", run_conditions);
  add_test(tests, Level::L1, "l1.control.order", run_order);
  add_test(tests, Level::L1, "l1.control.long", run_long);
  add_test(tests, Level::L2, "l2.control.loops.i64", run_i64_loops);
}

}  // namespace plugrad::conformance

// Tests index arithmetic of views: transpose, flip, stride, broadcast, shift, gather; sizes 1,
// primes, and powers of two plus or minus one.
#include <fmt/format.h>

#include "conformance/kernels/shapes/shapes.h"

namespace plugrad::conformance {
namespace {

struct Shape {
  int64_t rows, columns;
};
constexpr Shape kShapes[] = {{1, 1}, {1, 17}, {13, 1}, {7, 31}, {15, 17}, {33, 8}};

// The source index of element (row, column), in kernel IR and in C++.
struct View {
  const char* name;
  Value (*index)(IrBuilder& ir, const Shape& shape, Value row, Value column);
  int64_t (*source)(const Shape& shape, int64_t row, int64_t column);
};

constexpr View kViews[] = {
    {"transpose",
     [](IrBuilder& ir, const Shape& s, Value r, Value c) {
       return plus(ir, times(ir, c, s.rows), r);
     },
     [](const Shape& s, int64_t r, int64_t c) { return c * s.rows + r; }},
    {"flip",
     [](IrBuilder& ir, const Shape& s, Value r, Value c) {
       const Value at = plus(ir, times(ir, r, s.columns), c);
       return plus(ir, times(ir, at, -1), index_constant(ir, s.rows * s.columns - 1));
     },
     [](const Shape& s, int64_t r, int64_t c) {
       return s.rows * s.columns - 1 - r * s.columns - c;
     }},
    {"broadcast_row", [](IrBuilder&, const Shape&, Value, Value c) { return c; },
     [](const Shape&, int64_t, int64_t c) { return c; }},
    {"broadcast_column",
     [](IrBuilder& ir, const Shape& s, Value r, Value) { return times(ir, r, s.columns); },
     [](const Shape& s, int64_t r, int64_t) { return r * s.columns; }},
    {"shift",
     [](IrBuilder& ir, const Shape& s, Value r, Value c) {
       const Value at = plus(ir, plus(ir, times(ir, r, s.columns), c), index_constant(ir, 3));
       return ir.alu(PGR_OP_MOD, {at, index_constant(ir, s.rows * s.columns)});
     },
     [](const Shape& s, int64_t r, int64_t c) {
       return (r * s.columns + c + 3) % (s.rows * s.columns);
     }},
    {"every_second",
     [](IrBuilder& ir, const Shape& s, Value r, Value c) {
       const Value at = times(ir, plus(ir, times(ir, r, s.columns), c), 2);
       return ir.alu(PGR_OP_MOD, {at, index_constant(ir, s.rows * s.columns)});
     },
     [](const Shape& s, int64_t r, int64_t c) {
       return 2 * (r * s.columns + c) % (s.rows * s.columns);
     }},
};

void run_view(Context& context, const View& view, uint32_t dtype) {
  Random random(context.seed());
  for (const Shape& s : kShapes) {
    const auto count = static_cast<uint64_t>(s.rows * s.columns);
    IrBuilder ir(view.name);
    ir.set_groups(static_cast<uint64_t>(s.rows));
    const Value input = ir.buffer(dtype, count, kInput), output = ir.buffer(dtype, count, kOutput);
    const Value row = ir.group_id(0);
    const Value column = ir.loop(index_constant(ir, 0), index_constant(ir, s.columns));
    const Value from = view.index(ir, s, row, column);
    ir.store(output, plus(ir, times(ir, row, s.columns), column), ir.load(input, from));
    ir.end_loop(column);
    const std::vector<uint64_t> values = mixed_values(dtype, count, random);
    std::vector<Bytes> buffers = {pack(dtype, values), pack(dtype, std::vector<uint64_t>(count))};
    run_block(context, ir.finish(), buffers);
    std::vector<uint64_t> want;
    for (int64_t r = 0; r < s.rows; ++r)
      for (int64_t c = 0; c < s.columns; ++c)
        want.push_back(values[static_cast<size_t>(view.source(s, r, c))]);
    expect_equal(dtype, want, unpack(dtype, buffers[1]),
                 fmt::format("{} of {} x {}", view.name, s.rows, s.columns));
  }
}

// Rows of a table by indices that are loaded.
void run_gather(Context& context, uint32_t dtype) {
  constexpr int64_t kRows = 19, kWidth = 5, kCount = 44;
  IrBuilder ir("gather");
  ir.set_groups(kCount);
  const Value table = ir.buffer(dtype, kRows * kWidth, kInput);
  const Value rows = ir.buffer(PGR_DTYPE_I32, kCount, kInput);
  const Value output = ir.buffer(dtype, kCount * kWidth, kOutput);
  const Value which = ir.group_id(0);
  const Value row = ir.load(rows, which);
  const Value k = ir.loop(index_constant(ir, 0), index_constant(ir, kWidth));
  ir.store(output, plus(ir, times(ir, which, kWidth), k),
           ir.load(table, plus(ir, times(ir, row, kWidth), k)));
  ir.end_loop(k);
  Random random(context.seed());
  const std::vector<uint64_t> values = mixed_values(dtype, kRows * kWidth, random);
  std::vector<uint64_t> indices, want;
  for (int64_t i = 0; i < kCount; ++i) {
    indices.push_back(random() % kRows);
    for (uint64_t column = 0; column < kWidth; ++column)
      want.push_back(values[indices.back() * kWidth + column]);
  }
  std::vector<Bytes> buffers = {pack(dtype, values), pack(PGR_DTYPE_I32, indices),
                                pack(dtype, want)};
  std::fill(buffers[2].begin(), buffers[2].end(), std::byte{});
  run_block(context, ir.finish(), buffers);
  expect_equal(dtype, want, unpack(dtype, buffers[2]), "gathered rows");
}

}  // namespace

void add_view_tests(Tests& tests) {
  for (uint32_t dtype :
       {PGR_DTYPE_BOOL, PGR_DTYPE_U8, PGR_DTYPE_F16, PGR_DTYPE_F32, PGR_DTYPE_I64}) {
    for (const View& view : kViews) {
      Test test;
      test.id = "l2.views." + std::string(view.name) + "." + id_of_dtype(dtype);
      test.level = Level::L2;
      test.run = [dtype, &view](Context& context) { run_view(context, view, dtype); };
      tests.push_back(std::move(test));
    }
    Test gather;
    gather.id = "l2.views.gather." + id_of_dtype(dtype);
    gather.level = Level::L2;
    gather.run = [dtype](Context& context) { run_gather(context, dtype); };
    tests.push_back(std::move(gather));
  }
}

}  // namespace plugrad::conformance

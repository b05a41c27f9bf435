// Tests matrix products of odd shapes, and convolutions whose loads are gated at the padding.
#include <fmt/format.h>

#include "conformance/kernels/shapes/shapes.h"

namespace plugrad::conformance {
namespace {

void accumulate(IrBuilder& ir, Value sum, Value a, Value b) {
  const Value zero = index_constant(ir, 0);
  const Value product = ir.alu(PGR_OP_MUL, {a, b});
  ir.store(sum, zero, ir.alu(PGR_OP_ADD, {ir.load(sum, zero), product}));
}

// Checks one sum of products: integers must be equal, floats within the error bound of a sum of so
// many terms.
class SumCheck {
 public:
  SumCheck(Context& context, uint32_t dtype) : context_(context), dtype_(dtype), dot_(dtype) {}
  void add(uint64_t a, uint64_t b) {
    ++terms_;
    if (is_float(dtype_)) return dot_.add(a, b);
    const uint64_t product =
        expected_result(make_operation(PGR_OP_MUL, dtype_), std::vector{a, b}).bits;
    sum_ = expected_result(make_operation(PGR_OP_ADD, dtype_), std::vector{sum_, product}).bits;
  }
  void check(uint64_t got, const std::string& where) {
    if (!is_float(dtype_))
      return expect(got == sum_, fmt::format("{} is {}, expected {}", where, describe(dtype_, got),
                                             describe(dtype_, sum_)));
    const double error = dot_.error_over_bound(got, 2 * terms_);
    context_.measure("error/bound", error, where);
    expect(error <= 1, fmt::format("{} is {}, {:.3g} times the error that rounding may cost", where,
                                   describe(dtype_, got), error));
  }

 private:
  Context& context_;
  uint32_t dtype_;
  ExactDot dot_;
  uint64_t sum_ = 0;
  size_t terms_ = 0;
};

struct Sizes {
  int64_t m, n, k;
};

// c[m, n] = a[m, k] · b[k, n]: groups over m and n.
Bytes matmul_block(uint32_t dtype, const Sizes& s) {
  IrBuilder ir("matmul");
  ir.set_groups(static_cast<uint64_t>(s.n), static_cast<uint64_t>(s.m));
  const Value a = ir.buffer(dtype, static_cast<uint64_t>(s.m * s.k), kInput);
  const Value b = ir.buffer(dtype, static_cast<uint64_t>(s.k * s.n), kInput);
  const Value c = ir.buffer(dtype, static_cast<uint64_t>(s.m * s.n), kOutput);
  const Value sum = ir.array(PGR_SPACE_PRIVATE, dtype, 1), zero = index_constant(ir, 0);
  const Value column = ir.group_id(0), row = ir.group_id(1);
  ir.store(sum, zero, ir.cast(zero, dtype));
  const Value k = ir.loop(zero, index_constant(ir, s.k));
  accumulate(ir, sum, ir.load(a, nest(ir, row, s.k, k)), ir.load(b, nest(ir, k, s.n, column)));
  ir.end_loop(k);
  ir.store(c, nest(ir, row, s.n, column), ir.load(sum, zero));
  return ir.finish();
}

void run_matmul(Context& context, uint32_t dtype) {
  Random random(context.seed());
  for (const Sizes& s : {Sizes{1, 1, 1}, {7, 5, 31}, {16, 16, 16}, {1, 33, 13}, {23, 1, 2}}) {
    const auto a = tame_values(dtype, static_cast<size_t>(s.m * s.k), random);
    const auto b = tame_values(dtype, static_cast<size_t>(s.k * s.n), random);
    std::vector<Bytes> buffers = {
        pack(dtype, a), pack(dtype, b),
        pack(dtype, std::vector<uint64_t>(static_cast<size_t>(s.m * s.n)))};
    run_block(context, matmul_block(dtype, s), buffers);
    const std::vector<uint64_t> got = unpack(dtype, buffers[2]);
    for (int64_t row = 0; row < s.m; ++row)
      for (int64_t column = 0; column < s.n; ++column) {
        SumCheck sum(context, dtype);
        for (int64_t k = 0; k < s.k; ++k)
          sum.add(a[static_cast<size_t>(row * s.k + k)], b[static_cast<size_t>(k * s.n + column)]);
        sum.check(got[static_cast<size_t>(row * s.n + column)],
                  fmt::format("[{}, {}] of a {} x {} x {} product", row, column, s.m, s.n, s.k));
      }
  }
}

// A convolution of `size`² pixels with 3 x 3 weights, padded by one. In the padding the gate of
// the load is false, and its index names another pixel or is outside the buffer.
struct Picture {
  int64_t channels, size, outputs;
};

Bytes convolution_block(uint32_t dtype, const Picture& p) {
  IrBuilder ir("convolution");
  ir.set_groups(static_cast<uint64_t>(p.size), static_cast<uint64_t>(p.size),
                static_cast<uint64_t>(p.outputs));
  const Value input = ir.buffer(dtype, static_cast<uint64_t>(p.channels * p.size * p.size), kInput);
  const Value weights = ir.buffer(dtype, static_cast<uint64_t>(p.outputs * p.channels * 9), kInput);
  const Value output =
      ir.buffer(dtype, static_cast<uint64_t>(p.outputs * p.size * p.size), kOutput);
  const Value sum = ir.array(PGR_SPACE_PRIVATE, dtype, 1), zero = index_constant(ir, 0);
  const Value x = ir.group_id(0), y = ir.group_id(1), o = ir.group_id(2);
  const Value minus = index_constant(ir, -1), size = index_constant(ir, p.size);
  const Value nothing = ir.cast(zero, dtype);
  ir.store(sum, zero, nothing);
  const Value c = ir.loop(zero, index_constant(ir, p.channels));
  const Value i = ir.loop(zero, index_constant(ir, 3));
  const Value j = ir.loop(zero, index_constant(ir, 3));
  const Value row = ir.alu(PGR_OP_ADD, {ir.alu(PGR_OP_ADD, {y, i}), minus});
  const Value column = ir.alu(PGR_OP_ADD, {ir.alu(PGR_OP_ADD, {x, j}), minus});
  Value gate =
      ir.alu(PGR_OP_AND, {ir.alu(PGR_OP_CMPLT, {minus, row}), ir.alu(PGR_OP_CMPLT, {row, size})});
  gate = ir.alu(PGR_OP_AND, {gate, ir.alu(PGR_OP_CMPLT, {minus, column})});
  gate = ir.alu(PGR_OP_AND, {gate, ir.alu(PGR_OP_CMPLT, {column, size})});
  const Value at = nest(ir, nest(ir, c, p.size, row), p.size, column);
  const Value pixel = ir.load_gated(input, at, gate, nothing);
  const Value weight = nest(ir, nest(ir, nest(ir, o, p.channels, c), 3, i), 3, j);
  accumulate(ir, sum, pixel, ir.load(weights, weight));
  ir.end_loop(j);
  ir.end_loop(i);
  ir.end_loop(c);
  ir.store(output, nest(ir, nest(ir, o, p.size, y), p.size, x), ir.load(sum, zero));
  return ir.finish();
}

void check_pixel(Context& context, uint32_t dtype, const Picture& p, std::span<const uint64_t> in,
                 std::span<const uint64_t> weights, std::span<const uint64_t> got,
                 const std::array<int64_t, 3>& where) {
  const auto [o, y, x] = where;
  SumCheck sum(context, dtype);
  for (int64_t c = 0; c < p.channels; ++c)
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 3; ++j) {
        const int64_t row = y + i - 1, column = x + j - 1;
        const bool is_inside = row >= 0 && row < p.size && column >= 0 && column < p.size;
        const uint64_t pixel =
            is_inside ? in[static_cast<size_t>((c * p.size + row) * p.size + column)] : 0;
        sum.add(pixel, weights[static_cast<size_t>(((o * p.channels + c) * 3 + i) * 3 + j)]);
      }
  sum.check(got[static_cast<size_t>((o * p.size + y) * p.size + x)],
            fmt::format("pixel [{}, {}, {}] of a convolution of {} x {}", o, y, x, p.size, p.size));
}

void run_convolution(Context& context, uint32_t dtype) {
  Random random(context.seed());
  for (const Picture& p : {Picture{2, 7, 3}, {1, 1, 1}, {3, 2, 1}}) {
    const auto in = tame_values(dtype, static_cast<size_t>(p.channels * p.size * p.size), random);
    const auto weights =
        tame_values(dtype, static_cast<size_t>(p.outputs * p.channels * 9), random);
    std::vector<Bytes> buffers = {
        pack(dtype, in), pack(dtype, weights),
        pack(dtype, std::vector<uint64_t>(static_cast<size_t>(p.outputs * p.size * p.size)))};
    run_block(context, convolution_block(dtype, p), buffers);
    const std::vector<uint64_t> got = unpack(dtype, buffers[2]);
    for (int64_t o = 0; o < p.outputs; ++o)
      for (int64_t y = 0; y < p.size; ++y)
        for (int64_t x = 0; x < p.size; ++x)
          check_pixel(context, dtype, p, in, weights, got, {o, y, x});
  }
}

}  // namespace

void add_product_tests(Tests& tests) {
  for (uint32_t dtype : {PGR_DTYPE_I8, PGR_DTYPE_I32, PGR_DTYPE_U64, PGR_DTYPE_F16, PGR_DTYPE_BF16,
                         PGR_DTYPE_F32, PGR_DTYPE_F64}) {
    for (const bool is_matmul : {true, false}) {
      Test test;
      test.id = (is_matmul ? "l2.matmul." : "l2.convolution.") + id_of_dtype(dtype);
      test.level = Level::L2;
      const auto run = is_matmul ? run_matmul : run_convolution;
      test.run = [=](Context& context) { run(context, dtype); };
      tests.push_back(std::move(test));
    }
  }
}

}  // namespace plugrad::conformance

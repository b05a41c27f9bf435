// Tests building, splitting, loading and storing vectors at any element offset.
#include <algorithm>

#include "conformance/kernels/elements.h"
#include "conformance/kernels/lanes/lanes.h"

namespace plugrad::conformance {
namespace {

constexpr uint32_t kMovedElements = 256;

// Appends results to the output; the expected values follow in the same order.
class Results {
 public:
  Results(IrBuilder& ir, Value output) : ir_(ir), output_(output) {}
  void store(Value value, std::span<const uint64_t> expected) {
    const auto at = static_cast<int64_t>(want.size());
    ir_.store(output_, index_constant(ir_, at), value);
    want.insert(want.end(), expected.begin(), expected.end());
  }
  std::vector<uint64_t> want;

 private:
  IrBuilder& ir_;
  Value output_;
};

// Reverses lanes, swaps halves, splats one lane, and shifts by one lane.
void take_apart(IrBuilder& ir, Results& results, uint32_t dtype, Value v,
                std::span<const uint64_t> lanes) {
  const auto width = static_cast<uint32_t>(lanes.size());
  std::vector<Value> parts;
  for (uint32_t i = width; i-- > 0;) parts.push_back(ir.lane(v, i));
  const std::vector<uint64_t> reversed(lanes.rbegin(), lanes.rend());
  results.store(ir.emit(PGR_OP_VECTOR, dtype, width, parts), reversed);
  const uint32_t half = width / 2;
  std::vector<uint64_t> swapped(lanes.begin() + half, lanes.end());
  swapped.insert(swapped.end(), lanes.begin(), lanes.begin() + half);
  results.store(ir.vector({ir.lane(v, half, half), ir.lane(v, 0, half)}), swapped);
  results.store(ir.splat(ir.lane(v, 1), width), std::vector<uint64_t>(width, lanes[1]));
  results.store(ir.lane(v, width / 4 + (width == 2), half),
                lanes.subspan(width / 4 + (width == 2), half));
  if (width < 4) return;
  // Sources of different widths: 1, 1, then nested halves.
  results.store(ir.vector({ir.lane(v, width - 1), ir.lane(v, 0), ir.lane(v, 1, 2)}),
                std::vector{lanes[width - 1], lanes[0], lanes[1], lanes[2]});
}

void run_take_apart(Context& context, uint32_t dtype) {
  Random random(context.seed());
  const std::vector<uint64_t> values = mixed_values(dtype, kMovedElements, random);
  IrBuilder ir("take_apart");
  const Value input = ir.buffer(dtype, kMovedElements, kInput),
              output = ir.buffer(dtype, 2048, kOutput);
  Results results(ir, output);
  for (uint32_t width : vector_widths(context, {dtype})) {
    const Value v = ir.load(input, index_constant(ir, width + 1), width);
    const std::span<const uint64_t> lanes = std::span(values).subspan(width + 1, width);
    take_apart(ir, results, dtype, v, lanes);
    if (context.device().claims(PGR_OP_BITCAST, dtype))  // Clang 19 uses lane 0 for every lane
      results.store(ir.bitcast(ir.lane(v, width - 1), dtype), lanes.last(1));
  }
  std::vector<Bytes> buffers = {pack(dtype, values), pack(dtype, std::vector<uint64_t>(2048))};
  run_block(context, ir.finish(), buffers);
  std::vector<uint64_t> got = unpack(dtype, buffers[1]);
  got.resize(results.want.size());
  expect_equal(dtype, results.want, got, "lanes put together");
}

// Copies vectors between all offsets: an access needs at most the element's alignment.
void run_offsets(Context& context, uint32_t dtype) {
  Random random(context.seed());
  const std::vector<uint64_t> values = mixed_values(dtype, kMovedElements, random);
  const std::vector<uint32_t> widths = vector_widths(context, {dtype});
  IrBuilder ir("offsets");
  const Value input = ir.buffer(dtype, kMovedElements, kInput);
  const Value output = ir.buffer(dtype, kMovedElements * widths.size(), kBoth);
  std::vector<uint64_t> want(kMovedElements * widths.size());
  for (size_t k = 0; k < widths.size(); ++k) {
    const uint32_t width = widths[k],
                   steps = std::min<uint32_t>(kMovedElements / (width + 1) - 1, 16);
    const Value loop = ir.loop(index_constant(ir, 0), index_constant(ir, steps));
    const Value from = ir.alu(PGR_OP_MUL, {loop, index_constant(ir, 3)});
    const Value to =
        ir.alu(PGR_OP_ADD, {ir.alu(PGR_OP_MUL, {loop, index_constant(ir, width + 1)}),
                            index_constant(ir, static_cast<int64_t>(k * kMovedElements + 1))});
    ir.store(output, to, ir.load(input, from, width));
    ir.end_loop(loop);
    for (uint32_t step = 0; step < steps; ++step)
      for (uint32_t i = 0; i < width; ++i)
        want[k * kMovedElements + 1 + step * (width + 1) + i] = values[step * 3 + i];
  }
  std::vector<Bytes> buffers = {pack(dtype, values),
                                pack(dtype, std::vector<uint64_t>(want.size()))};
  run_block(context, ir.finish(), buffers);
  expect_equal(dtype, want, unpack(dtype, buffers[1]), "vectors moved to odd offsets");
}

// Lane gates at both ends of a buffer: the gated-off lanes are out of bounds.
Bytes gated_block(uint32_t dtype, const std::vector<uint32_t>& widths) {
  IrBuilder ir("lane_gates");
  const Value input = ir.buffer(dtype, kMovedElements, kInput);
  const Value numbers = ir.buffer(PGR_DTYPE_I32, kMovedElements + 64, kInput);
  const Value output = ir.buffer(dtype, kMovedElements * widths.size(), kBoth);
  const Value end = index_constant(ir, kMovedElements - 5);
  const Value other = ir.constant_bits(dtype, dtype == PGR_DTYPE_BOOL ? 1 : 3);
  for (size_t k = 0; k < widths.size(); ++k) {
    const auto width = static_cast<int64_t>(widths[k]);
    const Value loop =
        ir.loop(index_constant(ir, 0), index_constant(ir, (kMovedElements + width - 1) / width));
    const Value at = ir.alu(PGR_OP_MUL, {loop, index_constant(ir, width)});
    const Value number = ir.load(numbers, at, widths[k]);
    const Value gate = ir.alu(PGR_OP_CMPLT, {number, end});
    const Value shifted = ir.alu(PGR_OP_ADD, {at, index_constant(ir, 5)});
    const Value value = ir.load_gated(input, shifted, gate, other, widths[k]);
    const Value odd = ir.alu(
        PGR_OP_CMPEQ, {ir.alu(PGR_OP_AND, {number, index_constant(ir, 1)}), index_constant(ir, 1)});
    const Value to =
        ir.alu(PGR_OP_ADD, {at, index_constant(ir, static_cast<int64_t>(k * kMovedElements))});
    ir.store_gated(output, to, value, odd);
    ir.end_loop(loop);
  }
  return ir.finish();
}

void run_gated(Context& context, uint32_t dtype) {
  const std::vector<uint32_t> widths =
      vector_widths(context, {dtype, PGR_DTYPE_I32, PGR_DTYPE_BOOL});
  Random random(context.seed());
  const std::vector<uint64_t> values = mixed_values(dtype, kMovedElements, random);
  const std::vector<uint64_t> before = mixed_values(dtype, kMovedElements * widths.size(), random);
  std::vector<uint64_t> numbers(kMovedElements + 64), want = before;
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
  const uint64_t other = dtype == PGR_DTYPE_BOOL ? 1 : 3;
  for (size_t i = 1; i < want.size(); i += 2)
    want[i] = i % kMovedElements < kMovedElements - 5 ? values[i % kMovedElements + 5] : other;
  std::vector<Bytes> buffers = {pack(dtype, values), pack(PGR_DTYPE_I32, numbers),
                                pack(dtype, before)};
  run_block(context, gated_block(dtype, widths), buffers);
  expect_equal(dtype, want, unpack(dtype, buffers[2]), "vectors with a gate for each lane");
}

// An array accessed in vectors, larger than one vector.
void run_vector_arrays(Context& context, uint32_t dtype) {
  const uint32_t width = vector_widths(context, {dtype}).back();
  constexpr uint32_t kGroups = 4;
  Random random(context.seed());
  const std::vector<uint64_t> values = mixed_values(dtype, width * kGroups, random);
  IrBuilder ir("lane_arrays");
  const Value input = ir.buffer(dtype, values.size(), kInput);
  const Value output = ir.buffer(dtype, values.size(), kOutput);
  const Value array = ir.array(PGR_SPACE_PRIVATE, dtype, values.size(), width);
  const Value first = ir.loop(index_constant(ir, 0), index_constant(ir, kGroups));
  const Value at = ir.alu(PGR_OP_MUL, {first, index_constant(ir, width)});
  ir.store(array, at, ir.load(input, at, width));
  ir.end_loop(first);
  const Value second = ir.loop(index_constant(ir, 0), index_constant(ir, kGroups));
  const Value back =
      ir.alu(PGR_OP_MUL, {ir.alu(PGR_OP_ADD, {ir.alu(PGR_OP_MUL, {second, index_constant(ir, -1)}),
                                              index_constant(ir, kGroups - 1)}),
                          index_constant(ir, width)});
  ir.store(output, ir.alu(PGR_OP_MUL, {second, index_constant(ir, width)}),
           ir.load(array, back, width));
  ir.end_loop(second);
  std::vector<Bytes> buffers = {pack(dtype, values), pack(dtype, values)};
  run_block(context, ir.finish(), buffers);
  std::vector<uint64_t> want;
  for (uint32_t group = kGroups; group-- > 0;)
    want.insert(want.end(), values.begin() + group * width, values.begin() + (group + 1) * width);
  expect_equal(dtype, want, unpack(dtype, buffers[1]), "an array of vectors, read backwards");
}

void add_move(Tests& tests, const char* name, uint32_t dtype, void (*run)(Context&, uint32_t)) {
  Test test;
  test.id = "l2.vectors." + std::string(name) + "." + id_of_dtype(dtype);
  test.level = Level::L2;
  test.run = [dtype, run](Context& context) { run(context, dtype); };
  tests.push_back(std::move(test));
}

}  // namespace

void add_vector_move_tests(Tests& tests) {
  for (uint32_t dtype = PGR_DTYPE_BOOL; dtype < PGR_DTYPE_COUNT; ++dtype) {
    add_move(tests, "lanes", dtype, run_take_apart);
    add_move(tests, "offsets", dtype, run_offsets);
    add_move(tests, "gates", dtype, run_gated);
    add_move(tests, "arrays", dtype, run_vector_arrays);
  }
}

}  // namespace plugrad::conformance

// Tests gated access of single elements, and private arrays: L1 for f32, i32 and bool.
#include "conformance/kernels/elements.h"
#include "conformance/kernels/lanes/lanes.h"

namespace plugrad::conformance {
namespace {

constexpr uint64_t kGatedElements = 192;
constexpr int64_t kWild = 0x7ffffff0;  // far outside every buffer, also in bytes

// out[i] = i odd ? in[i] : other, with a wild index for gated-off accesses; then every third
// element is stored again, behind another gate.
Bytes gate_block(uint32_t dtype, uint64_t other) {
  IrBuilder ir("gates");
  ir.set_groups(kGatedElements / 64);
  const Value input = ir.buffer(dtype, kGatedElements, kInput);
  const Value loaded = ir.buffer(dtype, kGatedElements, kOutput);
  const Value stored = ir.buffer(dtype, kGatedElements, kBoth);
  const Value base = ir.alu(PGR_OP_MUL, {ir.group_id(0), index_constant(ir, 64)});
  const Value loop = ir.loop(index_constant(ir, 0), index_constant(ir, 64));
  const Value at = ir.alu(PGR_OP_ADD, {base, loop});
  const Value odd = ir.alu(PGR_OP_AND, {at, index_constant(ir, 1)});
  const Value gate = ir.alu(PGR_OP_CMPNE, {odd, index_constant(ir, 0)});
  const Value wild = ir.alu(PGR_OP_WHERE, {gate, at, index_constant(ir, kWild)});
  const Value value = ir.load_gated(input, wild, gate, ir.constant_bits(dtype, other));
  ir.store(loaded, at, value);
  const Value third = ir.alu(
      PGR_OP_CMPEQ, {ir.alu(PGR_OP_MOD, {at, index_constant(ir, 3)}), index_constant(ir, 0)});
  const Value wilder = ir.alu(PGR_OP_WHERE, {third, at, index_constant(ir, -kWild)});
  ir.store_gated(stored, wilder, value, third);
  ir.end_loop(loop);
  return ir.finish();
}

void run_gated_elements(Context& context, uint32_t dtype) {
  Random random(context.seed());
  const uint64_t other = dtype == PGR_DTYPE_BOOL ? 1 : 7;
  const std::vector<uint64_t> values = mixed_values(dtype, kGatedElements, random);
  const std::vector<uint64_t> before = mixed_values(dtype, kGatedElements, random);
  std::vector<Bytes> buffers = {pack(dtype, values), pack(dtype, before), pack(dtype, before)};
  run_block(context, gate_block(dtype, other), buffers);
  std::vector<uint64_t> loaded(kGatedElements), stored = before;
  for (size_t i = 0; i < kGatedElements; ++i) {
    loaded[i] = i % 2 ? values[i] : other;
    if (i % 3 == 0) stored[i] = loaded[i];
  }
  expect_equal(dtype, loaded, unpack(dtype, buffers[1]), "loads behind a gate");
  expect_equal(dtype, stored, unpack(dtype, buffers[2]), "stores behind a gate");
}

// Writes an array in one order and reads it in another; each group has its own array.
void run_private_arrays(Context& context, uint32_t dtype) {
  constexpr int64_t kSize = 24, kGroups = 5;
  IrBuilder ir("private_arrays");
  ir.set_groups(kGroups);
  const Value input = ir.buffer(dtype, kSize * kGroups, kInput);
  const Value output = ir.buffer(dtype, kSize * kGroups, kOutput);
  const Value array = ir.array(PGR_SPACE_PRIVATE, dtype, kSize);
  const Value base = ir.alu(PGR_OP_MUL, {ir.group_id(0), index_constant(ir, kSize)});
  const Value fill = ir.loop(index_constant(ir, 0), index_constant(ir, kSize));
  // 7 and 24 are coprime, so that every element is written once.
  const Value mixed = ir.alu(
      PGR_OP_MOD, {ir.alu(PGR_OP_MUL, {fill, index_constant(ir, 7)}), index_constant(ir, kSize)});
  ir.store(array, mixed, ir.load(input, ir.alu(PGR_OP_ADD, {base, fill})));
  ir.end_loop(fill);
  const Value read = ir.loop(index_constant(ir, 0), index_constant(ir, kSize));
  ir.store(output, ir.alu(PGR_OP_ADD, {base, read}), ir.load(array, read));
  ir.end_loop(read);
  Random random(context.seed());
  const std::vector<uint64_t> values = mixed_values(dtype, kSize * kGroups, random);
  std::vector<Bytes> buffers = {pack(dtype, values), pack(dtype, values)};
  run_block(context, ir.finish(), buffers);
  std::vector<uint64_t> want(values.size());
  for (int64_t group = 0; group < kGroups; ++group)
    for (int64_t i = 0; i < kSize; ++i)
      want[static_cast<size_t>(group * kSize + i * 7 % kSize)] =
          values[static_cast<size_t>(group * kSize + i)];
  expect_equal(dtype, want, unpack(dtype, buffers[1]), "a private array");
}

// Constants of every edge value.
void run_constants(Context& context, uint32_t dtype) {
  const std::vector<uint64_t> values = edge_values(dtype);
  IrBuilder ir("constants");
  const Value output = ir.buffer(dtype, values.size(), kOutput);
  for (size_t i = 0; i < values.size(); ++i) {
    const int unused = 64 - width_of(dtype);
    const auto extended = static_cast<int64_t>(values[i] << unused) >> unused;
    const uint64_t bits = is_signed(dtype) ? static_cast<uint64_t>(extended) : values[i];
    ir.store(output, index_constant(ir, static_cast<int64_t>(i)), ir.constant_bits(dtype, bits));
  }
  std::vector<Bytes> buffers = {pack(dtype, std::vector<uint64_t>(values.size()))};
  run_block(context, ir.finish(), buffers);
  expect_equal(dtype, values, unpack(dtype, buffers[0]), "constants");
}

void add_access(Tests& tests, const char* name, uint32_t dtype, void (*run)(Context&, uint32_t)) {
  const bool is_core = dtype == PGR_DTYPE_F32 || dtype == PGR_DTYPE_I32 || dtype == PGR_DTYPE_BOOL;
  Test test;
  test.level = is_core ? Level::L1 : Level::L2;
  test.id = std::string(is_core ? "l1" : "l2") + ".access." + name + "." + id_of_dtype(dtype);
  test.run = [dtype, run](Context& context) { run(context, dtype); };
  tests.push_back(std::move(test));
}

}  // namespace

void add_access_tests(Tests& tests) {
  for (uint32_t dtype = PGR_DTYPE_BOOL; dtype < PGR_DTYPE_COUNT; ++dtype) {
    add_access(tests, "gates", dtype, run_gated_elements);
    add_access(tests, "arrays", dtype, run_private_arrays);
    add_access(tests, "constants", dtype, run_constants);
  }
}

}  // namespace plugrad::conformance

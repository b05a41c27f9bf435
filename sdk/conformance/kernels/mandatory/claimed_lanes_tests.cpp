// L1: loads, computes and stores every vector width that the device claims for a dtype.
#include <algorithm>

#include "conformance/kernels/elements.h"
#include "conformance/kernels/mandatory/core.h"
#include "plugrad/sdk/float_bits.h"
#include "plugrad/sdk/op_info.h"

namespace plugrad::conformance {
namespace {

constexpr uint64_t kClaimedElements = 128;  // twice the widest vector of kernel IR

// The first claimed binary op, for combining two vectors; otherwise none.
uint32_t op_for(const Device& device, uint32_t dtype) {
  for (uint32_t op : {PGR_OP_ADD, PGR_OP_XOR, PGR_OP_MAX})
    if (device.claims(op, dtype) && (op != PGR_OP_XOR || !sdk::dtype_info(dtype)->is_float) &&
        (op != PGR_OP_ADD || dtype != PGR_DTYPE_BOOL))
      return op;
  return PGR_OP_NOP;
}

// Small integers: every dtype represents them and their sums.
uint64_t element(uint32_t dtype, uint64_t value) {
  if (dtype == PGR_DTYPE_BOOL) return value & 1;
  return sdk::dtype_info(dtype)->is_float ? sdk::encode_float(dtype, static_cast<double>(value))
                                          : value;
}

uint64_t together(uint32_t op, uint64_t a, uint64_t b) {
  if (op == PGR_OP_ADD) return a + b;
  if (op == PGR_OP_XOR) return a ^ b;
  return op == PGR_OP_MAX ? std::max(a, b) : a;
}

// out[i] = op(a[i], b[i]) in vectors of `lanes`.
Bytes lanes_block(uint32_t dtype, uint32_t op, uint32_t lanes) {
  IrBuilder ir("lanes_" + id_of_dtype(dtype) + "_" + std::to_string(lanes));
  const Value a = ir.buffer(dtype, kClaimedElements, kInput),
              b = ir.buffer(dtype, kClaimedElements, kInput);
  const Value out = ir.buffer(dtype, kClaimedElements, kOutput);
  const Value loop = ir.loop(index_constant(ir, 0),
                             index_constant(ir, static_cast<int64_t>(kClaimedElements / lanes)));
  const Value at = ir.alu(PGR_OP_MUL, {loop, index_constant(ir, lanes)});
  const Value x = ir.load(a, at, lanes);
  ir.store(out, at, op == PGR_OP_NOP ? x : ir.emit(op, dtype, lanes, {x, ir.load(b, at, lanes)}));
  ir.end_loop(loop);
  return ir.finish();
}

void run_claimed_lanes(Context& context, uint32_t dtype) {
  if (!context.device().stores(dtype))
    throw Unsupported("the device does not claim buffers of " + id_of_dtype(dtype));
  const uint32_t op = op_for(context.device(), dtype);
  std::vector<uint64_t> a(kClaimedElements), b(kClaimedElements), want(kClaimedElements);
  for (uint64_t i = 0; i < kClaimedElements; ++i) {
    const uint64_t one = i % 5, other = i / 5 % 3;
    a[i] = element(dtype, one);
    b[i] = element(dtype, other);
    want[i] = dtype == PGR_DTYPE_BOOL ? together(op, one & 1, other & 1)
                                      : element(dtype, together(op, one, other));
  }
  for (uint32_t lanes : vector_widths(context, {dtype})) {
    std::vector<Bytes> buffers = {pack(dtype, a), pack(dtype, b),
                                  pack(dtype, std::vector<uint64_t>(kClaimedElements))};
    run_block(context, lanes_block(dtype, op, lanes), buffers);
    expect_equal(dtype, want, unpack(dtype, buffers[2]),
                 "vectors of " + std::to_string(lanes) + " lanes");
  }
}

}  // namespace

void add_claimed_lanes_tests(Tests& tests) {
  for (uint32_t dtype = PGR_DTYPE_BOOL; dtype < PGR_DTYPE_COUNT; ++dtype) {
    Test test;
    test.id = "l1.lanes." + id_of_dtype(dtype);
    test.dtype = id_of_dtype(dtype);
    test.run = [dtype](Context& context) { run_claimed_lanes(context, dtype); };
    tests.push_back(std::move(test));
  }
}

}  // namespace plugrad::conformance

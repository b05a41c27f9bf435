// Tests the compile option `contract`. Off: product and sum round separately. On: they may round
// once, unless the product has another use.
#include <fmt/format.h>

#include "conformance/kernels/elements.h"
#include "conformance/kernels/lanes/lanes.h"

namespace plugrad::conformance {
namespace {

constexpr size_t kContractElements = 512;

// sum[i] = a*b + c and, with a second use, product[i] = a*b.
Bytes contract_block(uint32_t dtype, bool contract, bool has_second_use) {
  IrBuilder ir("multiply_add");
  ir.set_contract(contract);
  ir.set_groups(kContractElements / kElementsPerGroup);
  std::vector<Value> buffers;
  for (int i = 0; i < 3; ++i) buffers.push_back(ir.buffer(dtype, kContractElements, kInput));
  const Value sum = ir.buffer(dtype, kContractElements, kOutput),
              product = ir.buffer(dtype, kContractElements, kOutput);
  const Value base = ir.alu(PGR_OP_MUL, {ir.group_id(0), index_constant(ir, kElementsPerGroup)});
  const Value loop = ir.loop(index_constant(ir, 0), index_constant(ir, kElementsPerGroup));
  const Value at = ir.alu(PGR_OP_ADD, {base, loop});
  const Value c = ir.load(buffers[2], at);
  const Value multiplied = ir.alu(PGR_OP_MUL, {ir.load(buffers[0], at), ir.load(buffers[1], at)});
  ir.store(sum, at, ir.alu(PGR_OP_ADD, {multiplied, c}));
  ir.store(product, at, has_second_use ? multiplied : c);
  ir.end_loop(loop);
  return ir.finish();
}

struct Operands {
  std::vector<uint64_t> a, b, c, twice, once;  // and both results
};

// The sum cancels almost completely, so that the product's rounding error dominates.
Operands make_operands(uint32_t dtype, Random& random) {
  Operands all;
  const Operation mul = make_operation(PGR_OP_MUL, dtype), add = make_operation(PGR_OP_ADD, dtype);
  const Operation fma = make_operation(PGR_OP_FMA, dtype);
  while (all.a.size() < kContractElements) {
    const uint64_t a = tame_value(dtype, random), b = tame_value(dtype, random);
    const uint64_t product = expected_result(mul, std::vector{a, b}).bits;
    const uint64_t near = product ^ format_of(dtype).sign_bit();
    const uint64_t c = all.a.size() % 2 ? near + random() % 8 : tame_value(dtype, random);
    all.a.push_back(a);
    all.b.push_back(b);
    all.c.push_back(c);
    all.twice.push_back(expected_result(add, std::vector{product, c}).bits);
    all.once.push_back(expected_result(fma, std::vector{a, b, c}).bits);
  }
  return all;
}

void run_multiply_add(Context& context, uint32_t dtype, bool contract, bool has_second_use) {
  Random random(context.seed());
  const Operands all = make_operands(dtype, random);
  std::vector<Bytes> buffers = {pack(dtype, all.a), pack(dtype, all.b), pack(dtype, all.c),
                                pack(dtype, all.c), pack(dtype, all.c)};
  run_block(context, contract_block(dtype, contract, has_second_use), buffers);
  const std::vector<uint64_t> got = unpack(dtype, buffers[3]);
  for (size_t i = 0; i < kContractElements; ++i) {
    if (got[i] == all.twice[i] || (is_zero(dtype, got[i]) && is_zero(dtype, all.twice[i])))
      continue;
    if (contract && !has_second_use && got[i] == all.once[i]) continue;
    throw Failed(fmt::format(
        "{} * {} + {} gave {}; rounded after each op it is {}, rounded once {}{}",
        describe(dtype, all.a[i]), describe(dtype, all.b[i]), describe(dtype, all.c[i]),
        describe(dtype, got[i]), describe(dtype, all.twice[i]), describe(dtype, all.once[i]),
        contract && has_second_use ? "; the product has a second use, so nothing may be fused"
        : contract                 ? ""
                                   : ", which only the contract flag would allow"));
  }
}

void add_contract(Tests& tests, const char* name, uint32_t dtype, bool contract, bool second_use) {
  Test test;
  test.id = "l2.contract." + std::string(name) + "." + id_of_dtype(dtype);
  test.level = Level::L2;
  test.run = [=](Context& context) { run_multiply_add(context, dtype, contract, second_use); };
  tests.push_back(std::move(test));
}

}  // namespace

void add_contract_tests(Tests& tests) {
  for (uint32_t dtype : {PGR_DTYPE_F16, PGR_DTYPE_BF16, PGR_DTYPE_F32, PGR_DTYPE_F64}) {
    add_contract(tests, "off", dtype, false, false);
    add_contract(tests, "on", dtype, true, false);
    add_contract(tests, "second_use", dtype, true, true);
  }
}

}  // namespace plugrad::conformance

#include "conformance/report/perf_kernels.h"

#include <algorithm>

#include "conformance/kernels/elements.h"

namespace plugrad::conformance {
namespace {

constexpr uint32_t kReal = PGR_DTYPE_F32, kIndex = PGR_DTYPE_I32;
constexpr uint64_t kItemVectors = 8;  // vectors per work-item in the addition
// an addition has a latency of about 4 cycles, and two start per cycle
constexpr uint64_t kChains = 8;
constexpr uint64_t kItemRows = 4;      // rows of the product per work-item
constexpr uint64_t kMostColumns = 64;  // maximum columns of the product per group

// Index arithmetic on one lane.
struct Index {
  IrBuilder& ir;
  Value constant(uint64_t value) { return ir.constant_int(kIndex, static_cast<int64_t>(value)); }
  Value add(Value a, Value b) { return ir.alu(PGR_OP_ADD, {a, b}); }
  Value times(Value a, uint64_t factor) { return ir.alu(PGR_OP_MUL, {a, constant(factor)}); }
};

Value item_of(IrBuilder& ir, const Spread& spread) {
  return spread.items > 1 ? ir.local_id(0) : ir.constant_int(kIndex, 0);
}

Value multiply_add(IrBuilder& ir, const Spread& spread, Value a, Value b, Value c) {
  if (spread.fma) return ir.alu(PGR_OP_FMA, {a, b, c});
  return ir.alu(PGR_OP_ADD, {ir.alu(PGR_OP_MUL, {a, b}), c});
}

}  // namespace

Spread spread_of(const Device& device) {
  const pgr_device_caps& caps = device.caps();
  Spread spread;
  spread.lanes = std::clamp(caps.vector_lanes[kReal], 1u, 16u);
  const bool local = caps.has_local && device.claims(PGR_OP_LOCAL_ID, kIndex);
  const uint32_t most = std::min({caps.max_local_size[0], caps.max_local_total, 64u});
  while (local && spread.items * 2 <= most) spread.items *= 2;
  // One work-item fills a processor whose groups are threads.
  if (caps.subgroup_size <= 1) spread.items = 1;
  spread.groups = std::max(caps.threads, 1u);
  spread.fma = device.claims(PGR_OP_FMA, kReal);
  return spread;
}

TimedKernel make_nothing_kernel() {
  IrBuilder ir("nothing");
  const Value out = ir.buffer(kReal, 1, kOutput);
  ir.store(out, ir.constant_int(kIndex, 0), ir.constant_float(kReal, 1));
  TimedKernel kernel;
  kernel.block = ir.finish();
  kernel.buffer_bytes = {4};
  return kernel;
}

TimedKernel make_add_kernel(const Spread& spread, uint64_t count) {
  const uint64_t step = uint64_t{spread.items} * spread.lanes, chunk = step * kItemVectors;
  TimedKernel kernel;
  kernel.groups[0] = std::max<uint64_t>(count / chunk, 1);
  kernel.items = spread.items;
  count = kernel.groups[0] * chunk;
  IrBuilder ir("add");
  ir.set_groups(kernel.groups[0]);
  ir.set_local(spread.items);
  const Value a = ir.buffer(kReal, count, kInput), b = ir.buffer(kReal, count, kInput),
              out = ir.buffer(kReal, count, kOutput);
  Index index{ir};
  const Value start =
      index.add(index.times(ir.group_id(0), chunk), index.times(item_of(ir, spread), spread.lanes));
  const Value loop = ir.loop(index.constant(0), index.constant(kItemVectors));
  const Value at = index.add(start, index.times(loop, step));
  const Value left = ir.load(a, at, spread.lanes), right = ir.load(b, at, spread.lanes);
  ir.store(out, at, ir.alu(PGR_OP_ADD, {left, right}));
  ir.end_loop(loop);
  kernel.block = ir.finish();
  kernel.buffer_bytes.assign(3, count * 4);
  kernel.operations = static_cast<double>(count);
  kernel.bytes = 12.0 * static_cast<double>(count);
  return kernel;
}

TimedKernel make_chains_kernel(const Spread& spread, uint64_t steps) {
  TimedKernel kernel;
  kernel.groups[0] = uint64_t{spread.groups} * 4;
  kernel.items = spread.items;
  const uint64_t items = kernel.groups[0] * spread.items;
  IrBuilder ir("chains");
  ir.set_groups(kernel.groups[0]);
  ir.set_local(spread.items);
  const Value out = ir.buffer(kReal, items * spread.lanes, PGR_PARAM_READ | PGR_PARAM_WRITE);
  const Value sums = ir.array(PGR_SPACE_PRIVATE, kReal, kChains * spread.lanes, spread.lanes);
  Index index{ir};
  const Value at = index.times(
      index.add(index.times(ir.group_id(0), spread.items), item_of(ir, spread)), spread.lanes);
  // Loaded, so that compilers cannot fold the chains.
  const Value factor = ir.load(out, at, spread.lanes);
  for (uint64_t chain = 0; chain < kChains; ++chain)
    ir.store(sums, index.constant(chain * spread.lanes), factor);
  const Value loop = ir.loop(index.constant(0), index.constant(steps));
  for (uint64_t chain = 0; chain < kChains; ++chain) {
    const Value place = index.constant(chain * spread.lanes);
    const Value sum = ir.load(sums, place, spread.lanes);
    ir.store(sums, place, multiply_add(ir, spread, sum, factor, factor));
  }
  ir.end_loop(loop);
  Value total = ir.load(sums, index.constant(0), spread.lanes);
  for (uint64_t chain = 1; chain < kChains; ++chain)
    total = ir.alu(PGR_OP_ADD,
                   {total, ir.load(sums, index.constant(chain * spread.lanes), spread.lanes)});
  ir.store(out, at, total);
  kernel.block = ir.finish();
  kernel.buffer_bytes = {items * spread.lanes * 4};
  kernel.operations = 2.0 * static_cast<double>(kChains * steps * items * spread.lanes);
  return kernel;
}

TimedKernel make_product_kernel(const Spread& given, uint64_t size) {
  Spread spread = given;
  spread.items = std::min<uint32_t>(given.items, static_cast<uint32_t>(kMostColumns / given.lanes));
  const uint64_t columns = uint64_t{spread.items} * spread.lanes;
  TimedKernel kernel;
  kernel.groups[0] = size / columns;
  kernel.groups[1] = size / kItemRows;
  kernel.items = spread.items;
  IrBuilder ir("product");
  ir.set_groups(kernel.groups[0], kernel.groups[1]);
  ir.set_local(spread.items);
  const Value a = ir.buffer(kReal, size * size, kInput), b = ir.buffer(kReal, size * size, kInput),
              out = ir.buffer(kReal, size * size, kOutput);
  const Value sums = ir.array(PGR_SPACE_PRIVATE, kReal, kItemRows * spread.lanes, spread.lanes);
  Index index{ir};
  const Value column = index.add(index.times(ir.group_id(0), columns),
                                 index.times(item_of(ir, spread), spread.lanes));
  const Value row = index.times(ir.group_id(1), kItemRows * size);
  const Value zero = ir.splat(ir.constant_float(kReal, 0), spread.lanes);
  for (uint64_t r = 0; r < kItemRows; ++r) ir.store(sums, index.constant(r * spread.lanes), zero);
  const Value loop = ir.loop(index.constant(0), index.constant(size));
  const Value right = ir.load(b, index.add(index.times(loop, size), column), spread.lanes);
  for (uint64_t r = 0; r < kItemRows; ++r) {
    const Value place = index.constant(r * spread.lanes);
    const Value left = ir.load(a, index.add(index.add(row, index.constant(r * size)), loop));
    const Value wide = spread.lanes > 1 ? ir.splat(left, spread.lanes) : left;
    ir.store(sums, place,
             multiply_add(ir, spread, wide, right, ir.load(sums, place, spread.lanes)));
  }
  ir.end_loop(loop);
  for (uint64_t r = 0; r < kItemRows; ++r)
    ir.store(out, index.add(index.add(row, index.constant(r * size)), column),
             ir.load(sums, index.constant(r * spread.lanes), spread.lanes));
  kernel.block = ir.finish();
  kernel.buffer_bytes.assign(3, size * size * 4);
  const double n = static_cast<double>(size);
  kernel.operations = 2 * n * n * n;
  kernel.bytes = 12 * n * n;
  return kernel;
}

}  // namespace plugrad::conformance

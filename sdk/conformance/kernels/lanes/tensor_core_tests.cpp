// Tests each claimed tensor core on one tile, loaded and stored by its layout. All elements differ,
// so that a misplaced one is detected.
#include <fmt/format.h>

#include <cmath>

#include "conformance/kernels/elements.h"
#include "conformance/kernels/lanes/lanes.h"
#include "plugrad/sdk/float_bits.h"
#include "plugrad/sdk/tensor_core.h"

namespace plugrad::conformance {
namespace {

constexpr uint32_t kTiles = 3;  // along k, one WMMA each

struct PlaceValues {
  Value m, n, k;
};

// Coordinates of each lane, computed from the bits of the work-item's index.
PlaceValues places(IrBuilder& ir, const sdk::TileLayout& layout, Value item, uint32_t lane) {
  const sdk::MatrixPlace first = sdk::place_of(layout, 0, lane);
  PlaceValues at{index_constant(ir, first.m), index_constant(ir, first.n),
                 index_constant(ir, first.k)};
  for (uint32_t bit = 0; bit < 32; ++bit) {
    const sdk::MatrixPlace own = sdk::place_of(layout, 1u << bit, 0);
    const auto add = [&](Value& axis, uint32_t weight) {
      if (weight == 0) return;
      const Value shifted = ir.alu(PGR_OP_SHR, {item, index_constant(ir, bit)});
      const Value set = ir.alu(PGR_OP_AND, {shifted, index_constant(ir, 1)});
      axis = ir.alu(PGR_OP_ADD, {axis, ir.alu(PGR_OP_MUL, {set, index_constant(ir, weight)})});
    };
    add(at.m, own.m), add(at.n, own.n), add(at.k, own.k);
  }
  return at;
}

Value join(IrBuilder& ir, uint32_t dtype, const std::vector<Value>& lanes) {
  return ir.emit(PGR_OP_VECTOR, dtype, static_cast<uint32_t>(lanes.size()), lanes);
}

// d[m, n] = a[m, k] * b[k, n] + c[m, n] of one team, in a loop over tiles along k.
Bytes tile_block(const pgr_tensor_core& core, uint32_t number) {
  const sdk::TileLayout of_a = sdk::layout_of_a(core), of_b = sdk::layout_of_b(core),
                        of_c = sdk::layout_of_c(core);
  IrBuilder ir("tensor_core");
  ir.set_local(core.threads);
  const uint32_t depth = core.k * kTiles;
  const Value a = ir.buffer(core.dtype_in, uint64_t{core.m} * depth, kInput);
  const Value b = ir.buffer(core.dtype_in, uint64_t{depth} * core.n, kInput);
  const Value c = ir.buffer(core.dtype_out, uint64_t{core.m} * core.n, kInput);
  const Value d = ir.buffer(core.dtype_out, uint64_t{core.m} * core.n, kOutput);
  const Value sum = ir.array(PGR_SPACE_PRIVATE, core.dtype_out, core.elems_c, core.elems_c);
  const Value item = ir.local_id(0), zero = index_constant(ir, 0);
  std::vector<Value> lanes;
  for (uint32_t lane = 0; lane < core.elems_c; ++lane) {
    const PlaceValues at = places(ir, of_c, item, lane);
    lanes.push_back(ir.load(c, nest(ir, at.m, core.n, at.n)));
  }
  ir.store(sum, zero, join(ir, core.dtype_out, lanes));
  const Value tile = ir.loop(zero, index_constant(ir, kTiles));
  const Value first = ir.alu(PGR_OP_MUL, {tile, index_constant(ir, core.k)});
  std::vector<Value> rows, columns;
  for (uint32_t lane = 0; lane < core.elems_a; ++lane) {
    const PlaceValues at = places(ir, of_a, item, lane);
    rows.push_back(ir.load(a, nest(ir, at.m, depth, ir.alu(PGR_OP_ADD, {first, at.k}))));
  }
  for (uint32_t lane = 0; lane < core.elems_b; ++lane) {
    const PlaceValues at = places(ir, of_b, item, lane);
    columns.push_back(ir.load(b, nest(ir, ir.alu(PGR_OP_ADD, {first, at.k}), core.n, at.n)));
  }
  const Value product = ir.emit(PGR_OP_WMMA, core.dtype_out, core.elems_c,
                                {join(ir, core.dtype_in, rows), join(ir, core.dtype_in, columns),
                                 ir.load(sum, zero, core.elems_c)},
                                number);
  ir.store(sum, zero, product);
  ir.end_loop(tile);
  const Value total = ir.load(sum, zero, core.elems_c);
  for (uint32_t lane = 0; lane < core.elems_c; ++lane) {
    const PlaceValues at = places(ir, of_c, item, lane);
    ir.store(d, nest(ir, at.m, core.n, at.n), ir.lane(total, lane));
  }
  return ir.finish();
}

// Compares with the bound of docs/kernel-ir.md for kTiles chained products.
void check_tile(Context& context, const pgr_tensor_core& core, std::span<const uint64_t> a,
                std::span<const uint64_t> b, std::span<const uint64_t> c,
                std::span<const uint64_t> got) {
  const uint32_t depth = core.k * kTiles;
  for (uint32_t m = 0; m < core.m; ++m)
    for (uint32_t n = 0; n < core.n; ++n) {
      double exact = sdk::decode_float(core.dtype_out, c[m * core.n + n]), size = std::abs(exact);
      for (uint32_t k = 0; k < depth; ++k) {
        const double product =
            sdk::input_value(core, a[m * depth + k]) * sdk::input_value(core, b[k * core.n + n]);
        exact += product;
        size += std::abs(product);
      }
      const double bound = size * (core.k + 1) * kTiles * 0x1p-23;
      const double result = sdk::decode_float(core.dtype_out, got[m * core.n + n]);
      const double error = std::abs(result - exact) / bound;
      const std::string where = fmt::format("[{}, {}]", m, n);
      context.measure("error/bound", error, where);
      expect(error <= 1,
             fmt::format("{} of the product is {}, the exact value {}: {:.3g} times the "
                         "error that is allowed",
                         where, result, exact, error));
    }
}

void run_tensor_core(Context& context, const pgr_tensor_core& core, uint32_t number) {
  const std::string problem = sdk::problem_of(core);
  expect(problem.empty(), fmt::format("tensor core {}: {}", number, problem));
  Random random(context.seed());
  const size_t depth = size_t{core.k} * kTiles;
  const auto a = tame_values(core.dtype_in, core.m * depth, random);
  const auto b = tame_values(core.dtype_in, core.n * depth, random);
  const auto c = tame_values(core.dtype_out, size_t{core.m} * core.n, random);
  std::vector<Bytes> buffers = {pack(core.dtype_in, a), pack(core.dtype_in, b),
                                pack(core.dtype_out, c),
                                pack(core.dtype_out, std::vector<uint64_t>(c.size()))};
  run_block(context, tile_block(core, number), buffers);
  check_tile(context, core, a, b, c, unpack(core.dtype_out, buffers[3]));
}

// All tensor cores of the dtype that kernels may use.
void run_tiles(Context& context, uint32_t dtype) {
  const auto cores = sdk::tensor_cores_of(context.device().caps());
  const bool is_claimed = context.device().claims(PGR_OP_WMMA, dtype);
  uint32_t found = 0;
  for (uint32_t number = 0; number < cores.size(); ++number) {
    if (cores[number].dtype_in != dtype || !sdk::is_used(cores[number])) continue;
    ++found;
    expect(is_claimed, fmt::format("tensor core {} is listed, op_dtypes does not claim WMMA on {}",
                                   number, id_of_dtype(dtype)));
    run_tensor_core(context, cores[number], number);
  }
  expect(found > 0 || !is_claimed, fmt::format("op_dtypes claims WMMA on {}, no tensor core of it "
                                               "is listed",
                                               id_of_dtype(dtype)));
  if (found == 0)
    throw Unsupported(fmt::format("the device has no tensor core of {}", id_of_dtype(dtype)));
}

}  // namespace

void add_tensor_core_tests(Tests& tests) {
  for (uint32_t dtype : {PGR_DTYPE_F16, PGR_DTYPE_BF16, PGR_DTYPE_F32}) {
    Test test;
    test.id = "l2.wmma." + id_of_dtype(dtype);
    test.op = "wmma";
    test.level = Level::L2;
    test.run = [=](Context& context) { run_tiles(context, dtype); };
    tests.push_back(std::move(test));
  }
}

}  // namespace plugrad::conformance

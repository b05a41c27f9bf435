// A tensor core's product: exact products, added in double and rounded once.
#include <bit>

#include "plugrad/sdk/float_bits.h"
#include "plugrad/sdk/guard.h"
#include "program.h"

namespace plugrad::sdk {
namespace {

// Rows of A and of the transpose of B.
struct Tile {
  std::vector<double> values;
  uint32_t columns;
  double& at(uint32_t row, uint32_t column) { return values[row * columns + column]; }
};

std::string lanes_text(const IrView& ir, uint32_t number) {
  const pgr_ir_inst& inst = ir.inst(number);
  return std::to_string(inst.lanes) + " of " + std::string(dtype_name(inst.dtype));
}

}  // namespace

void check_wmma(const Interpreter::Program& program, uint32_t number) {
  const IrView& ir = program.ir;
  const std::string where = "kernel " + ir.name() + ", instruction " + std::to_string(number);
  const uint64_t arg = ir.inst(number).arg;
  require(arg < program.tensor_cores.size(), PGR_STATUS_UNSUPPORTED,
          where + ": WMMA by tensor core " + std::to_string(arg) + " of a device that has " +
              std::to_string(program.tensor_cores.size()));
  const pgr_tensor_core& core = program.tensor_cores[arg];
  const std::string problem = problem_of(core);
  require(problem.empty(), PGR_STATUS_UNSUPPORTED,
          where + ": tensor core " + std::to_string(arg) + ": " + problem);
  const uint32_t lanes[] = {core.elems_a, core.elems_b, core.elems_c};
  const uint32_t dtypes[] = {core.dtype_in, core.dtype_in, core.dtype_out};
  for (uint32_t i = 0; i < 3; ++i) {
    const uint32_t source = ir.source(number, i);
    require(ir.inst(source).lanes == lanes[i] && ir.inst(source).dtype == dtypes[i],
            PGR_STATUS_UNSUPPORTED,
            where + ": source " + std::to_string(i) + " has " + lanes_text(ir, source) +
                ", tensor core " + std::to_string(arg) + " takes " + std::to_string(lanes[i]) +
                " of " + std::string(dtype_name(dtypes[i])));
  }
  const uint32_t* size = ir.header().local_size;
  const uint64_t items = uint64_t{size[0]} * size[1] * size[2];
  require(items % core.threads == 0 && (program.team == 1 || program.team == core.threads),
          PGR_STATUS_INVALID_ARGUMENT,
          where + ": WMMA is shared by " + std::to_string(core.threads) +
              " work-items, of which a group of " + std::to_string(items) + " has no whole number");
}

void run_wmma(const pgr_tensor_core& core, const Step& step, std::span<uint64_t* const> slots) {
  const TileLayout of_a = layout_of_a(core), of_b = layout_of_b(core), of_c = layout_of_c(core);
  Tile a{std::vector<double>(size_t{core.m} * core.k), core.k},
      b{std::vector<double>(size_t{core.n} * core.k), core.k};
  for (uint32_t item = 0; item < core.threads; ++item) {
    for (uint32_t lane = 0; lane < core.elems_a; ++lane) {
      const MatrixPlace at = place_of(of_a, item, lane);
      a.at(at.m, at.k) = input_value(core, slots[item][step.src[0] + lane]);
    }
    for (uint32_t lane = 0; lane < core.elems_b; ++lane) {
      const MatrixPlace at = place_of(of_b, item, lane);
      b.at(at.n, at.k) = input_value(core, slots[item][step.src[1] + lane]);
    }
  }
  for (uint32_t item = 0; item < core.threads; ++item)
    for (uint32_t lane = 0; lane < core.elems_c; ++lane) {
      const MatrixPlace at = place_of(of_c, item, lane);
      double sum = decode_float(core.dtype_out, slots[item][step.src[2] + lane]);
      for (uint32_t k = 0; k < core.k; ++k) sum += a.at(at.m, k) * b.at(at.n, k);
      slots[item][step.dst + lane] = encode_float(core.dtype_out, sum);
    }
}

}  // namespace plugrad::sdk

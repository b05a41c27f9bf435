// Decides which kernels must match the interpreter exactly, and the tolerance of the others. Also
// applied to shrunk kernels.
#include <algorithm>

#include "conformance/kernels/random/random_kernel.h"
#include "plugrad/sdk/op_info.h"

namespace plugrad::conformance {
namespace {

class Analysis {
 public:
  Analysis(const sdk::IrView& ir, const pgr_device_caps& caps) : ir_(ir), caps_(caps) {
    result_.tolerance.resize(ir.params().size());
    near_.resize(ir.insts().size());
    is_input_.resize(ir.insts().size());
    for (uint32_t i = 0; i < ir.insts().size(); ++i) visit(i);
    Comparison by_buffer;
    for (size_t i = 0; i < ir.params().size(); ++i)
      if (ir.params()[i].kind == PGR_PARAM_BUFFER)
        by_buffer.tolerance.push_back(result_.tolerance[i]);
    by_buffer.obstacle = result_.obstacle;
    result_ = std::move(by_buffer);
  }
  Comparison take() { return std::move(result_); }

 private:
  void refuse(uint32_t number, const char* why) {
    if (result_.obstacle.empty())
      result_.obstacle = "instruction " + std::to_string(number) + " " + why;
  }

  const pgr_ir_inst& source(uint32_t number, uint32_t which) const {
    return ir_.inst(ir_.source(number, which));
  }

  void visit(uint32_t number) {
    const pgr_ir_inst& inst = ir_.inst(number);
    if (inst.op == PGR_OP_STORE) return visit_store(number);
    for (uint32_t s : ir_.sources(number))
      if (near_[s] > 0) refuse(number, "uses a result that is exact to a few ulp only");
    if (inst.op == PGR_OP_LOAD) return visit_load(number);
    if (inst.op == PGR_OP_ATOMIC_ADD && is_float(source(number, 2).dtype))
      refuse(number, "adds floats in any order");
    if (sdk::op_info(inst.op)->op_class == PGR_OP_CLASS_ALU) visit_alu(number);
  }

  void visit_load(uint32_t number) {
    const pgr_ir_inst& pointer = source(number, 0);
    is_input_[number] = pointer.op == PGR_OP_PARAM &&
                        !(ir_.params()[pointer.arg].flags & PGR_PARAM_WRITE) &&
                        ir_.sources(number).size() == 2;
    if (pointer.op != PGR_OP_ARRAY) return;
    // Arrays have unspecified initial contents.
    for (uint32_t i = 0; i < number; ++i)
      if (ir_.inst(i).op == PGR_OP_STORE && source(i, 0).op == PGR_OP_ARRAY &&
          source(i, 0).arg == pointer.arg)
        return;
    refuse(number, "reads an array that nothing has been stored to");
  }

  void visit_store(uint32_t number) {
    const uint32_t value = ir_.source(number, 2);
    const pgr_ir_inst& pointer = source(number, 0);
    if (near_[value] == 0) return;
    if (pointer.op == PGR_OP_ARRAY || (ir_.params()[pointer.arg].flags & PGR_PARAM_READ))
      return refuse(number, "stores what is exact to a few ulp only where it may be read again");
    double& tolerance = result_.tolerance[pointer.arg];
    tolerance = std::max(tolerance, near_[value]);
  }

  void visit_alu(uint32_t number) {
    const pgr_ir_inst& inst = ir_.inst(number);
    const uint32_t dtype = source(number, inst.op == PGR_OP_WHERE ? 1 : 0).dtype;
    const bool from_float = is_float(dtype);
    if (!is_reproducible(inst.op, dtype, caps_)) {
      if (!is_float(inst.dtype)) return refuse(number, "decides by a number that may be flushed");
      // The interpreter's own error is below one ulp.
      near_[number] = tolerance_ulp(inst.op, dtype, caps_.division) + 1;
    }
    if (inst.op == PGR_OP_BITCAST && from_float && !is_input_[ir_.source(number, 0)])
      refuse(number, "looks at the bits of a float that may be any NaN");
    if (inst.op == PGR_OP_CAST && from_float && is_integer(inst.dtype) &&
        source(number, 0).op != PGR_OP_WHERE)
      refuse(number, "casts a float that may be out of the integer's range");
    if (inst.op == PGR_OP_MAX && from_float) check_max(number);
  }

  // The sign of a zero maximum is unspecified, and matters until a value is added.
  void check_max(uint32_t number) {
    for (uint32_t i = number + 1; i < ir_.insts().size(); ++i)
      for (uint32_t s : ir_.sources(i)) {
        if (s != number) continue;
        const bool adds_zero = ir_.inst(i).op == PGR_OP_ADD && source(i, 1).op == PGR_OP_CONST &&
                               source(i, 1).arg == 0;
        if (!adds_zero) return refuse(i, "may tell one zero from the other");
      }
  }

  const sdk::IrView& ir_;
  const pgr_device_caps& caps_;
  Comparison result_;
  std::vector<double> near_;    // per instruction: tolerance in ulp
  std::vector<bool> is_input_;  // loaded from a read-only buffer
};

}  // namespace

bool is_reproducible(uint32_t op, uint32_t dtype, const pgr_device_caps& caps) {
  if (!is_float(dtype)) return true;
  if (op == PGR_OP_WHERE || op == PGR_OP_BITCAST) return true;
  const bool may_flush = dtype == PGR_DTYPE_F32 || dtype == PGR_DTYPE_BF16;
  if (may_flush && caps.denormals != PGR_DENORMALS_PRESERVE) return false;
  return tolerance_ulp(op, dtype, caps.division) == 0;
}

Comparison make_comparison(const sdk::IrView& ir, const pgr_device_caps& caps) {
  return Analysis(ir, caps).take();
}

}  // namespace plugrad::conformance

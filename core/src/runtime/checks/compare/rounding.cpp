#include "runtime/checks/compare/rounding.h"

#include <algorithm>
#include <cmath>

#include "runtime/checks/compare/values.h"

namespace plugrad::runtime {
namespace {

// docs/kernel-ir.md, "Accuracy": 4 ulp covers exp2, log2 and sin of f32 and f64, 2 ulp of the
// others. A tile of a tensor core adds up to 16 products in an order of its own.
constexpr double kFunctionUlps = 4, kSmallFunctionUlps = 2, kTileUlps = 16, kAtomicUlps = 2;

bool feeds_a_sum(const KernelLines& kernel, uint32_t product) {
  for (uint32_t i = product + 1; i < kernel.lines.size(); ++i) {
    const KernelLines::Line& line = kernel.lines[i];
    if ((line.op == PGR_OP_ADD || line.op == PGR_OP_SUB) &&
        std::ranges::find(line.sources, product) != line.sources.end())
      return true;
  }
  return false;
}

bool is_small(uint32_t dtype) {
  return dtype == PGR_DTYPE_F16 || dtype == PGR_DTYPE_BF16;
}

// Rounded once where the product is contracted, which changes the sum by up to an ulp of its own,
// however small the product.
bool has_product(const KernelLines& kernel, const KernelLines::Line& sum) {
  return std::ranges::any_of(sum.sources, [&](uint32_t source) {
    return kernel.lines[source].op == PGR_OP_MUL && is_float(kernel.lines[source].dtype);
  });
}

// Hash of a line and a variant, for the direction of its error.
bool goes_up(uint32_t line, uint32_t variant) {
  if (variant < 2) return variant == 0;
  uint64_t mixed = (line + uint64_t{1} + (uint64_t{variant / 2 - 1} << 32)) * 0x9e3779b97f4a7c15u;
  mixed ^= mixed >> 29;
  return (mixed & 1) == (variant & 1);
}

// Appends to `out`: the value `x` moved by `ulps`; returns the new value's line.
class Mover {
 public:
  Mover(std::vector<KernelLines::Line>& out, uint32_t dtype, uint32_t lanes)
      : out_(out), dtype_(dtype), lanes_(lanes) {}

  uint32_t move(uint32_t x, double ulps) {
    const uint32_t step = constant(ulps * epsilon_of(dtype_));
    const uint32_t limit = constant(most());
    const uint32_t negative = value(PGR_OP_NEG, dtype_, {x});
    const uint32_t magnitude = value(PGR_OP_MAX, dtype_, {x, negative});
    const uint32_t error = value(PGR_OP_MUL, dtype_, {magnitude, step});
    const uint32_t moved = value(PGR_OP_ADD, dtype_, {x, error});
    const uint32_t is_finite = value(PGR_OP_CMPLT, PGR_DTYPE_BOOL, {magnitude, limit});
    return value(PGR_OP_WHERE, dtype_, {is_finite, moved, x});
  }

 private:
  // Half of the largest power of two of the dtype.
  double most() const {
    return dtype_ == PGR_DTYPE_F16 ? 16384.0
                                   : std::ldexp(1.0, dtype_ == PGR_DTYPE_F64 ? 1022 : 126);
  }
  uint32_t constant(double number) {
    out_.push_back({PGR_OP_CONST, dtype_, 1, bits_of(dtype_, number), {}});
    return static_cast<uint32_t>(out_.size() - 1);
  }
  uint32_t value(uint32_t op, uint32_t dtype, std::vector<uint32_t> sources) {
    out_.push_back({op, dtype, lanes_, 0, std::move(sources)});
    return static_cast<uint32_t>(out_.size() - 1);
  }

  std::vector<KernelLines::Line>& out_;
  const uint32_t dtype_, lanes_;
};

}  // namespace

std::vector<double> allowed_errors(const KernelLines& kernel, const pgr_device_caps& caps,
                                   const pgr_device_caps& other_caps) {
  const bool contracts = (kernel.flags & PGR_IR_FLAG_CONTRACT) != 0 &&
                         (caps.contract_supported != 0 || other_caps.contract_supported != 0);
  const uint32_t division = std::max(caps.division, other_caps.division);
  std::vector<double> out(kernel.lines.size());
  for (uint32_t i = 0; i < out.size(); ++i) {
    const KernelLines::Line& line = kernel.lines[i];
    const uint32_t dtype = line.op == PGR_OP_ATOMIC_ADD ? claimed_dtype(kernel, i) : line.dtype;
    if (!is_float(dtype) || dtype == PGR_DTYPE_F8E4M3 || dtype == PGR_DTYPE_F8E5M2) continue;
    switch (line.op) {
      case PGR_OP_EXP2:
      case PGR_OP_LOG2:
      case PGR_OP_SIN:
        out[i] = is_small(dtype) ? kSmallFunctionUlps : kFunctionUlps;
        break;
      case PGR_OP_FDIV:
      case PGR_OP_RECIP:
        out[i] = division;
        break;
      case PGR_OP_MUL:
        out[i] = contracts && feeds_a_sum(kernel, i) ? 1 : 0;
        break;
      case PGR_OP_ADD:
      case PGR_OP_SUB:
        out[i] = contracts && has_product(kernel, line) ? 1 : 0;
        break;
      case PGR_OP_WMMA:
        out[i] = kTileUlps;
        break;
      case PGR_OP_ATOMIC_ADD:
        out[i] = kAtomicUlps;
        break;
      default:
        break;
    }
  }
  return out;
}

std::vector<double> errors_of_reordering(const KernelLines& kernel) {
  std::vector<double> out(kernel.lines.size());
  for (uint32_t i = 0; i < out.size(); ++i) {
    const KernelLines::Line& line = kernel.lines[i];
    const bool is_exact = line.op == PGR_OP_NEG || line.op == PGR_OP_MAX ||
                          line.op == PGR_OP_WHERE || line.op == PGR_OP_TRUNC ||
                          line.op == PGR_OP_BITCAST;
    if (op_class(line.op) == PGR_OP_CLASS_ALU && is_float(line.dtype) && !is_exact) out[i] = 1;
    if (line.op == PGR_OP_WMMA || (line.op >= PGR_OP_EXP2 && line.op <= PGR_OP_SIN))
      out[i] = kTileUlps;
  }
  return out;
}

KernelLines with_errors(const KernelLines& kernel, const std::vector<double>& errors,
                        uint32_t variant) {
  KernelLines out = kernel;
  out.lines.clear();
  std::vector<uint32_t> number(kernel.lines.size());
  for (uint32_t i = 0; i < kernel.lines.size(); ++i) {
    KernelLines::Line line = kernel.lines[i];
    for (uint32_t& source : line.sources) source = number[source];
    const double ulps = goes_up(i, variant) ? errors[i] : -errors[i];
    const bool is_atomic = line.op == PGR_OP_ATOMIC_ADD;
    if (ulps != 0 && is_atomic) {
      const KernelLines::Line added = out.lines[line.sources[2]];
      line.sources[2] = Mover(out.lines, added.dtype, added.lanes).move(line.sources[2], ulps);
    }
    const uint32_t dtype = line.dtype, lanes = line.lanes;
    out.lines.push_back(std::move(line));
    number[i] = static_cast<uint32_t>(out.lines.size() - 1);
    if (ulps != 0 && !is_atomic) number[i] = Mover(out.lines, dtype, lanes).move(number[i], ulps);
  }
  return out;
}

}  // namespace plugrad::runtime

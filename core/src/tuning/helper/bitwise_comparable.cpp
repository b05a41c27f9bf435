// Proves sums exact: each value is a bounded multiple of a power of two. A float with p bits of
// significand holds all multiples of 2^q up to 2^(q + p); every partial sum is such a multiple, no
// larger than the sum of all magnitudes.
#include "tuning/helper/bitwise_comparable.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "codegen/kernel.h"
#include "ir/facts.h"
#include "ir/kernel_ast.h"
#include "ir/range.h"
#include "tuning/helper/contents.h"

namespace plugrad::tuning {
namespace {

// A bounded multiple of 2^quantum. For integers and conditions: the value does not depend on how a
// float was rounded.
struct Multiples {
  double most = 0;
  int quantum = 0;
};
using Known = std::optional<Multiples>;

constexpr int kQuantumOfZero = 1000;

int significand_bits(DType dtype) {
  if (dtype == DType::F64) return 53;
  if (dtype == DType::F32) return 24;
  if (dtype == DType::F16) return 11;
  return dtype == DType::BF16 ? 8 : 0;
}

// The value if `dtype` holds it exactly, without overflow or subnormals.
Known if_held(Multiples value, DType dtype) {
  const int bits = significand_bits(dtype);
  const double largest = dtype == DType::F16 ? 65504 : 0x1p120;
  const int smallest = dtype == DType::F16 ? -14 : -120;
  const bool is_held = bits > 0 && value.quantum >= smallest && value.most <= largest &&
                       value.most <= std::ldexp(1.0, value.quantum + bits);
  return is_held ? Known(value) : std::nullopt;
}

Known of_constant(double value) {
  if (value == 0) return Multiples{0, kQuantumOfZero};
  if (!std::isfinite(value)) return std::nullopt;
  int exponent = 0;
  double fraction = std::frexp(std::abs(value), &exponent);
  while (fraction != std::trunc(fraction)) fraction *= 2, --exponent;
  return Multiples{std::abs(value), exponent};
}

Known either(const Known& a, const Known& b) {
  if (!a || !b) return std::nullopt;
  return Multiples{std::max(a->most, b->most), std::min(a->quantum, b->quantum)};
}

class ExactValues {
 public:
  explicit ExactValues(const KernelAst& ast) : g_(ast.graph), known_(ast.sink + 1) {
    Reachable reachable;
    for (Id id : reachable.from(g_, std::span(&ast.sink, 1))) known_[id] = of(id);
  }

  // A store that narrows rounds a value that both kernels have exactly.
  bool is_stored_exactly(Id store) const {
    Id value = g_.sources(store)[2];
    if (g_[value].op == Op::Cast && is_float(g_[g_.sources(value)[0]].dtype))
      value = g_.sources(value)[0];
    return known_[value].has_value();
  }

 private:
  Known of(Id id) const {
    const auto is_known = [&](Id source) { return known_[source].has_value(); };
    if (!std::ranges::all_of(g_.sources(id), is_known)) return std::nullopt;
    if (!is_float(g_[id].dtype) || g_[id].op == Op::Param) return Multiples{};
    const auto value = unrounded(id);
    return value ? if_held(*value, g_[id].dtype) : std::nullopt;
  }

  Known unrounded(Id id) const {
    const auto source = [&](size_t i) { return known_[g_.sources(id)[i]]; };
    switch (g_[id].op) {
      case Op::Const:
        return of_constant(const_float(g_, id));
      case Op::Load:
        return loaded(id);
      case Op::Cast:
        return is_float(g_[g_.sources(id)[0]].dtype) ? source(0) : std::nullopt;
      case Op::Neg:
        return source(0);
      case Op::Max:
        return either(source(0), source(1));
      case Op::Where:
        return either(source(1), source(2));
      case Op::Add:
      case Op::Sub:
        return sum(source(0), source(1));
      case Op::Mul:
        return product(source(0), source(1));
      case Op::Reduce:
        return reduction(id);
      default:
        return std::nullopt;
    }
  }

  // A kernel's own output is unknown; it may be read again.
  Known loaded(Id load) const {
    const Id param = g_.sources(load)[0];
    if (g_[param].op != Op::Param || (param_info(g_, param).flags & PGR_PARAM_WRITE))
      return std::nullopt;
    const Known contents = Multiples{kLargestContent, kContentQuantum};
    return g_.sources(load).size() < 4 ? contents : either(contents, known_[g_.sources(load)[3]]);
  }

  static Known sum(const Known& a, const Known& b) {
    if (!a || !b) return std::nullopt;
    return Multiples{a->most + b->most, std::min(a->quantum, b->quantum)};
  }
  static Known product(const Known& a, const Known& b) {
    if (!a || !b) return std::nullopt;
    if (a->most == 0 || b->most == 0) return Multiples{0, kQuantumOfZero};
    return Multiples{a->most * b->most, a->quantum + b->quantum};
  }

  Known reduction(Id reduce) const {
    const codegen::ReduceParts parts = codegen::reduce_parts(g_, reduce);
    Known value = known_[parts.values[0]];
    if (!value || parts.values.size() != 1 || parts.op == Op::Mul) return std::nullopt;
    if (parts.op == Op::Max) return value;
    for (Id range : parts.ranges) value->most *= static_cast<double>(range_size(g_, range));
    return value;
  }

  const Graph& g_;
  std::vector<Known> known_;
};

}  // namespace

bool is_exact(const KernelAst& ast) {
  const ExactValues values(ast);
  const auto stores = ast.graph.sources(ast.sink);
  return std::ranges::all_of(stores, [&](Id store) {
    return ast.graph[store].op == Op::Store &&
           (!is_float(ast.graph[ast.graph.sources(store)[2]].dtype) ||
            values.is_stored_exactly(store));
  });
}

}  // namespace plugrad::tuning

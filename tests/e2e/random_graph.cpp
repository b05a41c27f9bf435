#include "e2e/random_graph.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "oracle/array.h"

namespace plugrad::e2e {
namespace {

constexpr DType kDTypes[] = {DType::F32, DType::F32, DType::F32,  DType::F32,
                             DType::F64, DType::F16, DType::BF16, DType::I32,
                             DType::I32, DType::I64, DType::I8,   DType::U8,
                             DType::I16, DType::U32, DType::U64,  DType::Bool};
constexpr int64_t kElementLimit = 4096;

int precision_of(DType dtype) {  // significand bits
  switch (dtype) {
    case DType::F64:
      return 53;
    case DType::F32:
      return 24;
    case DType::F16:
      return 11;
    default:
      return 8;
  }
}

double largest_of(DType dtype) {
  return dtype == DType::F16 ? 60000.0 : dtype == DType::F64 ? 1e300 : 1e37;
}

double half_ulp(double bound, DType dtype) {
  return std::ldexp(bound, -precision_of(dtype));
}

bool is_int(DType dtype) {
  return is_integer(dtype);
}

}  // namespace

RandomGraph::RandomGraph(engine::Session& session, uint32_t device, uint64_t seed)
    : session_(session), graph_(session.graph()), device_(device), random_(seed) {}

// Not the standard distributions: their results differ between libraries, and seeds are recorded.
int64_t RandomGraph::pick(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
}

RandomGraph::Shape RandomGraph::shape(const Known& x) {
  const auto list = session_.shape(x.node);
  return {list.begin(), list.end()};
}

// Prefers recent nodes, so that graphs become deep.
const Known& RandomGraph::any() {
  const auto last = static_cast<int64_t>(made_.size()) - 1;
  return made_[static_cast<size_t>(chance(60) ? pick(std::max<int64_t>(0, last - 3), last)
                                              : pick(0, last))];
}

std::optional<Known> RandomGraph::any_like(const Known& x) {
  std::vector<Known> fitting;
  for (const Known& other : made_)
    if (dtype(other) == dtype(x) && shape(other) == shape(x)) fitting.push_back(other);
  return fitting[static_cast<size_t>(pick(0, static_cast<int64_t>(fitting.size()) - 1))];
}

// Floats are quarters up to 4: short sums and products are exact in any order.
Known RandomGraph::leaf() {
  const DType dtype = kDTypes[pick(0, std::size(kDTypes) - 1)];
  Shape shape;
  for (int64_t axes = pick(0, 3); axes > 0; --axes) shape.push_back(chance(10) ? 1 : pick(1, 9));
  if (chance(3) && !shape.empty()) shape[0] = 0;
  oracle::Array array{dtype, shape, {}};
  for (int64_t i = element_count(shape); i > 0; --i) {
    if (is_float(dtype))
      array.bits.push_back(bits_of(0.25 * static_cast<double>(pick(-16, 16)), dtype));
    else
      array.bits.push_back(
          bits_of(chance(80) ? pick(-9, 9) : static_cast<int64_t>(random_()), dtype));
  }
  const Id node = session_.store_host(shape, dtype, device_, oracle::to_bytes(array));
  return {node, 4.0, 0.25, 0};
}

// The effect of rounding to the dtype on the known bounds.
Known RandomGraph::rounded(Known x) {
  const DType type = dtype(x);
  if (!is_float(type)) return {x.node, 0, 0, 0};
  const bool fits = x.grid != 0 && x.bound / x.grid <= std::ldexp(1.0, precision_of(type));
  if (!fits || x.error != 0) x.grid = 0;
  if (x.error != 0) x.error += 2 * half_ulp(x.bound, type);
  return x;
}

Known RandomGraph::sum(const Known& a, const Known& b) {
  const Id node = graph_.binary(Op::Add, a.node, b.node);
  return rounded({node, a.bound + b.bound,
                  a.grid != 0 && b.grid != 0 ? std::min(a.grid, b.grid) : 0, a.error + b.error});
}

Known RandomGraph::product(const Known& a, const Known& b) {
  const Id node = graph_.binary(Op::Mul, a.node, b.node);
  return rounded({node, a.bound * b.bound, a.grid * b.grid,
                  a.bound * b.error + b.bound * a.error + a.error * b.error});
}

// x with a constant that has the same value everywhere.
Known RandomGraph::with_constant(const Known& x) {
  const double value = 0.25 * static_cast<double>(pick(-8, 8));
  const Known constant = {
      is_real(x) ? graph_.constant(dtype(x), value) : graph_.constant(dtype(x), pick(-5, 5)), 2.0,
      0.25, 0};
  if (dtype(x) == DType::Bool) return {graph_.binary(Op::Xor, x.node, constant.node), 0, 0, 0};
  return chance(50) ? sum(x, constant) : product(x, constant);
}

// Functions applied to x*x + 1, where all of them are well-behaved.
std::optional<Known> RandomGraph::smooth(const Known& x) {
  const DType type = dtype(x);
  const Known one = {graph_.constant(type, 1.0), 1.0, 1.0, 0};
  const Known safe = sum(product(x, x), one);
  if (safe.bound > largest_of(type)) return std::nullopt;
  // Correctly rounded ops add no error; the others add a few units, with margin for small dtypes.
  const auto near = [&](Op op, double bound, double slope) -> Known {
    return rounded(
        {graph_.unary(op, safe.node), bound, 0, slope * safe.error + 8 * half_ulp(bound, type)});
  };
  switch (pick(0, 4)) {
    case 0:
      return rounded({graph_.unary(Op::Recip, safe.node), 1.0, 0, safe.error});
    case 1:
      return rounded({graph_.unary(Op::Sqrt, safe.node), std::sqrt(safe.bound) + 1, 0, safe.error});
    case 2:
      return near(chance(50) ? Op::Log : Op::Log2, std::log2(safe.bound) + 1, 1.5);
    case 3:
      return safe.bound < 1e4 ? std::optional(near(chance(50) ? Op::Cos : Op::Sin, 1.0, 1.0))
                              : std::nullopt;
    default: {
      if (x.bound > 10) return std::nullopt;
      const bool is_natural = chance(50);
      const double bound = is_natural ? std::exp(x.bound) : std::exp2(x.bound);
      return rounded({graph_.unary(is_natural ? Op::Exp : Op::Exp2, x.node), bound, 0,
                      bound * x.error + 8 * half_ulp(bound, type)});
    }
  }
}

std::optional<Known> RandomGraph::unary() {
  const Known x = any();
  if (dtype(x) == DType::Bool) return with_constant(x);
  if (chance(30)) return Known{graph_.unary(Op::Neg, x.node), x.bound, x.grid, x.error};
  if (is_real(x) && chance(20) && x.error == 0)
    return rounded({graph_.unary(Op::Trunc, x.node), x.bound, 1.0, 0});
  if (is_real(x) && chance(60)) return smooth(x);
  return with_constant(x);
}

std::optional<Known> RandomGraph::int_binary(const Known& a, const Known& b) {
  static constexpr Op kOps[] = {Op::Add, Op::Sub,      Op::Mul,      Op::IDiv, Op::Mod,
                                Op::Max, Op::FloorDiv, Op::FloorMod, Op::And,  Op::Or,
                                Op::Xor, Op::Shl,      Op::Shr};
  const Op op = kOps[pick(0, std::size(kOps) - 1)];
  if (op != Op::Shl && op != Op::Shr) return Known{graph_.binary(op, a.node, b.node), 0, 0, 0};
  const Id count = graph_.constant(dtype(a), pick(0, size_of(dtype(a)) * 8 - 1));
  return Known{graph_.binary(op, a.node, count), 0, 0, 0};
}

std::optional<Known> RandomGraph::binary() {
  const Known a = any(), b = *any_like(a);
  if (dtype(a) == DType::Bool) {
    const Op op = std::array{Op::And, Op::Or, Op::Xor}[static_cast<size_t>(pick(0, 2))];
    return Known{graph_.binary(op, a.node, b.node), 0, 0, 0};
  }
  if (!is_real(a)) return int_binary(a, b);
  switch (pick(0, 3)) {
    case 0:
      return sum(a, b);
    case 1:
      return product(a, b);
    case 2: {
      const Known difference = sum(a, {b.node, b.bound, b.grid, b.error});
      return rounded({graph_.binary(Op::Sub, a.node, b.node), difference.bound, difference.grid,
                      difference.error});
    }
    default:
      return Known{graph_.binary(Op::Max, a.node, b.node), std::max(a.bound, b.bound),
                   std::min(a.grid, b.grid), std::max(a.error, b.error)};
  }
}

std::optional<Known> RandomGraph::compare() {
  const Known a = any(), b = *any_like(a);
  if (a.error != 0 || b.error != 0) return std::nullopt;
  const Op op = std::array{Op::CmpLt, Op::CmpEq, Op::CmpNe}[static_cast<size_t>(pick(0, 2))];
  return Known{graph_.binary(op, a.node, b.node), 0, 0, 0};
}

std::optional<Known> RandomGraph::select() {
  const Known a = any(), b = *any_like(a);
  for (const Known& condition : made_)
    if (dtype(condition) == DType::Bool && shape(condition) == shape(a))
      return Known{graph_.where(condition.node, a.node, b.node), std::max(a.bound, b.bound),
                   std::min(a.grid, b.grid), std::max(a.error, b.error)};
  return std::nullopt;
}

std::optional<Known> RandomGraph::cast() {
  const Known x = any();
  const DType from = dtype(x), to = kDTypes[pick(0, std::size(kDTypes) - 1)];
  if (from == to) return std::nullopt;
  const bool widens =
      is_float(from) && is_float(to) && precision_of(to) >= precision_of(from) && to != DType::F16;
  if (x.error != 0 && !widens) return std::nullopt;
  Known result = {graph_.cast(x.node, to), x.bound, x.grid, x.error};
  if (is_float(from)) return rounded(result);
  result.bound = from == DType::Bool ? 1 : std::ldexp(1.0, static_cast<int>(size_of(from)) * 8);
  result.grid = 1;
  return result.bound > largest_of(to) && is_float(to) ? std::nullopt
                                                       : std::optional(rounded(result));
}

Known RandomGraph::moved(const Known& x, Op op, std::span<const int64_t> list) {
  return {graph_.add(op, dtype(x), {x.node}, graph_.list(list)), x.bound, x.grid, x.error};
}

std::optional<Known> RandomGraph::move() {
  const Known x = any();
  const Shape sizes = shape(x);
  const auto axes = static_cast<int64_t>(sizes.size());
  Shape list;
  switch (pick(0, 5)) {
    case 0: {
      list = {element_count(sizes)};
      if (chance(50)) list.insert(list.begin() + pick(0, 1), 1);
      if (axes == 2 && chance(50)) list = {sizes[1], sizes[0]};
      return moved(x, Op::Reshape, list);
    }
    case 1: {
      for (int64_t i = 0; i < axes; ++i) list.push_back(i);
      for (int64_t i = axes - 1; i > 0; --i)
        std::swap(list[static_cast<size_t>(i)], list[static_cast<size_t>(pick(0, i))]);
      return moved(x, Op::Permute, list);
    }
    case 2: {
      for (int64_t size : sizes) list.push_back(size == 1 ? pick(1, 5) : size);
      return element_count(list) > kElementLimit ? std::nullopt
                                                 : std::optional(moved(x, Op::Expand, list));
    }
    case 3: {
      for (int64_t i = 0; i < 2 * axes; ++i) list.push_back(pick(0, 2));
      Known padded = moved(x, Op::Pad, list);
      return element_count(session_.shape(padded.node)) > kElementLimit ? std::nullopt
                                                                        : std::optional(padded);
    }
    case 4: {
      for (int64_t size : sizes) {
        const int64_t begin = pick(0, size / 2);
        list.insert(list.end(), {begin, pick(begin, size)});
      }
      return moved(x, Op::Shrink, list);
    }
    default: {
      for (int64_t i = 0; i < axes; ++i) list.push_back(pick(0, 1));
      return moved(x, Op::Flip, list);
    }
  }
}

std::optional<Known> RandomGraph::reduce() {
  const Known x = any();
  const Shape sizes = shape(x);
  if (sizes.empty() || dtype(x) == DType::Bool) return std::nullopt;
  Op op = chance(60) ? Op::Add : Op::Max;
  if (is_int(dtype(x)) && chance(20)) op = Op::Mul;
  Shape list = {static_cast<int64_t>(op)};
  int64_t count = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!chance(50) && !(i + 1 == sizes.size() && list.size() == 1)) continue;
    list.push_back(static_cast<int64_t>(i));
    count *= sizes[i];
  }
  if (op == Op::Max && count == 0 && is_real(x)) return std::nullopt;  // infinities are unbounded
  Known result = moved(x, Op::Reduce, list);
  if (op != Op::Add || !is_real(x)) return result;
  const auto n = static_cast<double>(std::max<int64_t>(count, 1));
  result.bound *= n;
  if (result.bound > largest_of(dtype(x))) return std::nullopt;
  result.error *= n;
  const DType accumulator = precision_of(dtype(x)) < 24 ? DType::F32 : dtype(x);
  const bool any_order_is_exact =
      result.grid != 0 && result.bound / result.grid <= std::ldexp(1.0, precision_of(accumulator));
  if (!any_order_is_exact || result.error != 0)
    result.error += n * half_ulp(result.bound, accumulator) + half_ulp(result.bound, dtype(x));
  return rounded(result);
}

std::optional<Known> RandomGraph::grow() {
  const int64_t dice = pick(1, 100);
  if (dice <= 8) return leaf();
  if (dice <= 28) return unary();
  if (dice <= 50) return binary();
  if (dice <= 56) return compare();
  if (dice <= 62) return select();
  if (dice <= 68) return cast();
  if (dice <= 87) return move();
  return reduce();
}

std::vector<Known> RandomGraph::build(int ops) {
  made_ = {leaf(), leaf()};
  for (int i = 0; i < ops; ++i) {
    const auto grown = grow();
    if (grown && grown->bound < largest_of(dtype(*grown))) made_.push_back(*grown);
  }
  std::vector<Known> roots = {made_.back()};
  for (int64_t more = pick(0, 2); more > 0; --more) roots.push_back(any());
  return roots;
}

}  // namespace plugrad::e2e

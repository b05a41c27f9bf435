// Leaves: host values and creation functions.
#include <cmath>
#include <limits>

#include "programs/operations.h"

namespace plugrad::programs {
namespace {

constexpr DType kDTypes[] = {DType::F32, DType::F32, DType::F32,  DType::F32, DType::F32,
                             DType::F64, DType::F16, DType::BF16, DType::I32, DType::I32,
                             DType::I64, DType::I8,  DType::U8,   DType::I16, DType::U16,
                             DType::U32, DType::U64, DType::Bool};

Shape random_shape(Args& a) {
  Shape shape;
  for (int64_t axes = a.pick(0, 3); axes > 0; --axes)
    shape.push_back(a.chance(12) ? 1 : a.pick(2, 7));
  if (a.chance(4) && !shape.empty())
    shape[static_cast<size_t>(a.pick(0, static_cast<int64_t>(shape.size()) - 1))] = 0;
  return shape;
}

int64_t count_of(const Shape& shape) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return count;
}

// Floats are quarters up to 4: sums and products of a few are exact in any order.
double float_value(std::mt19937_64& random, bool special) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kSpecial[] = {kInf, -kInf, std::nan(""), -0.0, 0.0, 65504, 1e-3, 3e38, 1e-40};
  if (special && random() % 4 == 0) return kSpecial[random() % std::size(kSpecial)];
  return 0.25 * (static_cast<double>(random() % 33) - 16);
}

Tensor values(Shape shape, DType dtype, int64_t seed, bool special) {
  std::mt19937_64 random(static_cast<uint64_t>(seed));
  const auto count = static_cast<size_t>(count_of(shape));
  if (is_float(dtype)) {
    std::vector<double> list(count);
    for (double& value : list) value = float_value(random, special);
    return Tensor::from(list, shape).cast(dtype);
  }
  std::vector<int64_t> list(count);
  for (int64_t& value : list)
    value = special ? static_cast<int64_t>(random()) : static_cast<int64_t>(random() % 19) - 9;
  return Tensor::from(list, shape).cast(dtype);
}

// The stored bytes: a leaf is a value from the host, whatever made it.
Tensor leaf(Args& a, Shape shape, DType dtype) {
  const bool special = a.chance(6);
  const Tensor made = values(shape, dtype, a.pick(0, 1 << 30), special);
  return Tensor::from_bytes(made.to_bytes(), shape, dtype);
}

const Operation kLeaves[] = {
    {"leaf", "leaf",
     [](Args& a) -> std::vector<Tensor> {
       const DType dtype = a.one_of(kDTypes);
       const Shape shape = random_shape(a);
       return {leaf(a, shape, dtype)};
     }},
    // Numbers: dtype, rank, sizes, then as above. Shrinking replaces values with these leaves.
    {"leaf", "given_leaf",
     [](Args& a) -> std::vector<Tensor> {
       const auto dtype = static_cast<DType>(a.pick(0, 255));
       Shape shape(static_cast<size_t>(a.pick(0, 6)));
       for (int64_t& size : shape) size = a.pick(0, 4096);
       return {leaf(a, shape, dtype)};
     }},
    {"leaf", "full",
     [](Args& a) -> std::vector<Tensor> {
       const Shape shape = random_shape(a);
       const double value = a.quarter(4);
       return {Tensor::full(shape, value, a.chance(50) ? DType::F32 : DType::F16)};
     }},
    {"leaf", "full_int",
     [](Args& a) -> std::vector<Tensor> {
       const Shape shape = random_shape(a);
       return {Tensor::full(shape, a.pick(-9, 9))};
     }},
    {"leaf", "arange",
     [](Args& a) -> std::vector<Tensor> {
       const int64_t start = a.pick(-9, 9);
       const int64_t count = a.pick(0, 12);
       return {Tensor::arange(start, start + count, a.pick(1, 3))};
     }},
    {"leaf", "arange_float",
     [](Args& a) -> std::vector<Tensor> {
       const double start = a.quarter();
       return {Tensor::arange(start, a.quarter() + 3.0, 0.25)};
     }},
    {"leaf", "linspace",
     [](Args& a) -> std::vector<Tensor> {
       return {Tensor::linspace(-1, 2, 3 * a.pick(0, 4) + 1)};
     }},
    {"leaf", "eye",
     [](Args& a) -> std::vector<Tensor> {
       const int64_t rows = a.pick(0, 5);
       return {Tensor::eye(rows, a.pick(0, 5))};
     }},
    {"leaf", "zeros_like",
     [](Args& a) -> std::vector<Tensor> { return {a.tensor().zeros_like()}; }},
    {"leaf", "full_like",
     [](Args& a) -> std::vector<Tensor> {
       const Tensor& x = a.numeric();
       return {x.full_like(a.pick(-3, 3))};
     }},
};

}  // namespace

std::span<const Operation> leaf_operations() {
  return kLeaves;
}

}  // namespace plugrad::programs

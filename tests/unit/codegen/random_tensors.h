// Random tensor graphs whose values are exact in any order of summation: small integers of any
// dtype.
#pragma once

#include <algorithm>
#include <random>

#include "unit/schedule/tensors.h"

namespace plugrad::test {

class RandomTensors {
 public:
  /// With `odd`, leaves include every dtype, empty axes and axes of one element.
  RandomTensors(Tensors& tensors, uint64_t seed, bool odd = false)
      : t_(tensors), random_(seed), odd_(odd) {}

  /// Two roots of a graph of about `steps` ops.
  std::vector<Id> build(int steps) {
    for (int i = 0; i < 3; ++i) add(leaf(), 3);
    for (int i = 0; i < steps; ++i) step();
    return {made_.back().id, any().id};
  }
  uint64_t pick(uint64_t below) { return random_() % below; }

 private:
  static constexpr double kMostF32 = 1 << 20, kMostF16 = 1 << 9;
  struct Made {
    Id id;
    double bound;  // of the absolute value; integers wrap
  };

  Dims shape(const Made& m) { return t_.shape(m.id); }
  const Made& any() { return made_[pick(2) == 0 ? made_.size() - 1 : pick(made_.size())]; }
  bool real(const Made& m) const { return is_float(t_.g[m.id].dtype); }

  // Drops values that would no longer be exact.
  void add(Id id, double bound) {
    const DType dtype = t_.g[id].dtype;
    const double most = dtype == DType::F16 || dtype == DType::BF16
                            ? (dtype == DType::F16 ? kMostF16 : 128)
                            : kMostF32;
    if (is_float(dtype) && bound > most) return;
    if (element_count(t_.shape(id)) <= 4000) made_.push_back({id, bound});
  }

  Id odd_leaf() {
    static const Dims shapes[] = {{1},        {4, 1, 9},  {1, 33}, {7, 1}, {19, 5},
                                  {2, 1, 17}, {13, 8},    {3, 16}, {70},   {2, 5, 3, 2},
                                  {16, 6},    {3, 16, 2}, {9, 9}};
    static constexpr DType dtypes[] = {DType::F32, DType::F16, DType::BF16, DType::F64, DType::F32,
                                       DType::I8,  DType::U8,  DType::I16,  DType::U16, DType::I32,
                                       DType::U32, DType::I64, DType::U64,  DType::Bool};
    const DType dtype = dtypes[pick(std::size(dtypes))];
    if (pick(30) == 0) return t_.buffer(pick(2) == 0 ? Dims{0, 3} : Dims{5, 0}, dtype);
    return t_.buffer(shapes[pick(std::size(shapes))], dtype);
  }

  Id leaf() {
    if (odd_) return odd_leaf();
    static const Dims shapes[] = {{2, 3, 4},    {16, 6}, {1, 35}, {48},  {3, 1, 7},
                                  {2, 5, 3, 2}, {17, 9}, {64},    {8, 8}};
    static constexpr DType dtypes[] = {DType::F32, DType::F32, DType::F32, DType::F16,
                                       DType::I32, DType::I64, DType::I8,  DType::U8};
    return t_.buffer(shapes[pick(std::size(shapes))], dtypes[pick(std::size(dtypes))]);
  }

  void step() {
    const Made m = any();
    switch (pick(12)) {
      case 0:
        return add(leaf(), 3);
      case 1:
      case 2:
        return binary(m);
      case 3:
        return select(m);
      case 4:
        return cast(m);
      case 5:
      case 6:
        return reduce(m);
      case 7:
        return product(m);
      default:
        return move(m);
    }
  }

  Made like(const Made& m) {
    std::vector<Made> fitting;
    for (const Made& other : made_)
      if (t_.g[other.id].dtype == t_.g[m.id].dtype && shape(other) == shape(m))
        fitting.push_back(other);
    return fitting[pick(fitting.size())];
  }

  void binary(const Made& a) {
    const Made b = like(a);
    const DType dtype = t_.g[a.id].dtype;
    if (dtype == DType::Bool) return add(t_.g.binary(Op::Xor, a.id, b.id), 1);
    switch (pick(5)) {
      case 0:
        return add(t_.g.binary(Op::Add, a.id, b.id), a.bound + b.bound);
      case 1:
        return add(t_.g.binary(Op::Mul, a.id, b.id), a.bound * b.bound);
      case 2:
        return add(t_.g.binary(Op::Sub, a.id, b.id), a.bound + b.bound);
      case 3:
        return add(t_.g.unary(Op::Neg, a.id), a.bound);
      default:
        return add(t_.g.binary(Op::Max, a.id, b.id), std::max(a.bound, b.bound));
    }
  }

  void select(const Made& a) {
    const Made b = like(a);
    if (t_.g[a.id].dtype == DType::Bool) return;
    const Id less = t_.g.binary(Op::CmpLt, a.id, b.id);
    if (pick(3) == 0) return add(less, 1);
    add(t_.g.where(less, b.id, t_.g.constant(t_.g[a.id].dtype, int64_t{2})),
        std::max(b.bound, 2.0));
  }

  void cast(const Made& a) {
    static constexpr DType to[] = {DType::F32, DType::I32, DType::I8, DType::F64};
    const DType dtype = to[pick(std::size(to))];
    const bool fits = real(a) ? (is_float(dtype) || (a.bound < 120))
                              : !is_float(dtype) || t_.g[a.id].dtype == DType::Bool;
    if (dtype != t_.g[a.id].dtype && fits) add(t_.g.cast(a.id, dtype), a.bound);
  }

  void reduce(const Made& a) {
    const Dims s = shape(a);
    if (s.empty() || t_.g[a.id].dtype == DType::Bool) return;
    Dims axes;
    double count = 1;
    for (size_t i = 0; i < s.size(); ++i)
      if (pick(2) == 0) {
        axes.push_back(static_cast<int64_t>(i));
        count *= static_cast<double>(s[i]);
      }
    if (axes.empty()) return;
    const bool sum = pick(3) != 0;
    add(t_.reduce(sum ? Op::Add : Op::Max, a.id, axes), sum ? a.bound * count : a.bound);
  }

  // A matrix product of a and its own transpose, or a sum over windows of a row.
  void product(const Made& a) {
    Dims s = shape(a);
    if (s.size() != 2 || t_.g[a.id].dtype == DType::Bool || s[0] * s[0] * s[1] > 40000) return;
    const Id left = t_.expand(t_.reshape(a.id, {s[0], 1, s[1]}), {s[0], s[0], s[1]});
    const Id right = t_.expand(t_.reshape(a.id, {1, s[0], s[1]}), {s[0], s[0], s[1]});
    const Id sum = t_.sum(t_.g.binary(Op::Mul, left, right), {2});
    add(t_.reshape(sum, {s[0], s[0]}), a.bound * a.bound * static_cast<double>(s[1]));
  }

  void move(const Made& a) {
    const Dims s = shape(a);
    Dims list;
    switch (pick(7)) {
      case 0:
        return add(t_.reshape(a.id, {element_count(s)}), a.bound);
      case 1:
        for (size_t i = 0; i < s.size(); ++i)
          list.push_back(static_cast<int64_t>(s.size() - 1 - i));
        return add(t_.permute(a.id, list), a.bound);
      case 2:
        for (size_t i = 0; i < 2 * s.size(); ++i) list.push_back(static_cast<int64_t>(pick(3)));
        return add(t_.pad(a.id, list), a.bound);
      case 3:
        for (int64_t size : s) {
          if (size == 0) {
            list.insert(list.end(), {0, 0});
            continue;
          }
          const auto begin = static_cast<int64_t>(pick(static_cast<uint64_t>(size / 2 + 1)));
          list.insert(
              list.end(),
              {begin, begin + 1 + static_cast<int64_t>(pick(static_cast<uint64_t>(size - begin)))});
        }
        return add(t_.shrink(a.id, list), a.bound);
      case 4:
        for (size_t i = 0; i < s.size(); ++i) list.push_back(static_cast<int64_t>(pick(2)));
        return add(t_.flip(a.id, list), a.bound);
      case 5:
        for (int64_t size : s) list.push_back(size == 1 ? 1 + static_cast<int64_t>(pick(6)) : size);
        return add(t_.expand(a.id, list), a.bound);
      default:
        return join(a, s);
    }
  }

  // Concatenates a and an equal shape: two pads and a sum.
  void join(const Made& a, const Dims& s) {
    const Made b = like(a);
    if (s.empty() || t_.g[a.id].dtype == DType::Bool) return;
    Dims before(2 * s.size()), behind(2 * s.size());
    const size_t axis = pick(s.size());
    behind[2 * axis + 1] = before[2 * axis] = s[axis];
    add(t_.g.binary(Op::Add, t_.pad(a.id, behind), t_.pad(b.id, before)),
        std::max(a.bound, b.bound));
  }

  Tensors& t_;
  std::mt19937_64 random_;
  bool odd_;
  std::vector<Made> made_;
};

}  // namespace plugrad::test

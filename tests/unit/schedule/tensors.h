// Tensor graphs for tests, built from raw nodes.
#pragma once

#include <vector>

#include "ir/facts.h"

namespace plugrad::test {

using Dims = std::vector<int64_t>;

struct Tensors {
  Graph g;
  Shapes shapes{g};
  std::vector<Id> inputs;

  Dims shape(Id x) { return {shapes[x].begin(), shapes[x].end()}; }
  Id list(Op op, Id x, const Dims& values) { return g.add(op, g[x].dtype, {x}, g.list(values)); }

  Id buffer(const Dims& dims, DType dtype = DType::F32, int64_t device = 1) {
    Dims values = {static_cast<int64_t>(inputs.size()), device};
    values.insert(values.end(), dims.begin(), dims.end());
    inputs.push_back(g.add(Op::Buffer, dtype, {}, g.list(values)));
    return inputs.back();
  }
  Id number(double value, DType dtype = DType::F32) { return g.constant(dtype, value); }
  Id iota(int64_t size) { return g.add(Op::Iota, DType::I32, {}, static_cast<uint64_t>(size)); }

  Id reshape(Id x, const Dims& to) { return list(Op::Reshape, x, to); }
  Id permute(Id x, const Dims& order) { return list(Op::Permute, x, order); }
  Id expand(Id x, const Dims& to) { return list(Op::Expand, x, to); }
  Id pad(Id x, const Dims& pads) { return list(Op::Pad, x, pads); }
  Id shrink(Id x, const Dims& bounds) { return list(Op::Shrink, x, bounds); }
  Id flip(Id x, const Dims& flags) { return list(Op::Flip, x, flags); }
  Id contiguous(Id x, uint64_t identity = 0) {
    return g.add(Op::Contiguous, g[x].dtype, {x}, identity);
  }
  Id copy(Id x, uint64_t device) { return g.add(Op::Copy, g[x].dtype, {x}, device); }

  Id reduce(Op op, Id x, const Dims& axes) {
    Dims values = {static_cast<int64_t>(op)};
    values.insert(values.end(), axes.begin(), axes.end());
    return list(Op::Reduce, x, values);
  }
  /// Reduced axes stay, with size 1.
  Id sum(Id x, const Dims& axes) { return reduce(Op::Add, x, axes); }
  Id max(Id x, const Dims& axes) { return reduce(Op::Max, x, axes); }

  /// Both operands broadcast to the common shape of equal ranks; constants unchanged.
  Id op(Op kind, Id a, Id b) {
    const Dims left = shape(a), right = shape(b);
    if (left.empty() || right.empty()) return g.binary(kind, a, b);
    Dims both = left;
    for (size_t i = 0; i < both.size(); ++i)
      if (left[i] == 1) both[i] = right[i];
    return g.binary(kind, left == both ? a : expand(a, both), right == both ? b : expand(b, both));
  }
  Id add(Id a, Id b) { return op(Op::Add, a, b); }
  Id sub(Id a, Id b) { return op(Op::Sub, a, b); }
  Id mul(Id a, Id b) { return op(Op::Mul, a, b); }
  Id div(Id a, Id b) { return op(Op::FDiv, a, b); }
  Id plus(Id a, double b) { return add(a, number(b)); }
  Id times(Id a, double b) { return mul(a, number(b)); }
  Id relu(Id x) { return op(Op::Max, x, number(0)); }
  Id exp(Id x) { return g.unary(Op::Exp2, times(x, 1.4426950408889634)); }

  Id matmul(Id a, Id b) {
    const Dims left = shape(a), right = shape(b);
    Dims l = left, r(right.begin(), right.end() - 2), out(left.begin(), left.end() - 1);
    l.push_back(1);
    r.push_back(1);
    r.insert(r.end(), right.end() - 2, right.end());
    const int64_t k = static_cast<int64_t>(left.size()) - 1;
    out.push_back(right.back());
    return reshape(sum(mul(reshape(a, l), reshape(b, r)), {k}), out);
  }
  Id transpose(Id x) {
    Dims order(shape(x).size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    return permute(x, order);
  }
  Id softmax(Id x) {
    const Dims last = {static_cast<int64_t>(shape(x).size()) - 1};
    const Id e = exp(sub(x, max(x, last)));
    return div(e, sum(e, last));
  }
  Id log_softmax(Id x) {
    const Dims last = {static_cast<int64_t>(shape(x).size()) - 1};
    const Id centred = sub(x, max(x, last));
    return sub(centred, times(g.unary(Op::Log2, sum(exp(centred), last)), 0.6931471805599453));
  }
  Id mean(Id x, const Dims& axes) {
    double count = 1;
    for (int64_t axis : axes) count *= static_cast<double>(shape(x)[static_cast<size_t>(axis)]);
    return times(sum(x, axes), 1 / count);
  }
  /// Windows of k x k over the last two of four axes: (n, c, h, w, k, k).
  Id windows(Id x, int64_t k, int64_t stride = 1) {
    for (int axis : {2, 3}) {
      // repeat the axis k times, cut it so that each repeat starts one element later
      Dims s = shape(x);
      const size_t a = static_cast<size_t>(axis);
      const int64_t n = s[a], o = (n - k) / stride + 1;
      Dims split = s, repeated;
      split.insert(split.begin() + axis, 1);
      repeated = split;
      const int64_t times = k * (n + stride) / n + 1;
      repeated[a] = times;
      x = expand(reshape(x, split), repeated);
      Dims flat = s;
      flat[a] = times * n;
      x = cut(reshape(x, flat), axis, k * (n + 1));
      Dims rows = s;
      rows[a] = k;
      rows.insert(rows.begin() + axis + 1, n + 1);
      x = cut(reshape(x, rows), axis + 1, o * stride);
      Dims steps = shape(x);
      steps[a + 1] = o;
      steps.insert(steps.begin() + axis + 2, stride);
      x = cut(reshape(x, steps), axis + 2, 1);
      Dims taps = shape(x);
      taps.erase(taps.begin() + axis + 2);
      x = reshape(x, taps);  // (…, k, o, …)
      Dims order;
      for (size_t i = 0; i < taps.size(); ++i)
        if (i != a) order.push_back(static_cast<int64_t>(i));
      order.push_back(axis);
      x = permute(x, order);
    }
    return x;
  }
  Id cut(Id x, int axis, int64_t end) {
    const Dims s = shape(x);
    Dims bounds;
    for (size_t i = 0; i < s.size(); ++i) {
      bounds.push_back(0);
      bounds.push_back(i == static_cast<size_t>(axis) ? end : s[i]);
    }
    return shrink(x, bounds);
  }
  /// Stride 1, kernel (o, c, k, k).
  Id conv2d(Id x, Id w, int64_t padding = 0) {
    if (padding != 0) x = pad(x, {0, 0, 0, 0, padding, padding, padding, padding});
    const Dims ws = shape(w);
    const Id win = windows(x, ws[2]);
    const Dims s = shape(win);
    const Id wide = reshape(win, {s[0], 1, s[1], s[2], s[3], s[4], s[5]});
    const Id kernel = reshape(w, {1, ws[0], ws[1], 1, 1, ws[2], ws[3]});
    const Id y = sum(mul(wide, kernel), {2, 5, 6});
    return reshape(y, {s[0], ws[0], s[2], s[3]});
  }
};

}  // namespace plugrad::test

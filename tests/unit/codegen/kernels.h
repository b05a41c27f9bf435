// Kernel ASTs for tests, written by hand in the form of ir/kernel_ast.h.
#pragma once

#include "ir/kernel_ast.h"
#include "ir/range.h"
#include "plugrad/plugin_api/kernel_ir.h"

namespace plugrad::test {

struct Ast {
  Graph graph;
  Id sink = kNoId;
};

inline Id param(Graph& g, uint32_t slot, int64_t elem_count, bool written,
                DType dtype = DType::F32) {
  return make_param(g, dtype, {slot, elem_count, written ? PGR_PARAM_WRITE : PGR_PARAM_READ});
}
inline Id load(Graph& g, Id from, Id index) {
  return g.add(Op::Load, g[from].dtype, {from, index});
}
inline Id affine(Graph& g, Id a, int64_t stride, Id b) {
  return g.binary(Op::Add, g.binary(Op::Mul, a, g.index(stride)), b);
}
inline void store(Ast& ast, Id to, Id index, Id value) {
  const Id store = ast.graph.add(Op::Store, DType::Void, {to, index, value});
  ast.sink = ast.graph.add(Op::Sink, DType::Void, {store});
}
inline Id reduce(Graph& g, Op op, Id value, std::initializer_list<Id> ranges) {
  std::vector<Id> sources = {value};
  sources.insert(sources.end(), ranges.begin(), ranges.end());
  return g.add(Op::Reduce, g[value].dtype, sources, g.list({static_cast<int64_t>(op)}));
}

/// out[i, j] = sum over k of a[i, k] * b[k, j], restricted to i - below <= k < i + above: a band
/// matrix
inline Ast band_matmul(int64_t m, int64_t n, int64_t k, int64_t below, int64_t above) {
  Ast ast;
  Graph& g = ast.graph;
  const Id i = make_range(g, m, 0, AxisKind::Loop), j = make_range(g, n, 1, AxisKind::Loop);
  const Id zero = g.index(0),
           begin = g.binary(Op::Max, g.binary(Op::Add, i, g.index(-below)), zero);
  const Id end = g.binary(Op::Add, i, g.index(above)), size = g.index(k);
  const Id l = bounded_range(g, make_range(g, k, 2, AxisKind::Reduce), begin,
                             g.where(g.binary(Op::CmpLt, end, size), end, size));
  const Id a = load(g, param(g, 1, m * k, false), affine(g, i, k, l));
  const Id b = load(g, param(g, 2, k * n, false), affine(g, l, n, j));
  store(ast, param(g, 0, m * n, true), affine(g, i, n, j),
        reduce(g, Op::Add, g.binary(Op::Mul, a, b), {l}));
  return ast;
}

/// out[i] = a[i] + b[i]
inline Ast add(int64_t n, DType dtype = DType::F32) {
  Ast ast;
  Graph& g = ast.graph;
  const Id i = make_range(g, n, 0, AxisKind::Loop);
  const Id a = load(g, param(g, 1, n, false, dtype), i),
           b = load(g, param(g, 2, n, false, dtype), i);
  store(ast, param(g, 0, n, true, dtype), i, g.binary(Op::Add, a, b));
  return ast;
}

/// c[i, j] = sum over k of a[i, k] * b[k, j], or of a[k, i], of b[j, k]
inline Ast matmul(int64_t m, int64_t n, int64_t k, bool a_transposed = false,
                  bool b_transposed = false) {
  Ast ast;
  Graph& g = ast.graph;
  const Id i = make_range(g, m, 0, AxisKind::Loop), j = make_range(g, n, 1, AxisKind::Loop);
  const Id l = make_range(g, k, 2, AxisKind::Reduce);
  const Id a =
      load(g, param(g, 1, m * k, false), a_transposed ? affine(g, l, m, i) : affine(g, i, k, l));
  const Id b =
      load(g, param(g, 2, k * n, false), b_transposed ? affine(g, j, k, l) : affine(g, l, n, j));
  store(ast, param(g, 0, m * n, true), affine(g, i, n, j),
        reduce(g, Op::Add, g.binary(Op::Mul, a, b), {l}));
  return ast;
}

/// out[i, j] = 2^(a[i, j] - m) / sum over k of 2^(a[i, k] - m), where m is the maximum over l of
/// a[i, l]
inline Ast softmax2(int64_t rows, int64_t n) {
  Ast ast;
  Graph& g = ast.graph;
  const Id i = make_range(g, rows, 0, AxisKind::Loop), j = make_range(g, n, 1, AxisKind::Loop);
  const Id k = make_range(g, n, 2, AxisKind::Reduce), l = make_range(g, n, 3, AxisKind::Reduce);
  const auto at = [&](Id column) {
    return load(g, param(g, 1, rows * n, false), affine(g, i, n, column));
  };
  const Id most = reduce(g, Op::Max, at(l), {l});
  const auto power = [&](Id column) {
    return g.unary(Op::Exp2, g.binary(Op::Sub, at(column), most));
  };
  const auto kept = [&](Id column) { return make_keep(g, power(column), {0, false}); };
  const Id sum = reduce(g, Op::Add, kept(k), {k});
  store(ast, param(g, 0, rows * n, true), affine(g, i, n, j), g.binary(Op::FDiv, kept(j), sum));
  return ast;
}

/// out[0] = sum over i of max(a[i], 0)
inline Ast relu_sum(int64_t n) {
  Ast ast;
  Graph& g = ast.graph;
  const Id i = make_range(g, n, 0, AxisKind::Reduce);
  const Id a = g.binary(Op::Max, load(g, param(g, 1, n, false), i), g.constant(DType::F32, 0.0));
  store(ast, param(g, 0, 1, true), g.index(0), reduce(g, Op::Add, a, {i}));
  return ast;
}

/// out[n, o, y, x] = sum over c, r, s of in[n, c, y + r, x + s] * w[o, c, r, s]
struct ConvShape {
  int64_t n, c, h, w, o, k;
};
inline Ast conv2d(const ConvShape& s) {
  Ast ast;
  Graph& g = ast.graph;
  const int64_t oh = s.h - s.k + 1, ow = s.w - s.k + 1;
  const Id n = make_range(g, s.n, 0, AxisKind::Loop), o = make_range(g, s.o, 1, AxisKind::Loop);
  const Id y = make_range(g, oh, 2, AxisKind::Loop), x = make_range(g, ow, 3, AxisKind::Loop);
  const Id c = make_range(g, s.c, 4, AxisKind::Reduce);
  const Id p = make_range(g, s.k, 5, AxisKind::Reduce), q = make_range(g, s.k, 6, AxisKind::Reduce);
  const Id in = affine(g, affine(g, affine(g, n, s.c, c), s.h, g.binary(Op::Add, y, p)), s.w,
                       g.binary(Op::Add, x, q));
  const Id weight = affine(g, affine(g, affine(g, o, s.c, c), s.k, p), s.k, q);
  const Id out = affine(g, affine(g, affine(g, n, s.o, o), oh, y), ow, x);
  const Id a = load(g, param(g, 1, s.n * s.c * s.h * s.w, false), in);
  const Id b = load(g, param(g, 2, s.o * s.c * s.k * s.k, false), weight);
  store(ast, param(g, 0, s.n * s.o * oh * ow, true), out,
        reduce(g, Op::Add, g.binary(Op::Mul, a, b), {c, p, q}));
  return ast;
}

/// out[n, y, x, o] = sum over p, q, c of in[n, y + p - pad, x + q - pad, c] * w[p, q, c, o], within
/// in
inline Ast padded_conv2d(const ConvShape& s, int64_t pad) {
  Ast ast;
  Graph& g = ast.graph;
  const int64_t oh = s.h + 2 * pad - s.k + 1, ow = s.w + 2 * pad - s.k + 1;
  const Id n = make_range(g, s.n, 0, AxisKind::Loop), y = make_range(g, oh, 1, AxisKind::Loop);
  const Id x = make_range(g, ow, 2, AxisKind::Loop), o = make_range(g, s.o, 3, AxisKind::Loop);
  const Id p = make_range(g, s.k, 4, AxisKind::Reduce), q = make_range(g, s.k, 5, AxisKind::Reduce);
  const Id c = make_range(g, s.c, 6, AxisKind::Reduce);
  const Id h = g.binary(Op::Add, g.binary(Op::Add, y, p), g.index(-pad));
  const Id w = g.binary(Op::Add, g.binary(Op::Add, x, q), g.index(-pad));
  const auto inside = [&](Id at, int64_t size) {
    return g.binary(Op::And, g.binary(Op::CmpLt, g.index(-1), at),
                    g.binary(Op::CmpLt, at, g.index(size)));
  };
  const Id valid = g.binary(Op::And, inside(h, s.h), inside(w, s.w));
  const Id zero = g.constant(DType::F32, 0.0);
  const Id image = affine(g, affine(g, affine(g, n, s.h, h), s.w, w), s.c, c);
  const Id a =
      g.add(Op::Load, DType::F32, {param(g, 1, s.n * s.c * s.h * s.w, false), image, valid, zero});
  const Id b = load(g, param(g, 2, s.o * s.c * s.k * s.k, false),
                    affine(g, affine(g, affine(g, p, s.k, q), s.c, c), s.o, o));
  const Id sum = reduce(g, Op::Add, g.where(valid, g.binary(Op::Mul, a, b), zero), {p, q, c});
  store(ast, param(g, 0, s.n * s.o * oh * ow, true),
        affine(g, affine(g, affine(g, n, oh, y), ow, x), s.o, o), sum);
  return ast;
}

/// The gradient of conv2d with respect to its weight: out[o, c, p, q] = sum over n, y, x of grad[n,
/// o, y, x] * in[n, c, y + p, x + q]
inline Ast conv2d_weight_gradient(const ConvShape& s) {
  Ast ast;
  Graph& g = ast.graph;
  const int64_t oh = s.h - s.k + 1, ow = s.w - s.k + 1;
  const Id o = make_range(g, s.o, 0, AxisKind::Loop), c = make_range(g, s.c, 1, AxisKind::Loop);
  const Id p = make_range(g, s.k, 2, AxisKind::Loop), q = make_range(g, s.k, 3, AxisKind::Loop);
  const Id n = make_range(g, s.n, 4, AxisKind::Reduce);
  const Id y = make_range(g, oh, 5, AxisKind::Reduce), x = make_range(g, ow, 6, AxisKind::Reduce);
  const Id in = affine(g, affine(g, affine(g, n, s.c, c), s.h, g.binary(Op::Add, y, p)), s.w,
                       g.binary(Op::Add, x, q));
  const Id grad = affine(g, affine(g, affine(g, n, s.o, o), oh, y), ow, x);
  const Id out = affine(g, affine(g, affine(g, o, s.c, c), s.k, p), s.k, q);
  const Id a = load(g, param(g, 1, s.n * s.c * s.h * s.w, false), in);
  const Id b = load(g, param(g, 2, s.n * s.o * oh * ow, false), grad);
  store(ast, param(g, 0, s.o * s.c * s.k * s.k, true), out,
        reduce(g, Op::Add, g.binary(Op::Mul, a, b), {n, y, x}));
  return ast;
}

/// out[n, y, x] = max over p, q of in[n, 2 y + p, 2 x + q]
inline Ast max_pool2(int64_t n_size, int64_t h, int64_t w) {
  Ast ast;
  Graph& g = ast.graph;
  const Id n = make_range(g, n_size, 0, AxisKind::Loop),
           y = make_range(g, h / 2, 1, AxisKind::Loop);
  const Id x = make_range(g, w / 2, 2, AxisKind::Loop);
  const Id p = make_range(g, 2, 3, AxisKind::Reduce), q = make_range(g, 2, 4, AxisKind::Reduce);
  const Id in = affine(g, affine(g, n, h, affine(g, y, 2, p)), w, affine(g, x, 2, q));
  const Id a = load(g, param(g, 1, n_size * h * w, false), in);
  store(ast, param(g, 0, n_size * h * w / 4, true), affine(g, affine(g, n, h / 2, y), w / 2, x),
        reduce(g, Op::Max, a, {p, q}));
  return ast;
}

}  // namespace plugrad::test

// Orthogonal factors of matrices. Iterations are unrolled into the graph. Values that every
// iteration reads are stored, so that no iteration recomputes its predecessors. The column of an
// iteration is data, so that all iterations share their kernels.
#include <algorithm>
#include <limits>

#include "plugrad/function.h"
#include "plugrad/functional.h"
#include "plugrad/linalg.h"
#include "tensor/lazy_text.h"
#include "tensor/record.h"

namespace plugrad {

namespace {

void require_matrices(std::string_view function, const Tensor& x) {
  require(x.ndim() >= 2, "[{}] shape {} has fewer than two axes", function, tensor::lazy_text(x));
  require_type(is_float(x.dtype()), "[{}] takes floats, not {}; cast it", function,
               name_of(x.dtype()));
  tensor::require_fixed(function, x);
}

DType working_dtype(const Tensor& x) {
  return x.dtype() == DType::F64 ? DType::F64 : DType::F32;
}

/// An identity matrix for each matrix of x.
Tensor identity_like(const Tensor& x, int64_t n, int64_t m) {
  Shape shape = x.shape();
  shape[shape.size() - 2] = n;
  shape[shape.size() - 1] = m;
  return Tensor::eye(n, m, x.dtype(), x.device()).expand(shape);
}

/// Householder reflection that clears column `at` of r below its diagonal: r - v (w r), w = factor
/// v^T.
struct Reflection {
  Tensor v, w;
};

Reflection reflection(const Tensor& r, const Tensor& at) {
  const Tensor rows = Tensor::arange(r.size(-2)).unsqueeze(1);
  const Tensor column = where(rows >= at, r.index_select(-1, at), 0);
  // Divided by its largest element, so that no square overflows. A column of zeros stays unchanged.
  const Tensor scale = column.abs().max(-2, true).detach();
  const Tensor empty = scale == 0.0;
  const Tensor x = column / where(empty, 1.0, scale);
  const Tensor norm = where(empty, 1.0, x.square().sum(-2, true)).sqrt();
  const Tensor first = x.index_select(-2, at);
  const Tensor moved = where(first < 0.0, -norm, norm);
  const Tensor v = where(empty, 0.0, x + where(rows == at, moved, 0.0)).contiguous();
  const Tensor factor = (norm * (norm + first.abs())).reciprocal();
  return {v, (factor * v).transpose().contiguous()};
}

/// q (…, n, columns) and r (…, n, m).
QR factors(const Tensor& x, int64_t columns) {
  const int64_t n = x.size(-2), m = x.size(-1), steps = std::min(n - 1, m);
  Tensor r = x.contiguous();
  std::vector<Reflection> done;
  for (int64_t i = 0; i < steps; ++i) {
    done.push_back(reflection(r, Tensor::from({static_cast<int32_t>(i)}, x.device())));
    const Reflection& h = done.back();
    r = (r - h.v * h.w.matmul(r).contiguous()).contiguous();
  }
  Tensor q = identity_like(x, n, columns);
  for (; !done.empty(); done.pop_back())
    q = (q - done.back().v * done.back().w.matmul(q).contiguous()).contiguous();
  return {q, r.triu()};
}

/// One round of one-sided Jacobi rotations. The first `rows` rows of x are the matrix times v, the
/// others v. Rotates all column pairs (i, i + half) so that their first `rows` rows are orthogonal,
/// and permutes the columns to the next pairs of a round-robin tournament.
Tensor rotated_rows(const Tensor& x, int64_t rows, int64_t half) {
  const auto columns = [](const Tensor& t, int64_t begin, int64_t end) {
    return t.slice(-1, {begin, end});
  };
  const Tensor p = columns(x, 0, half), q = columns(x, half, 2 * half);
  const Tensor a = p.slice(-2, {0, rows}), b = q.slice(-2, {0, rows});
  const Tensor alpha = a.square().sum(-2, true), beta = b.square().sum(-2, true),
               gamma = (a * b).sum(-2, true);
  const Tensor apart = gamma == 0.0;
  const Tensor zeta = (beta - alpha) / (where(apart, 1.0, gamma) * 2.0);
  const Tensor size = (zeta.abs() + (zeta.square() + 1.0).sqrt()).reciprocal();
  const Tensor t = where(apart, 0.0, where(zeta < 0.0, -size, size));
  const Tensor c = (t.square() + 1.0).rsqrt().contiguous(), s = (c * t).contiguous();
  const Tensor left = c * p - s * q, right = s * p + c * q;
  if (half == 1) return cat({left, right}, -1).contiguous();
  return cat({columns(left, 0, 1), columns(right, 0, 1), columns(left, 1, half - 1),
              columns(right, 1, half), columns(left, half - 1, half)},
             -1)
      .contiguous();
}

/// Columns of x in descending order of `values` (…, 1, k); stable.
Tensor ordered(const Tensor& x, const Tensor& values) {
  const int64_t k = values.size(-1);
  const Tensor other = values.transpose();
  const Tensor number = Tensor::arange(k), others = number.unsqueeze(1);
  const Tensor before = (other > values) | ((other == values) & (others < number));
  const Tensor rank = before.sum(-2, true, DType::I32).contiguous();             // (…, 1, k)
  const Tensor is_there = rank.unsqueeze(-2) == Tensor::arange(k).unsqueeze(1);  // (…, 1, k, k)
  return where(is_there, x.unsqueeze(-2), 0).sum(-1).contiguous();
}

/// SVD of n x m with n >= m: u (…, n, columns), s (…, m), v (…, m, m).
std::vector<Tensor> jacobi(const Tensor& given, int64_t columns) {
  const int64_t n = given.size(-2), m = given.size(-1), half = (m + 1) / 2;
  const Tensor scale = given.abs().max({-2, -1}, true), empty = scale == 0.0;
  const Tensor a = given / where(empty, 1.0, scale);
  // Pairs need an even number of columns: adds a column of zeros if it is odd.
  Tensor x = cat({a, identity_like(a, m, m)}, -2);
  std::vector<std::pair<int64_t, int64_t>> pads(static_cast<size_t>(x.ndim()));
  pads.back() = {0, 2 * half - m};
  x = x.pad(pads).contiguous();
  int64_t sweeps = 6;
  for (int64_t size = 1; size < m; size *= 2) ++sweeps;
  for (int64_t round = 0; m > 1 && round < sweeps * (2 * half - 1); ++round)
    x = rotated_rows(x, n, half);
  x = x.slice(-1, {0, m});
  const Tensor size = x.slice(-2, {0, n}).square().sum(-2, true).contiguous();
  x = ordered(x, size);
  // QR replaces columns of zeros by an orthogonal basis and removes rounding errors of small
  // columns.
  const QR basis = factors(x.slice(-2, {0, n}).contiguous(), columns);
  const Tensor diagonal = basis.r.diagonal(0, -2, -1).contiguous();
  const Tensor sign = where(diagonal < 0.0, -1.0, 1.0).cast(a.dtype());
  std::vector<std::pair<int64_t, int64_t>> more(static_cast<size_t>(sign.ndim()));
  more.back() = {0, columns - m};
  const Tensor is_finite = given.isfinite().all({-2, -1}, true);
  const auto checked = [&](const Tensor& t) {
    return where(is_finite, t, std::numeric_limits<double>::quiet_NaN());
  };
  return {checked(basis.q * sign.pad(more, 1.0).unsqueeze(-2)),
          checked((diagonal.abs().unsqueeze(-2) * where(empty, 1.0, scale))).squeeze(-2),
          checked(x.slice(-2, {n, n + m}))};
}

Tensor over(const Tensor& x, const Tensor& by) {
  const Tensor zero = by == 0.0;
  return where(zero, 0.0, x / where(zero, 1.0, by));
}

/// The gradient of x = u diag(s) v^T, thin. Source: Townsend 2016. Equal values, whose vectors have
/// no derivative, and zeros contribute 0.
Tensor svd_gradient(const std::vector<Tensor>& usv, const std::vector<Tensor>& g) {
  const Tensor &u = usv[0], &v = usv[2], s = usv[1].unsqueeze(-2), st = s.transpose();
  const Tensor gap = s.square() - st.square();
  const auto skew = [&](const Tensor& vectors, const Tensor& gradient) {
    const Tensor product = vectors.transpose().matmul(gradient);
    return over(product - product.transpose(), gap);
  };
  const Tensor eye = identity_like(usv[0], s.size(-1), s.size(-1));
  const Tensor core = skew(u, g[0]) * s + st * skew(v, g[2]) + eye * g[1].unsqueeze(-2);
  const auto rest = [](const Tensor& vectors, const Tensor& gradient) {
    return gradient - vectors.matmul(vectors.transpose().matmul(gradient));
  };
  Tensor x = u.matmul(core).matmul(v.transpose());
  x = x + over(rest(u, g[0]), s).matmul(v.transpose());
  return x + u.matmul(over(rest(v, g[2]), s).transpose());
}

}  // namespace

QR qr(const Tensor& x, bool full_matrices) {
  require_matrices("qr", x);
  const int64_t n = x.size(-2), k = full_matrices ? n : std::min(n, x.size(-1));
  const QR found = factors(x.cast(working_dtype(x)), k);
  return {found.q.cast(x.dtype()), found.r.slice(-2, {0, k}).cast(x.dtype())};
}

SVD svd(const Tensor& x, bool full_matrices) {
  require_matrices("svd", x);
  const int64_t n = x.size(-2), m = x.size(-1), k = std::min(n, m);
  if (n < m) {
    const SVD turned = svd(x.transpose(), full_matrices);
    return {turned.vt.transpose(), turned.s, turned.u.transpose()};
  }
  const int64_t columns = full_matrices ? n : k;
  Tensor rest;  // columns of u without a singular value
  const CustomFunction decompose{"svd",
                                 [&](FunctionContext&, const std::vector<Tensor>& in) {
                                   std::vector<Tensor> usv = jacobi(in[0], columns);
                                   rest = usv[0].slice(-1, {k, {}});
                                   usv[0] = usv[0].slice(-1, {0, k});
                                   return usv;
                                 },
                                 [](const FunctionContext& context, const std::vector<Tensor>& g) {
                                   return std::vector{svd_gradient(context.outputs(), g)};
                                 }};
  const std::vector<Tensor> usv = decompose({x.cast(working_dtype(x))});
  const Tensor u = columns > k ? cat({usv[0], rest}, -1) : usv[0];
  return {u.cast(x.dtype()), usv[1].cast(x.dtype()), usv[2].transpose().cast(x.dtype())};
}

Tensor newton_schulz(const Tensor& x, int64_t steps, const std::vector<double>& coefficients,
                     double eps) {
  require_matrices("newton_schulz", x);
  require(steps >= 0, "[newton_schulz] {} steps", steps);
  require(!coefficients.empty(), "[newton_schulz] no coefficients are given");
  const bool tall = x.size(-2) > x.size(-1);
  const Tensor norm = x.square().sum({-2, -1}, true).sqrt() + eps;
  Tensor y = ((tall ? x.transpose() : x) / norm).contiguous();
  for (int64_t step = 0; step < steps; ++step) {
    // y <- (c0 + p(a)) y with p(a) = a (c1 + a (c2 + …)), by Horner's scheme.
    Tensor next = y * coefficients[0];
    if (coefficients.size() > 1) {
      const Tensor a = y.matmul(y.transpose()).contiguous();
      Tensor p = a * coefficients.back();
      for (size_t i = coefficients.size() - 2; i > 0; --i)
        p = (a * coefficients[i] + a.matmul(p)).contiguous();
      next = next + p.matmul(y);
    }
    y = next.contiguous();
  }
  return tall ? y.transpose() : y;
}

}  // namespace plugrad

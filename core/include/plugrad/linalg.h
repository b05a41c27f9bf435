/// Linear algebra other than matmul. Functions of matrices work on the last two axes and treat the
/// leading axes as a batch. All have gradients.
#pragma once

#include <string_view>
#include <vector>

#include "plugrad/tensor.h"

namespace plugrad {

/// Sums of products by axis names: einsum("bij,bjk->bik", {a, b}). A name that occurs twice in one
/// operand takes its diagonal; names that are missing in the result are summed; "..." stands for
/// axes that broadcast. Without "->" the result has the names that occur once, in alphabetic order.
/// Operands are contracted from left to right. Dtype: as matmul; `dtype`, if given, is that of
/// products, sums and result. Errors: User, with a caret where the pattern is wrong, or with both
/// sizes where they differ.
PLUGRAD_API Tensor einsum(std::string_view pattern, const std::vector<Tensor>& operands,
                          std::optional<DType> dtype = {});
/// Products of all pairs of elements of two vectors. Shape: (n), (m) -> (n, m).
PLUGRAD_API Tensor outer(const Tensor& a, const Tensor& b);
/// Sums over the last axis of both. Shape: (…, k), (…', k) -> (…, …').
PLUGRAD_API Tensor inner(const Tensor& a, const Tensor& b);
/// Sums over the last `axes` axes of `a` and the first of `b`, or over the listed axes of each.
PLUGRAD_API Tensor tensordot(const Tensor& a, const Tensor& b, int64_t axes = 2);
PLUGRAD_API Tensor tensordot(const Tensor& a, const Tensor& b, const std::vector<int64_t>& axes_a,
                             const std::vector<int64_t>& axes_b);

/// Orthogonal and upper triangular factors, x = q r.
struct QR {
  Tensor q, r;
};
/// Shape: (…, n, m) -> q (…, n, k), r (…, k, m), k = min(n, m); full: q (…, n, n), r (…, n, m).
/// Source: Householder 1958.
PLUGRAD_API QR qr(const Tensor& x, bool full_matrices = false);

/// Orthogonal factors and singular values, x = u diag(s) vt.
struct SVD {
  Tensor u, s, vt;
};
/// Shape: (…, n, m) -> u (…, n, n), s (…, k), vt (…, m, m), k = min(n, m); without full_matrices: u
/// (…, n, k), vt (…, k, m). Values descend. Source: one-sided Jacobi rotations, Hestenes 1958, in
/// the order of Brent and Luk 1985.
PLUGRAD_API SVD svd(const Tensor& x, bool full_matrices = true);

/// Approximates the closest matrix with orthonormal rows or columns: `steps` iterations of X <- c0
/// X + c1 (X X^T) X + c2 (X X^T)^2 X + …, from X / (Frobenius norm + eps). Shape: (…, n, m), kept.
/// Errors: User unless floats with two axes, or without coefficients. Source: Jordan et al. 2024
/// (Muon), whose coefficients take singular values to 0.7 … 1.2.
PLUGRAD_API Tensor newton_schulz(const Tensor& x, int64_t steps = 5,
                                 const std::vector<double>& coefficients = {3.4445, -4.7750,
                                                                            2.0315},
                                 double eps = 1e-7);

}  // namespace plugrad

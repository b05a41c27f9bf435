"""The extension linalg of the array API standard.

Functions of matrices take floats, work on the last two axes and treat the leading axes as a batch.
Singular and not positive definite matrices give inf or NaN, not an error.
"""
from __future__ import annotations

from typing import Literal, NamedTuple

from .. import _plugrad
from .._plugrad import Tensor, where
from ..errors import UserError
from . import _factors, _linear_algebra
from ._dtypes import DEFAULT_INDEX, DType, result_type
from ._linear_algebra import (matmul as matmul, matrix_transpose as matrix_transpose,
                              tensordot as tensordot, vecdot as vecdot)
from ._manipulation import broadcast_arrays, broadcast_shape
from ._operands import diagonal_of, floats

__all__ = ["cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul",
           "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr",
           "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm"]


class EighResult(NamedTuple):
    """Eigenvalues, ascending, and eigenvectors, which are columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """An orthogonal and an upper triangular factor."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """The sign of a determinant and the logarithm of its magnitude."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """Orthogonal factors, and singular values in descending order."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangular L with L Lᵀ = x, or the upper U with Uᵀ U = x, which reads the lower triangle.

    NaN for a matrix that is not positive definite.
    """
    _factors.require_matrices("cholesky", x, is_square=True)
    count = x.shape[-1]
    rows, rest, factor = _factors.indices(count, x), x.tril(), x.zeros_like()
    for i in range(count):
        # The step is data, so that all steps have the same kernels.
        step = Tensor([i], DEFAULT_INDEX, x.device).realize()
        column = rest.index_select(-1, step)
        root = column.index_select(-2, step).sqrt()
        column = where(rows.unsqueeze(1) >= step, column / root, 0.0)
        factor = where(rows == step, column, factor)
        rest = rest - column @ column.mT
        _plugrad.realize(factor, rest)
    return factor.mT if upper else factor


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The x of x1 x = x2, by LU decomposition with partial pivoting; x2 has columns or, with one
    axis, is a vector."""
    _factors.require_matrices("solve", x1, is_square=True)
    dtype = result_type(x1, x2)
    a, b = x1.cast(dtype), x2.cast(dtype)
    is_vector = b.ndim == 1
    if is_vector:
        b = b.unsqueeze(-1)
    if b.shape[-2] != a.shape[-1]:
        raise UserError(f"[solve] shapes {x1.shape} and {x2.shape} do not fit")
    batch = broadcast_shape(a.shape[:-2], b.shape[:-2])
    factors = _factors.Factors(a)
    order = factors.order.unsqueeze(-1).expand((*batch, *b.shape[-2:]))
    made = _factors.substitute(factors.lu, b.expand((*batch, *b.shape[-2:])).gather(-2, order))
    return made.squeeze(-1) if is_vector else made


def inv(x: Tensor, /) -> Tensor:
    """The inverse matrices, by LU decomposition with partial pivoting."""
    _factors.require_matrices("inv", x, is_square=True)
    return solve(x, Tensor.eye(x.shape[-1], dtype=x.dtype, device=x.device).expand(x.shape))


def det(x: Tensor, /) -> Tensor:
    """The determinants, by LU decomposition with partial pivoting."""
    _factors.require_matrices("det", x, is_square=True)
    factors = _factors.Factors(x)
    return factors.sign * factors.diagonal().prod(-1)


def slogdet(x: Tensor, /) -> SlogdetResult:
    """The signs of the determinants and the logarithms of their magnitudes, which may overflow."""
    _factors.require_matrices("slogdet", x, is_square=True)
    factors = _factors.Factors(x)
    pivots = factors.diagonal()
    return SlogdetResult(factors.sign * pivots.sign().prod(-1), pivots.abs().log().sum(-1))


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Cross products of the vectors of 3 elements along an axis, counted from the end."""
    _linear_algebra.require_common_axis("cross", x1, x2, axis)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise UserError(f"[cross] axis {axis} of shapes {x1.shape} and {x2.shape} must have size 3")
    a, b = broadcast_arrays(x1, x2)
    return a.roll(-1, axis) * b.roll(-2, axis) - a.roll(-2, axis) * b.roll(-1, axis)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """A diagonal of matrices; positive offsets are above the main one."""
    return x.diagonal(diagonal_of(x.shape, offset), -2, -1)


def eigh(x: Tensor, /) -> EighResult:
    """Eigenvalues, ascending, and eigenvectors of symmetric matrices, from a singular value
    decomposition of x + c 1, where c makes it positive definite. Errors of eigenvalues are relative
    to the largest one."""
    _factors.require_matrices("eigh", x, is_square=True)
    if x.shape[-1] == 0:
        return EighResult(x.sum(-1), x)
    bound = x.abs().sum(-1, True).max(-2, True)
    shift = 2.0 * where(bound == 0.0, 1.0, bound)
    identity = Tensor.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    vectors = _plugrad.svd(x + shift * identity)[2].mT.flip(-1).contiguous()
    values = ((x @ vectors) * vectors).sum(-2)  # Rayleigh quotients
    values, order = values.sort()
    return EighResult(values, vectors.gather(-1, order.unsqueeze(-2).expand(x.shape)))


def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues of symmetric matrices, ascending."""
    return eigh(x).eigenvalues


def matrix_norm(x: Tensor, /, *, keepdims: bool = False,
                ord: float | Literal["fro", "nuc"] | None = "fro") -> Tensor:
    """Norms of matrices: "fro", "nuc", 1, 2, inf, and the smallest sums and values: -1, -2, -inf."""
    _factors.require_matrices("matrix_norm", x)
    if 0 in x.shape[-2:] and ord not in (-1, -2, -float("inf")):
        made = x.sum((-2, -1), True)
    elif ord in ("fro", None):
        made = vector_norm(x, axis=(-2, -1), keepdims=True)
    elif ord in ("nuc", 2, -2):
        values = svdvals(x).unsqueeze(-1)
        made = values.sum(-2, True) if ord == "nuc" else values.max(-2, True) if ord == 2 else \
            values.min(-2, True)
    elif ord in (1, -1, float("inf"), -float("inf")):
        summed, other = (-2, -1) if ord in (1, -1) else (-1, -2)
        sums = x.abs().sum(summed, True)
        made = sums.max(other, True) if ord in (1, float("inf")) else sums.min(other, True)
    else:
        raise UserError(f'[matrix_norm] ord is "fro", "nuc", ±1, ±2 or ±inf, not {ord!r}')
    return made if keepdims else made.squeeze((-2, -1))


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Products of n equal matrices, or of -n inverse ones."""
    _factors.require_matrices("matrix_power", x, is_square=True)
    square = inv(x) if n < 0 else x
    made, rest = Tensor.eye(x.shape[-1], dtype=x.dtype, device=x.device).expand(x.shape), abs(n)
    while rest:
        if rest % 2:
            made = made @ square
        square, rest = square @ square, rest // 2
    return made


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The numbers of singular values above rtol times the largest; rtol is max(n, m) eps."""
    _factors.require_matrices("matrix_rank", x)
    values = svdvals(x)
    return (values > _factors.tolerance(rtol, x) * values.max(-1, True)).sum(-1, False, DEFAULT_INDEX)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Products of all pairs of elements of two vectors."""
    return _plugrad.outer(x1, x2)


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """Pseudoinverses. Singular values up to rtol times the largest count as 0."""
    _factors.require_matrices("pinv", x)
    u, s, vt = svd(x, full_matrices=False)
    is_kept = s > _factors.tolerance(rtol, x) * s.max(-1, True)
    inverse = where(is_kept, 1.0 / where(is_kept, s, 1.0), 0.0)
    return (vt.mT * inverse.unsqueeze(-2)) @ u.mT


def qr(x: Tensor, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Orthogonal and upper triangular factors, by Householder reflections."""
    if mode not in ("reduced", "complete"):
        raise UserError(f'[qr] mode is "reduced" or "complete", not {mode!r}')
    return QRResult(*_plugrad.qr(x, mode == "complete"))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular values, descending, and orthogonal factors, by one-sided Jacobi rotations."""
    return SVDResult(*_plugrad.svd(x, full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values, descending."""
    return svd(x, full_matrices=False).S


def trace(x: Tensor, /, *, offset: int = 0, dtype: DType | None = None) -> Tensor:
    """Sums of a diagonal of matrices. Dtype: as of sum."""
    return diagonal(x, offset=offset).sum(-1, False, dtype)


def vector_norm(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False,
                ord: float = 2) -> Tensor:
    """(sum of |x|^ord)^(1 / ord) over axes; inf: the largest |x|, -inf: the smallest, 0: the number
    of elements that are not 0."""
    size = floats(x).abs()
    if ord == float("inf"):
        return size.max(axis, keepdims)
    if ord == -float("inf"):
        return size.min(axis, keepdims)
    if ord == 0:
        return (size != 0.0).sum(axis, keepdims).cast(size.dtype)
    if ord == 1:
        return size.sum(axis, keepdims)
    if 0 in x.shape:
        return size.sum(axis, keepdims)
    # Divided by the largest element, so that no power overflows.
    largest = size.max(axis, True)
    scale = where((largest == 0.0) | largest.isinf(), 1.0, largest)
    powers = (size / scale).pow(float(ord)).sum(axis, True)
    made = powers.sqrt() if ord == 2 else powers.pow(1.0 / ord)
    made = made * scale
    return made if keepdims else made.squeeze(() if x.ndim == 0 else tuple(range(x.ndim))
                                              if axis is None else axis)



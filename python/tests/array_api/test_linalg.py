"""Linear algebra: products, and the extension linalg against NumPy in float64."""
import numpy as np
import pytest
from standard import BYTES, EMPTY, INTS, VECTOR, X, Y, case, check

import plugrad as pg
import plugrad.array_api as xp

linalg = xp.linalg
random = np.random.default_rng(1)
SHAPES = ((1, 1), (3, 3), (2, 4, 4), (2, 1, 5, 5), (9, 9), (0, 0), (2, 0, 0))
CASES = [
    case("matmul", X, Y), case("matmul", INTS, INTS.T.copy()), case("matmul", X[0], Y),
    case("matmul", BYTES, BYTES.transpose(0, 2, 1).copy()), case("matmul", X[0], X[0]),
    case("matmul", np.zeros((2, 0), np.float32), EMPTY), case("matrix_transpose", BYTES),
    case("tensordot", X, Y, axes=1), case("tensordot", X, X), case("tensordot", X, Y, axes=0),
    case("tensordot", X, Y, axes=((0,), (1,))), case("tensordot", INTS, INTS),
    case("tensordot", X, Y, axes=((0, 1), (1, 0))), case("tensordot", BYTES, BYTES, axes=3),
    case("tensordot", X, Y, axes=((-1,), (-2,))),
    case("vecdot", X, X), case("vecdot", X, X[0]), case("vecdot", X, X, axis=-2),
    case("vecdot", INTS, INTS), case("vecdot", BYTES, BYTES[:1, :1]),
    case("linalg.cross", X[:, :3], X[:1, 1:]), case("linalg.cross", X, X[::-1], axis=-2),
    case("linalg.outer", X[0], Y[0]), case("linalg.outer", VECTOR, VECTOR),
    *(case("linalg.diagonal", array, offset=offset) for array in (X, BYTES)
      for offset in (-2, 0, 1)),
    *(case("linalg.trace", array, offset=offset) for array in (X, BYTES, INTS)
      for offset in (-1, 0, 2)),
    *(case("linalg.vector_norm", X, axis=axis, keepdims=keepdims, ord=order)
      for axis in (None, 0, (0, 1)) for keepdims in (False, True)
      for order in (0, 1, 2, 3, 0.5, -1, np.inf, -np.inf)),
    *(case("linalg.matrix_norm", X, ord=order, keepdims=keepdims)
      for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf) for keepdims in (False, True)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_values(case):
    check(case, 1e-4, 1e-5)


def matrices(shape: tuple[int, ...]) -> np.ndarray:
    return random.standard_normal(shape)


def tensor(values: np.ndarray) -> pg.Tensor:
    return xp.asarray(values, copy=True)


def near(found, expected, rtol=1e-9):
    scale = np.max(np.abs(expected), initial=1e-300)
    np.testing.assert_allclose(found.numpy() / scale, expected / scale, rtol, 1e-11)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_systems_of_equations(shape):
    a, b = matrices(shape), matrices((*shape[:-1], 2))
    near(linalg.solve(tensor(a), tensor(b)), np.linalg.solve(a, b))
    near(linalg.inv(tensor(a)), np.linalg.inv(a))
    near(linalg.det(tensor(a)), np.linalg.det(a))
    sign, logarithm = linalg.slogdet(tensor(a))
    expected = np.linalg.slogdet(a)
    np.testing.assert_array_equal(sign.numpy(), expected.sign)
    np.testing.assert_allclose(logarithm.numpy(), expected.logabsdet, 1e-9, 1e-12)
    for power in (-2, 0, 1, 5):
        near(linalg.matrix_power(tensor(a), power), np.linalg.matrix_power(a, power), 1e-7)


def test_solve_takes_vectors_and_broadcasts():
    a, vector = matrices((2, 3, 3)), matrices((3,))
    near(linalg.solve(tensor(a), tensor(vector)),
         np.linalg.solve(a, np.broadcast_to(vector[:, None], (2, 3, 1)))[..., 0])
    near(linalg.solve(tensor(a[0]), tensor(a)), np.linalg.solve(a[0], a))


@pytest.mark.parametrize("shapes", (
    ((0, 0), (0,)), ((0, 0), (0, 2)), ((0, 0), (2, 0, 3)), ((2, 0, 0), (0,)), ((3, 3), (2, 3, 0)),
    ((2, 1, 0, 0), (3, 0, 0)), ((0, 3, 3), (3, 2)), ((0, 3, 3), (3,))), ids=str)
def test_solve_without_elements(shapes):
    """Their stacks broadcast, too."""
    a, b = (xp.ones(shape, dtype=xp.float64) for shape in shapes)
    expected = np.broadcast_shapes(shapes[0][:-2], shapes[1][:-2]) + shapes[1][-2:] \
        if b.ndim > 1 else shapes[0][:-1]
    assert linalg.solve(a, b).numpy().shape == expected


def test_pivots_avoid_small_divisors():
    a = np.array([[1e-20, 1.0], [1.0, 1.0]])
    near(linalg.solve(tensor(a), tensor(np.array([1.0, 2.0]))), np.array([1.0, 1.0]))
    assert linalg.det(tensor(np.zeros((3, 3)))).item() == 0
    assert linalg.det(tensor(np.array([[0.0, 2.0], [3.0, 0.0]]))).item() == -6


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_symmetric_matrices(shape):
    a = matrices(shape)
    symmetric = a + np.swapaxes(a, -1, -2)
    values, vectors = linalg.eigh(tensor(symmetric))
    near(values, np.linalg.eigvalsh(symmetric))
    near(linalg.eigvalsh(tensor(symmetric)), np.linalg.eigvalsh(symmetric))
    v = vectors.numpy()
    np.testing.assert_allclose(symmetric @ v, v * values.numpy()[..., None, :], atol=1e-11)
    identity = np.broadcast_to(np.eye(shape[-1]), shape)
    np.testing.assert_allclose(np.swapaxes(v, -1, -2) @ v, identity, atol=1e-11)
    positive = a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1])
    factor = np.linalg.cholesky(positive)
    near(linalg.cholesky(tensor(positive)), factor)
    near(linalg.cholesky(tensor(positive), upper=True), np.swapaxes(factor, -1, -2))


def test_eigenvalues_that_are_equal_negative_or_zero():
    for values in ([1.0, 1.0, 1.0], [-2.0, -2.0, 5.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 1.0]):
        q = np.linalg.qr(matrices((3, 3)))[0]
        found = linalg.eigvalsh(tensor(q * np.array(values) @ q.T))
        np.testing.assert_allclose(found.numpy(), values, atol=1e-12)


@pytest.mark.parametrize("shape", ((4, 3), (3, 4), (2, 5, 3), (1, 1)), ids=str)
def test_factors(shape):
    a = matrices(shape)
    x = tensor(a)
    for mode in ("reduced", "complete"):
        q, r = linalg.qr(x, mode=mode)
        expected = np.linalg.qr(a, mode=mode)
        assert q.shape == expected.Q.shape and r.shape == expected.R.shape
        near(q @ r, a)
    for full in (False, True):
        u, s, vh = linalg.svd(x, full_matrices=full)
        expected = np.linalg.svd(a, full_matrices=full)
        assert u.shape == expected.U.shape and vh.shape == expected.Vh.shape
        near(s, expected.S)
    u, s, vh = linalg.svd(x, full_matrices=False)
    near((u * s[..., None, :]) @ vh, a)
    near(linalg.svdvals(x), np.linalg.svdvals(a))
    near(linalg.pinv(x), np.linalg.pinv(a))
    assert linalg.matrix_rank(x).tolist() == np.linalg.matrix_rank(a).tolist()


def test_rank_deficient_matrices():
    a = np.outer([1.0, 2.0, 3.0], [1.0, -1.0])
    assert linalg.matrix_rank(tensor(a)).item() == 1
    assert linalg.matrix_rank(tensor(np.diag([1.0, 1e-3])), rtol=1e-2).item() == 1
    near(linalg.pinv(tensor(a)), np.linalg.pinv(a))
    stacked = tensor(np.stack([np.eye(2), np.diag([1.0, 0.0])]))
    assert linalg.matrix_rank(stacked, rtol=xp.asarray([1e-3, 1e-3])).tolist() == [2, 1]


def test_singular_and_indefinite_matrices_give_no_numbers():
    assert not np.isfinite(linalg.inv(tensor(np.ones((2, 2)))).numpy()).all()
    assert np.isnan(linalg.cholesky(tensor(-np.eye(2))).numpy()).any()


def test_norms_of_empty_matrices():
    empty = xp.zeros((2, 0, 3))
    for order in ("fro", "nuc", 1, 2, xp.inf):
        assert linalg.matrix_norm(empty, ord=order).tolist() == [0, 0]


@pytest.mark.parametrize("call", [
    lambda x: linalg.inv(x), lambda x: linalg.det(x[0]), lambda x: linalg.cholesky(x),
    lambda x: linalg.eigh(x), lambda x: linalg.matrix_norm(x, ord=3),
    lambda x: linalg.qr(x, mode="full"), lambda x: linalg.cross(x, x), lambda x: linalg.cross(x, x, axis=0),
    lambda x: linalg.solve(xp.ones((2, 2)), xp.ones(3)), lambda x: linalg.vecdot(x, x, axis=0),
    lambda x: linalg.matrix_rank(xp.ones((2, 2), dtype=xp.int64)), lambda x: x[0].mT,
    lambda x: linalg.vecdot(x, xp.ones(3))])
def test_refused(call):
    with pytest.raises(ValueError):
        call(tensor(X))


@pytest.mark.parametrize("function", [
    lambda a: linalg.solve(a, a[:, :1] + 1.0), linalg.inv, linalg.det, linalg.pinv,
    lambda a: linalg.cholesky(a @ a.mT + xp.eye(3, dtype=a.dtype)),
    lambda a: linalg.slogdet(a).logabsdet, lambda a: linalg.eigvalsh(a + a.mT)])
def test_gradients_are_those_of_differences(function):
    a, direction = matrices((3, 3)), matrices((3, 3))

    def loss(values):
        return xp.sum(xp.square(function(values)))

    x = pg.Tensor(a, requires_grad=True)
    loss(x).backward()
    ahead, behind = (loss(tensor(a + step * direction)).item() for step in (1e-6, -1e-6))
    np.testing.assert_allclose((x.grad.numpy() * direction).sum(), (ahead - behind) / 2e-6, 1e-5)


def test_solve_is_recorded_by_jit():
    solve = pg.jit(linalg.solve)
    for _ in range(4):
        a, b = matrices((3, 3)), matrices((3, 1))
        near(solve(tensor(a), tensor(b)), np.linalg.solve(a, b))
    assert solve.recordings == 1


def test_norms_of_extreme_vectors():
    inf, nan = float("inf"), float("nan")
    for values, expected in (([3e30, 4e30], 5e30), ([3e-30, 4e-30], 5e-30), ([inf, 1.0], inf),
                             ([0.0, 0.0], 0.0), ([nan, 1.0], nan), ([inf, -inf], inf)):
        norm = linalg.vector_norm(xp.asarray(values, dtype=xp.float32)).item()
        np.testing.assert_allclose(norm, expected, 1e-6)

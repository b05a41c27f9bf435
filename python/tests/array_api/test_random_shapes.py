"""Functions on random shapes, dtypes and values, against NumPy."""
import math

import numpy as np
import pytest

pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from hypothesis.extra import numpy as arrays  # noqa: E402

import plugrad.array_api as xp  # noqa: E402

DTYPES = st.sampled_from(("int8", "int32", "int64", "uint8", "uint16", "float32", "float64"))
SHAPES = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
few = settings(max_examples=50, deadline=None, derandomize=True,
               suppress_health_check=list(HealthCheck))


def tensor(values):
    return xp.asarray(values, copy=True)


def values_of(draw, shape, dtype):
    """Small integers, which every dtype and sum holds."""
    return draw(arrays.arrays(dtype, shape, elements=st.integers(0, 5)))


@st.composite
def arrays_that_broadcast(draw):
    shapes = draw(arrays.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=4))
    return [values_of(draw, shape, draw(DTYPES)) for shape in shapes.input_shapes]


@st.composite
def arrays_and_axes(draw):
    values = values_of(draw, draw(SHAPES), draw(DTYPES))
    axes = draw(st.none() | st.sets(st.integers(0, max(values.ndim - 1, 0)), max_size=values.ndim))
    signs = draw(st.lists(st.booleans(), min_size=3, max_size=3))
    if axes is not None:
        axes = tuple(axis - values.ndim * sign for axis, sign in zip(axes, signs))
    return values, axes


@few
@given(arrays_that_broadcast(), st.sampled_from("add multiply maximum less equal".split()))
def test_operands_broadcast(operands, name):
    a, b = operands
    made = getattr(xp, name)(tensor(a), tensor(b))
    expected = getattr(np, name)(a, b)
    assert made.shape == expected.shape and made.size == math.prod(expected.shape)
    np.testing.assert_array_equal(made.numpy(), expected)
    if np.dtype(a.dtype).kind == np.dtype(b.dtype).kind and expected.dtype != bool:
        assert made.dtype == expected.dtype


@few
@given(arrays_and_axes(), st.booleans(), st.sampled_from("sum prod all any".split()))
def test_reductions(operand, keepdims, name):
    values, axes = operand
    made = getattr(xp, name)(tensor(values), axis=axes, keepdims=keepdims)
    expected = getattr(np, name)(values, axis=axes, keepdims=keepdims)
    assert made.shape == expected.shape
    np.testing.assert_allclose(made.numpy(), expected, 1e-5)


@few
@given(arrays_and_axes())
def test_unique_counts_and_searches_agree_with_the_values(operand):
    values, _ = operand
    made, expected = xp.unique_all(tensor(values)), np.unique_all(values)
    for ours, other in zip(made, expected):
        np.testing.assert_array_equal(ours.numpy(), other)
    for side in ("left", "right"):
        found = xp.searchsorted(made.values, tensor(values), side=side)
        np.testing.assert_array_equal(found.numpy(),
                                      np.searchsorted(expected.values, values, side=side))


@few
@given(arrays_and_axes(), st.data())
def test_masks_and_assignment(operand, data):
    values, _ = operand
    mask = data.draw(arrays.arrays(bool, values.shape))
    x = tensor(values)
    np.testing.assert_array_equal(x[tensor(mask)].numpy(), values[mask])
    x[tensor(mask)] = 3
    expected = values.copy()
    expected[mask] = 3
    np.testing.assert_array_equal(x.numpy(), expected)

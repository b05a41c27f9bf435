"""Tensors: creation, operators, indexing, and the errors of what they refuse."""
import numpy as np
import pytest

import plugrad as pg


def test_lists_become_int32_or_float32():
    assert pg.Tensor([[1, 2], [3, 4]]).dtype == pg.int32
    assert pg.Tensor([1, 2.5]).dtype == "float32"
    assert pg.Tensor([2**40]).tolist() == [2**40]
    assert pg.Tensor([True, False]).dtype == pg.bool_
    assert pg.Tensor(3).shape == ()


def test_operators_take_numbers_and_arrays_on_both_sides():
    x = pg.Tensor([1.0, 2.0, 4.0])
    assert (2 - x).tolist() == [1.0, 0.0, -2.0]
    assert (x // 3).tolist() == [0.0, 0.0, 1.0]
    assert (np.array([1, 1, 1], np.float32) + x).tolist() == [2.0, 3.0, 5.0]
    assert (2**x).tolist() == [2.0, 4.0, 16.0]


def test_axis_and_dim_are_one_argument():
    x = pg.Tensor([[1, 2], [3, 4]])
    assert x.sum(axis=0).tolist() == x.sum(dim=0).tolist() == [4, 6]


def test_indexing_follows_numpy():
    values = np.arange(24).reshape(2, 3, 4).astype(np.int32)
    x = pg.Tensor(values)
    for index in (0, (1, 2), (slice(None), [0, 2]), (..., 1), (None, 1, slice(3, 0, -2)), values > 7):
        assert np.array_equal(x[index].numpy(), values[index]), index


def test_errors_have_pythons_classes():
    with pytest.raises(ValueError, match="different lengths"):
        pg.Tensor([[1], [2, 3]])
    with pytest.raises(OverflowError):
        pg.Tensor([1]) + 2**70
    with pytest.raises(pg.UserError, match="reshape"):
        pg.Tensor([1, 2, 3]).reshape(2, 2)

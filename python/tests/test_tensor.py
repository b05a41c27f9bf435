"""Tensors: creation, operators, indexing, and the errors of what they refuse."""
import pickle

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


def test_size_is_a_number_and_takes_an_axis():
    x = pg.Tensor.zeros(2, 3)
    assert x.size == 6 and x.size + 1 == 7 and x.size(0) == 2 and x.size(axis=-1) == 3
    assert pg.Tensor(1.0).size == 1 and pg.Tensor.zeros(0, 3).size == 0
    assert type(pickle.loads(pickle.dumps(x.size))) is int
    with pytest.raises(IndexError, match="axis 2"):
        x.size(2)


def test_attributes_of_the_array_api_standard():
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    x = pg.Tensor(values)
    assert np.array_equal(x.mT.numpy(), values.transpose(0, 2, 1))
    assert np.array_equal(x.T.numpy(), values.T)
    assert x.__array_namespace__().sum(x).item() == values.sum()
    there = x.to_device("REFERENCE")
    assert there.device == "REFERENCE" and np.array_equal(there.numpy(), values)
    assert x.to_device(x.device, stream=None).device == x.device
    with pytest.raises(ValueError, match="stream"):
        x.to_device("REFERENCE", stream=1)
    with pytest.raises(ValueError):
        x.to_device("NOWHERE")
    with pytest.raises(ValueError):
        pg.Tensor([1.0]).mT


def test_a_single_bool_is_an_index_of_all_or_nothing():
    values = np.arange(3, dtype=np.float32)
    x, number = pg.Tensor(values), pg.Tensor(5.0)
    for flag in (True, False):
        mask = pg.Tensor(flag)
        assert np.array_equal(x[mask].numpy(), values[np.array(flag)])
        assert number[mask].shape == np.array(5.0)[np.array(flag)].shape
    x[pg.Tensor(False)] = 9
    assert x.tolist() == [0, 1, 2]
    x[x.sum() > 2] = pg.Tensor([4.0, 5.0, 6.0])
    number[number > 4] = 1
    assert x.tolist() == [4, 5, 6] and number.item() == 1
    with pytest.raises(IndexError, match="alone"):
        x[pg.Tensor(True), 0]


def test_plus_makes_a_copy():
    x = pg.Tensor([1.0])
    y = +x
    y[0] = 2
    assert x.tolist() == [1]

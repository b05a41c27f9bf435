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


def test_integers_do_not_pass_through_floats():
    big, top = 2**53 + 1, 2**64 - 1
    assert pg.Tensor([1], dtype="int64").pad((1, 0), big).tolist() == [big, 1]
    assert pg.Tensor([1], dtype="int64").pad_to((2,), value=big).tolist() == [1, big]
    assert pg.Tensor([1], dtype="uint64").pad(((0, 1),), "constant", top).tolist() == [1, top]
    padded = pg.Tensor([False]).pad((1, 0), True)
    assert padded.dtype == pg.bool_ and padded.tolist() == [True, False]
    with pytest.raises(ValueError, match="0.5 is no value of a i32 tensor"):
        pg.Tensor([1]).pad((1, 0), 0.5)
    assert pg.Tensor.linspace(big, big + 4, 3, "int64").tolist() == [big, big + 2, big + 4]
    assert pg.Tensor.arange(2**63, 2**63 + 2).tolist() == [2**63, 2**63 + 1]
    assert pg.Tensor.full((1,), top, "uint64").tolist() == [top]
    with pytest.raises(ValueError, match="does not hold the number 18446744073709551615"):
        pg.Tensor.full((1,), top, "int64")
    with pytest.raises(ValueError, match="size -3 is negative"):
        pg.Tensor.eye(3, -3)
    assert pg.Tensor.eye(1, dtype="int64").tolist() == [[1]]


def test_a_power_depends_on_the_exponent_alone():
    x = pg.Tensor([-0.0, -np.inf, 5.0])
    for half in (0.5, np.float32(0.5), np.array(0.5, np.float32), pg.Tensor([0.5])):
        assert str((x**half).tolist()[:2]) == "[0.0, inf]"
    for two in (2, 2.0, np.float32(2), np.float64(2), pg.Tensor([2.0]), np.array([2], np.float32)):
        assert (x**two).tolist() == [0.0, np.inf, 25.0] and (x**two).dtype == pg.float32
    assert (x**np.array([2.0])).dtype == pg.float64


def test_axis_and_dim_are_one_argument():
    x = pg.Tensor([[1, 2], [3, 4]])
    assert x.sum(axis=0).tolist() == x.sum(dim=0).tolist() == [4, 6]


def test_indexing_follows_numpy():
    values = np.arange(24).reshape(2, 3, 4).astype(np.int32)
    x = pg.Tensor(values)
    for index in (0, (1, 2), (slice(None), [0, 2]), (..., 1), (None, 1, slice(3, 0, -2)), values > 7):
        assert np.array_equal(x[index].numpy(), values[index]), index


ROWS = [0, 1, 1, 0, 1]


@pytest.mark.parametrize("index", [
    (0, slice(None), [0, 1, 1]), (slice(None), 0, slice(None), ROWS), (slice(None), ROWS, ..., [0]),
    (slice(None), ROWS, ROWS, ..., ROWS), (slice(None), 0, ..., ROWS, ROWS), (0, None, ROWS),
    ([], [1]), ([], [99]), ([[]],), (ROWS, ROWS), (slice(None), np.eye(2, dtype=bool)),
    (slice(None), slice(None), [True, False], 0)], ids=str)
@pytest.mark.parametrize("dtype", ["int32", "bool"])
def test_axes_of_index_arrays_are_where_numpy_has_them(index, dtype):
    values = (np.arange(48) % 5).reshape(2, 2, 2, 6).astype(dtype)
    x = pg.Tensor(values)
    read = x[index].numpy()
    assert read.dtype == values.dtype and np.array_equal(read, values[index])
    given = (np.arange(values[index].size) % 3).reshape(values[index].shape).astype(dtype)
    x[index] = given
    values[index] = given
    assert np.array_equal(x.numpy(), values)


def test_indices_and_values_go_to_the_device_of_the_tensor():
    x = pg.Tensor([1.0, 2.0, 3.0], device="REFERENCE")
    assert x[[2, 0]].tolist() == [3.0, 1.0] and x[np.array([True, False, True])].tolist() == [1.0, 3.0]
    x[[0, 1]] = np.array([7, 8], np.float32)
    assert x.tolist() == [7.0, 8.0, 3.0] and x.device == "REFERENCE"


@pytest.mark.parametrize("dtype", ["float64", "int32", "uint8", "bool"])
def test_lists_are_assigned(dtype):
    values = np.zeros((2, 3), dtype)
    x = pg.Tensor(values, device="REFERENCE")
    x[0] = values[0] = [1, 0, 1]
    x[:, 1] = values[:, 1] = (0.1, 0.2) if dtype == "float64" else (1, 0)
    assert x.dtype == dtype and np.array_equal(x.numpy(), values)
    x[1] = [pg.Tensor(1), x[0, 2].item(), False]
    assert x[1].tolist() == [1, 1, 0]
    assert x.assign([[0], [1]]) is x and x.tolist() == [[0, 0, 0], [1, 1, 1]]
    assert x.assign(1).tolist() == [[1, 1, 1]] * 2 and x.device == "REFERENCE"


def test_lists_that_do_not_fit_are_not_assigned():
    x = pg.Tensor([1, 2], dtype="uint8")
    for write in (x.assign, lambda value: x.__setitem__(..., value)):
        for value, error in (([1.5, 2], TypeError), ([300, 1], OverflowError), ([[1], 2], ValueError), (["a"], TypeError),
                             (None, TypeError), ([1, 2, 3], pg.UserError)):
            with pytest.raises(error):
                write(value)
    assert x.tolist() == [1, 2]


@pytest.mark.parametrize("call", [
    lambda name: pg.Tensor([1]).cast(name), lambda name: pg.Tensor([1], dtype=name),
    lambda name: pg.Tensor.zeros(2, dtype=name), lambda name: pg.dtype(name),
    lambda name: pg.Tensor([1]).to(dtype=name), lambda name: pg.Tensor([1]).sum(dtype=name),
    lambda name: pg.nn.to(pg.nn.Linear(1, 1), dtype=name),
    lambda name: pg.UserKernel("f", sources={"CPU": ""})([], ((1,), name))])
def test_an_unknown_dtype_is_named_with_those_there_are(call):
    with pytest.raises(pg.UserTypeError) as info:
        call("flaot32")
    assert str(info.value).startswith('"flaot32" is no dtype; did you mean "float32"? dtypes: bool, ')
    assert all(name in str(info.value) for name in ("uint8", "bfloat16", "float64", "float8_e5m2"))
    with pytest.raises(pg.UserTypeError, match='^"nodtype" is no dtype; dtypes: bool'):
        call("nodtype")


def test_letters_of_other_alphabets_are_shown_in_a_dtype():
    with pytest.raises(pg.UserTypeError, match=r'^"fl\\u043eat32\\u200b" is no dtype; did you mean "float32"'):
        pg.Tensor([1], dtype="fl\u043eat32\u200b")


def test_dtypes_of_other_libraries_that_there_are_not():
    with pytest.raises(TypeError, match='"complex64" is no dtype'):
        pg.Tensor([1]).cast(np.complex64)
    assert pg.float32 != "nodtype" and pg.float32 != np.dtype("complex64") and pg.float32 != 3


class Hostile:
    """Has no text, and attributes that fail."""

    def __str__(self):
        raise ValueError("no text")

    @property
    def itemsize(self):
        raise ValueError("no size")


@pytest.mark.parametrize("other", [None, 3, 1.5, ..., [], {}, object(), type, "nothing", "\ud800", b"float32", Hostile(),
                                   np.dtype("complex64"), pg.float64])
@pytest.mark.parametrize("value", [pg.float32, pg.Tensor([1.0]).uop, pg.Mesh({"data": 1}), pg.ShardSpec("data")])
def test_comparisons_answer_for_any_object(value, other):
    assert (value == other) is False and (value != other) is True
    assert other not in [value] and value in [other, value]
    if not isinstance(other, (list, dict)):
        assert {value: 1}.get(other) is None


def test_a_dtype_is_no_array():
    assert (pg.float32 == np.arange(3)) is False


def test_to_takes_a_dtype_a_device_or_both():
    x = pg.Tensor([1.5])
    moved = x.to(dtype="float16", device="REFERENCE")
    assert (moved.dtype, moved.device, moved.tolist()) == ("float16", "REFERENCE", [1.5])
    assert x.to(np.float64).dtype == "float64" and x.to(None) is not None
    for wrong in (3, 1.5, [], object()):
        with pytest.raises(TypeError):
            x.to(wrong)
    with pytest.raises(pg.UserError, match="NOWHERE"):
        x.to("NOWHERE")


@pytest.mark.parametrize("axis", [2**63, -2**70, 10**2000])
@pytest.mark.parametrize("call", [
    lambda x, axis: x.argmax(axis=axis), lambda x, axis: x.sum(axis), lambda x, axis: x.sum(dim=axis),
    lambda x, axis: x.sum(axis=(0, axis)), lambda x, axis: x.softmax(axis),
    lambda x, axis: pg.cat([x, x], axis), lambda x, axis: x.transpose(0, axis),
    lambda x, axis: x.squeeze(axis), lambda x, axis: pg.softmax(x, dim=axis)])
def test_an_axis_beyond_64_bits_is_out_of_range(call, axis):
    x = pg.Tensor([[1.0, 2.0]])
    with pytest.raises(pg.UserIndexError, match="axis .*is out of range"):
        call(x, 7)
    shown = f"axis {axis} is out of range" if abs(axis) < 2**100 else "axis of .* bits is out of range"
    with pytest.raises(pg.UserIndexError, match=shown):
        call(x, axis)


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

"""Memory that goes to and comes from NumPy and DLPack: values, copies, ownership, refusals."""
import copy
import gc
import pickle
import weakref
from collections.abc import Callable

import numpy as np
import pytest
from lifetimes import ends

import plugrad as pg


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32",
                                   "int64", "uint64", "float16", "float32", "float64"])
def test_arrays_keep_dtype_and_values(dtype: str) -> None:
    array = (np.arange(24).reshape(2, 3, 4) % 2 if dtype == "bool" else
             np.arange(24).reshape(2, 3, 4)).astype(dtype)
    for given in (array, array[::-1, :, ::2], np.asfortranarray(array), array[:, :0]):
        back = pg.Tensor(given).numpy()
        assert back.dtype == given.dtype and np.array_equal(back, given)


def test_a_tensor_of_an_array_does_not_see_later_writes() -> None:
    array = np.ones(1000, np.float32)
    copied, shared = pg.Tensor(array), pg.from_numpy(array)
    array[:] = 2
    assert copied.tolist() == [1.0] * 1000 and shared.tolist() == [2.0] * 1000


def test_adopted_memory_lives_as_long_as_its_tensor() -> None:
    tensor = pg.from_numpy(np.full(100_000, 3, np.float32))
    gc.collect()
    _ = [np.zeros(100_000, np.float32) for _ in range(8)]
    assert (tensor.sum() / 100_000).item() == 3.0


def test_dlpack_goes_both_ways() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert pg.from_dlpack(array).tolist() == array.tolist()
    assert np.from_dlpack(pg.Tensor(array).realize()).tolist() == array.tolist()
    assert pg.Tensor(array).__dlpack_device__()[0] == 1


def test_what_holds_no_numbers_is_refused() -> None:
    for wrong in (np.array(["a"]), np.array([object()]), np.array([1j]),
                  np.zeros(2, [("a", "i4")]), np.array(["2020-01-01"], "M8[D]")):
        with pytest.raises(TypeError):
            pg.Tensor(wrong)
    with pytest.raises((TypeError, BufferError)):
        pg.from_dlpack("text")


class Before1:
    """Hands out capsules of before DLPack 1.0."""

    def __init__(self, tensor: pg.Tensor, copy: bool | None) -> None:
        self.tensor, self.copy = tensor, copy

    def __dlpack__(self, **keywords: object) -> object:
        return self.tensor.__dlpack__(copy=self.copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()


@pytest.mark.parametrize("make", [
    lambda: pg.Tensor([1.0, 2.0]), lambda: (pg.Tensor([1.0, 2.0]) + 1).realize(),
    lambda: pg.Tensor([1.0, 2.0]) + 1, lambda: pg.Tensor.zeros(2), lambda: pg.Tensor(1.5),
    lambda: pg.Tensor.zeros((0, 2)), lambda: pg.Tensor([[1, 2], [3, 4]])[:, 0]])
def test_values_without_a_copy(make: Callable[[], pg.Tensor]) -> None:
    """Constants, too, which have no memory of their own before."""
    with pg.device("CPU"):
        tensor = make()
    view = tensor.numpy(copy=False)
    assert view.tolist() == tensor.tolist()
    assert view.size == 0 or not view.flags.writeable
    for array in (np.from_dlpack(tensor, copy=False), np.from_dlpack(Before1(tensor, False))):
        assert array.tolist() == view.tolist() and array.shape == view.shape
    for copied in (None, True):
        assert not np.shares_memory(np.from_dlpack(Before1(tensor, copied)), view)


def test_old_readers_share_memory_when_asked() -> None:
    with pg.device("CPU"):
        tensor = pg.Tensor([1.0, 2.0]).realize()
    assert np.shares_memory(np.from_dlpack(Before1(tensor, False)), tensor.numpy(copy=False))


def test_half_precision_dtypes_of_ml_dtypes() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.array([1.5, -2.0, 0.25]).astype(ml_dtypes.bfloat16)
    tensor = pg.Tensor(values)
    assert tensor.dtype == pg.bfloat16 and tensor.tolist() == [1.5, -2.0, 0.25]
    assert tensor.numpy().dtype == ml_dtypes.bfloat16


def test_copies_and_pickles_are_tensors_of_their_own() -> None:
    tensor = pg.Tensor([1.0, 2.0], requires_grad=True)
    for other in (copy.deepcopy(tensor), pickle.loads(pickle.dumps(tensor))):
        assert other.tolist() == [1.0, 2.0] and other.requires_grad
        other.requires_grad = False
        other += 1
        assert tensor.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_one_tensor_pickled_twice_is_one_tensor(protocol: int) -> None:
    tensor, other = pg.Tensor([1.0, 2.0], requires_grad=True), pg.Tensor([1.0, 2.0])
    again = copy.copy(tensor)  # another handle
    a, b, c, d = pickle.loads(pickle.dumps([tensor, tensor, again, other], protocol))
    a.assign(pg.Tensor([3.0, 4.0]))
    assert a is b and c.tolist() == [3.0, 4.0] and c.requires_grad
    assert d.tolist() == other.tolist() and tensor.tolist() == [1.0, 2.0]


def test_each_pickle_has_the_present_values() -> None:
    tensor = pg.Tensor([1.0])
    first = pickle.dumps(tensor)
    tensor.assign(2.0)
    assert pickle.loads(pickle.dumps(tensor)).tolist() == [2.0]
    assert pickle.loads(first).tolist() == [1.0]
    alive = weakref.ref(array := np.full(1 << 16, 7, np.float32))
    held = pg.from_numpy(array)
    assert pickle.loads(pickle.dumps(held)).tolist() == [7.0] * (1 << 16)
    del array, held
    assert ends(pg.Tensor([5.0]), alive)  # nothing of the pickle keeps the tensor


def test_numpy_leaves_operators_to_tensors() -> None:
    assert isinstance(np.ones(2, np.float32) * pg.Tensor([1.0, 2.0]), pg.Tensor)
    assert np.asarray(pg.Tensor([1, 2])).tolist() == [1, 2]
    assert memoryview(pg.Tensor([1.0, 2.0])).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("bad", [np.float32, np.ndarray, object(), "1", None])
def test_objects_that_are_no_arrays_are_refused(bad: object) -> None:
    for make in (pg.from_numpy, pg.from_dlpack, pg.asarray):
        with pytest.raises(TypeError):
            make(bad)


def test_none_alone_is_an_index() -> None:
    tensor = pg.Tensor([1, 2])
    assert tensor[None].shape == (1, 2)
    tensor[None] = 3
    assert tensor.tolist() == [3, 3]

"""Creation functions."""
import numpy as np
import pytest
from standard import F32, F64, INTS, BOOLS, BYTES, X, Dtype, case, check

import plugrad as pg
import plugrad.array_api as xp

SHAPES = (3, (2, 3), (), (0, 2))
CASES = [
    *(case(name, shape, dtype=Dtype(dtype)) for name in ("zeros", "ones") for shape in SHAPES
      for dtype in ("float32", "float64", "int16", "uint64", "bool")),
    *(case("full", shape, *value) for shape in SHAPES for value in ((3,), (True,))),
    case("full", (2,), 2.5, dtype=F32), case("full", (), 7, dtype=Dtype("uint8")),
    *(case("arange", *bounds) for bounds in (
        (5,), (2, 8), (8, 2), (2, 8, 3), (8, 2, -2), (0,), (-3, 4), (2, 9, -1))),
    *(case("arange", *bounds, dtype=dtype) for dtype in (F32, F64) for bounds in (
        (0, 1, .1), (0., 5.), (1., 0., -.25), (5.5,), (0, 7, 2))),
    case("arange", 3, 9, 2, dtype=Dtype("uint8")),
    case("arange", 2**63, 2**63 + 5, 2, dtype=Dtype("uint64")),
    case("arange", 2**53 + 1, 2**53 + 4), case("linspace", 2**53 + 1, 2**53 + 5, 3, dtype=Dtype("int64")),
    case("linspace", 0, 16777217, 2, dtype=Dtype("int32")),
    case("linspace", 0, 2**32 + 2, 2, endpoint=False, dtype=Dtype("int64")),
    *(case("linspace", -1.5, 3.5, count, endpoint=endpoint, dtype=dtype)
      for count in (0, 1, 2, 7) for endpoint in (True, False) for dtype in (F32, F64)),
    *(case("eye", *sizes, k=k, dtype=F32) for sizes in ((3,), (2, 4), (4, 2), (0,), (0, 3))
      for k in (-5, -1, 0, 1, 5)),
    case("eye", 3, dtype=Dtype("int64")), case("eye", 3, dtype=Dtype("bool")),
    case("zeros_like", X), case("ones_like", INTS, dtype=F32), case("full_like", INTS, 3),
    case("full_like", X, 2),
    case("asarray", [1, 2, 3]), case("asarray", [[1, 2], [3, 4]], dtype=F64),
    case("asarray", True), case("asarray", 5), case("asarray", [True, False]),
    case("asarray", 2.5, dtype=F32), case("asarray", [], dtype=F32),
    case("asarray", [1.5, 2], dtype=F32), case("asarray", [0, 2], dtype=Dtype("bool")),
    case("asarray", 2**63, dtype=Dtype("uint64")), case("asarray", [2**63 - 1, -2**63]),
    case("asarray", [[], []], dtype=F32),
    *(case("meshgrid", np.arange(3), *rest, indexing=indexing) for indexing in ("xy", "ij")
      for rest in ((), (np.arange(2),), (np.arange(2), np.arange(4)))),
    *(case(name, array, k=k) for name in ("tril", "triu") for array in (X, BYTES, BOOLS)
      for k in (-2, 0, 1)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_values(case):
    check(case)


def test_dtypes_of_numbers_are_the_defaults():
    defaults = xp.__array_namespace_info__().default_dtypes()
    assert xp.asarray([1, 2]).dtype == xp.arange(3).dtype == defaults["integral"] == xp.int64
    assert xp.asarray(1.5).dtype == xp.zeros(2).dtype == defaults["real floating"] == xp.float32
    assert xp.argmax(xp.asarray([1, 2])).dtype == defaults["indexing"]
    assert xp.empty((2, 3)).shape == (2, 3) and xp.empty_like(xp.ones(2)).dtype == xp.float32


@pytest.mark.parametrize("k", (4, 2**31, 2**62, 2**63 - 1, 2**63, 10**30))
def test_diagonals_beyond_the_matrix(k):
    x = xp.asarray(X)
    for beyond in (k, -k):
        assert not xp.any(xp.eye(3, 2, k=beyond))
        assert xp.linalg.diagonal(x, offset=beyond).shape == (0,)
        assert xp.linalg.trace(x, offset=beyond).item() == 0
    assert xp.all(xp.tril(x, k=k) == x) and xp.all(xp.triu(x, k=-k) == x)
    assert not xp.any(xp.tril(x, k=-k)) and not xp.any(xp.triu(x, k=k))


def test_lists_where_the_standard_says_list():
    x = xp.arange(3)
    assert type(xp.meshgrid(x, x)) is list and type(xp.broadcast_arrays(x, x)) is list
    assert xp.meshgrid() == []


def test_asarray_copies_when_asked():
    array = np.ones(3, np.float32)
    shared, copied = xp.asarray(array), xp.asarray(array, copy=True)
    assert shared.numpy().tolist() == [1, 1, 1]
    array[0] = 5
    assert copied.tolist() == [1, 1, 1]
    x = xp.asarray([1, 2])
    assert xp.asarray(x) is x or xp.asarray(x).tolist() == x.tolist()
    y = xp.asarray(x, copy=True)
    y[0] = 7
    assert x.tolist() == [1, 2]
    with pytest.raises(ValueError, match="copy"):
        xp.asarray([1, 2], copy=False)


def test_lists_of_tensors_are_stacked():
    rows = xp.asarray([xp.asarray([1, 2]), xp.asarray([3, 4])])
    assert rows.dtype == xp.int64 and rows.tolist() == [[1, 2], [3, 4]]
    assert xp.asarray([xp.asarray(1.0), 2]).tolist() == [1, 2]


def test_from_dlpack_takes_other_arrays():
    array = np.arange(3, dtype=np.int16)
    assert xp.from_dlpack(array).dtype == xp.int16 and xp.from_dlpack(array).tolist() == [0, 1, 2]
    copied = xp.from_dlpack(pg.Tensor([1.0]), copy=True)
    copied[0] = 2
    assert copied.tolist() == [2]


def test_devices():
    info = xp.__array_namespace_info__()
    assert info.default_device() == pg.default_device() and pg.default_device() in info.devices()
    assert xp.ones(2, device="REFERENCE").device == "REFERENCE"
    assert xp.zeros_like(xp.ones(2), device="REFERENCE").device == "REFERENCE"
    assert xp.eye(2, device="REFERENCE").device == xp.arange(2, device="REFERENCE").device


def test_refused():
    with pytest.raises(ValueError, match="step is 0"):
        xp.arange(0, 3, 0)
    with pytest.raises(TypeError, match="complex"):
        xp.asarray(1j)
    with pytest.raises(OverflowError):
        xp.asarray(-1, dtype=xp.uint8)

"""Dtypes: kinds, limits and promotion."""
import itertools

import numpy as np
import pytest
from standard import reference

import plugrad as pg
import plugrad.array_api as xp

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
ALL = ("bool", *SIGNED, *UNSIGNED, *FLOATS)


def kind(name: str) -> str:
    return "i" if "int" in name else name[0]


def is_promoted(a: str, b: str) -> bool:
    """The standard says nothing of dtypes of two kinds, and of uint64 with signed integers."""
    return kind(a) == kind(b) and not ("uint64" in (a, b) and (a in SIGNED or b in SIGNED))


@pytest.mark.parametrize("a, b", [pair for pair in itertools.product(ALL, ALL)
                                  if is_promoted(*pair)])
def test_promotion_is_the_standards(a, b):
    expected = np.result_type(a, b).name
    first, second = getattr(xp, a), getattr(xp, b)
    assert xp.result_type(first, second) == expected
    x, y = xp.ones(2, dtype=first), xp.ones(2, dtype=second)
    assert xp.result_type(x, second) == xp.result_type(x, y) == expected
    assert (x & y if a == "bool" else x * y).dtype == expected
    assert xp.where(xp.asarray([True, False]), x, y).dtype == expected
    assert xp.concat([x, y]).dtype == expected


@pytest.mark.parametrize("dtype, number, expected", [
    ("int8", 3, "int8"), ("uint8", True, "uint8"), ("float32", 2, "float32"),
    ("float64", 2.5, "float64"), ("float32", True, "float32"), ("bool", True, "bool"),
    ("int64", 1.5, "float32"), ("bool", 2, "int64"), ("bool", 1.5, "float32")])
def test_numbers_do_not_change_dtypes_of_their_kind(dtype, number, expected):
    x = xp.ones(2, dtype=getattr(xp, dtype))
    assert xp.result_type(x, number) == xp.result_type(number, x.dtype) == expected
    if dtype != "bool":
        assert (x + number).dtype == xp.add(number, x).dtype == expected


@pytest.mark.parametrize("a, b", list(itertools.product(ALL, ALL)))
def test_can_cast(a, b):
    first, second = getattr(xp, a), getattr(xp, b)
    expected = kind(a) == kind(b) and np.can_cast(a, b)
    assert xp.can_cast(first, second) == xp.can_cast(xp.zeros(2, dtype=first), second) == expected


@pytest.mark.parametrize("a, b", list(itertools.product(ALL, ALL)))
def test_astype(a, b):
    values = np.array([0, 1, 2, 100], a)
    made = xp.astype(xp.asarray(values, copy=True), getattr(xp, b))
    assert made.dtype == b and made.tolist() == values.astype(b).tolist()


def test_astype_copies_unless_told_otherwise():
    x = xp.asarray([1.0])
    copied, same = xp.astype(x, xp.float32), xp.astype(x, xp.float32, copy=False)
    copied[0] = 2
    assert x.tolist() == [1] and same is x
    assert xp.astype(x, xp.int8, device="REFERENCE").device == "REFERENCE"


@pytest.mark.parametrize("name", FLOATS)
def test_finfo(name):
    ours, other = xp.finfo(getattr(xp, name)), np.finfo(name)
    for part in ("bits", "eps", "max", "min", "smallest_normal"):
        assert getattr(ours, part) == getattr(other, part)
    assert ours.dtype == name and xp.finfo(xp.ones(2, dtype=getattr(xp, name))) == ours


def test_finfo_of_half_precision():
    assert xp.finfo(pg.float16).max == 65504 and xp.finfo(pg.float16).eps == 2 ** -10
    with pytest.raises(TypeError, match="int32"):
        xp.finfo(xp.int32)


@pytest.mark.parametrize("name", (*SIGNED, *UNSIGNED))
def test_iinfo(name):
    ours, other = xp.iinfo(getattr(xp, name)), np.iinfo(name)
    assert (ours.bits, ours.max, ours.min, ours.dtype) == (other.bits, other.max, other.min, name)
    with pytest.raises(TypeError, match="float32"):
        xp.iinfo(xp.float32)


KINDS = ("bool", "signed integer", "unsigned integer", "integral", "real floating",
         "complex floating", "numeric")


@pytest.mark.parametrize("name", ALL)
def test_isdtype(name):
    ours, other = getattr(xp, name), getattr(reference, name)
    for each in KINDS:
        assert xp.isdtype(ours, each) == reference.isdtype(other, each)
    assert xp.isdtype(ours, ("bool", "integral")) == reference.isdtype(other, ("bool", "integral"))
    assert xp.isdtype(ours, ours) and not xp.isdtype(ours, ())
    with pytest.raises(ValueError, match="colour"):
        xp.isdtype(ours, "colour")


def test_dtypes_by_kind():
    info = xp.__array_namespace_info__()
    assert set(info.dtypes()) == set(ALL)
    assert set(info.dtypes(kind="signed integer")) == set(SIGNED)
    assert set(info.dtypes(kind=("bool", "real floating"))) == {"bool", *FLOATS}
    assert info.dtypes(kind="complex floating") == {}
    assert info.dtypes(kind="bool") == {"bool": xp.bool}


def test_refused():
    with pytest.raises(ValueError, match="at least one"):
        xp.result_type(1, 2.0)
    with pytest.raises(TypeError, match="complex"):
        xp.result_type(xp.float32, 1j)

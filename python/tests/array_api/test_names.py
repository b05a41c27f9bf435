"""The names, signatures and versions of the standard."""
import inspect

import pytest
from record_signatures import parameters, recorded, signatures
from standard import has_strict, strict

import plugrad as pg
import plugrad.array_api as xp

RECORDED = recorded()
COMPLEX = {"complex64", "complex128"}
NAMES = [("main", name) for name in RECORDED["main"]] + \
    [("linalg", name) for name in RECORDED["linalg"]]


def test_the_record_is_whole():
    assert len(RECORDED["main"]) > 150 and len(RECORDED["linalg"]) == 23


@pytest.mark.parametrize("group, name", NAMES)
def test_name(group, name):
    module = xp if group == "main" else xp.linalg
    if name in COMPLEX:
        assert not hasattr(module, name)
        return
    value, expected = getattr(module, name), RECORDED[group][name]
    if expected is None:
        return
    assert parameters(value) == expected
    assert len(inspect.getdoc(value) or "") > 5


@pytest.mark.skipif(not has_strict(), reason="array_api_strict 2.6 is not installed")
def test_the_record_is_that_of_array_api_strict():
    assert signatures(strict) == RECORDED["main"]
    assert signatures(strict.linalg) == RECORDED["linalg"]


def test_versions():
    x = pg.Tensor([1.0])
    assert xp.__array_api_version__ == "2024.12"
    assert x.__array_namespace__() is xp
    for version in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        assert x.__array_namespace__(api_version=version) is xp
    for version in ("2020.01", "2099.12", ""):
        with pytest.raises(ValueError, match="2024.12"):
            x.__array_namespace__(api_version=version)


def test_there_are_no_complex_numbers():
    assert not hasattr(xp, "fft")
    info = xp.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True,
                                   "max dimensions": None}
    assert "complex floating" not in info.default_dtypes()
    with pytest.raises(ValueError, match="colour"):
        info.dtypes(kind="colour")


def test_constants():
    assert (round(xp.e, 3), xp.inf, round(xp.pi, 3), xp.newaxis) == (2.718, float("inf"), 3.142,
                                                                     None)
    assert xp.nan != xp.nan

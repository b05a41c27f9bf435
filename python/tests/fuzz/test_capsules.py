"""DLPack capsules made by hand: right ones give the values, wrong ones an exception, and each is
released once."""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import plugrad as pg
from rounds import fuzz, outcome

ELEMENTS = 64  # of the memory that every capsule points to
MEMORY = np.arange(ELEMENTS * 8, dtype=np.uint8)
KINDS = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "complex": 5, "bool": 6}


class Array(ctypes.Structure):
    """DLTensor."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    """DLManagedTensor, of before DLPack 1.0."""

    _fields_ = [("array", Array), ("context", ctypes.c_void_p), ("release", Release)]


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("context", ctypes.c_void_p), ("release", Release), ("flags", ctypes.c_uint64),
                ("array", Array)]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Capsule:
    """A capsule of one form, and how often it was released."""

    def __init__(self, name: bytes, managed: Any, **fields: Any):
        self.releases = 0
        self.managed = managed()
        array = self.managed.array
        array.data, array.device_type, array.lanes = MEMORY.ctypes.data, 1, 1
        shape, strides = fields.pop("shape"), fields.pop("strides")
        self.parts = [(ctypes.c_int64 * len(part))(*part) if part is not None else None
                      for part in (shape, strides)]
        array.ndim = len(shape)
        array.shape, array.strides = (
            ctypes.cast(part, ctypes.POINTER(ctypes.c_int64)) for part in self.parts)
        for field, value in fields.items():
            setattr(self.managed if field in ("major", "flags") else array, field, value)
        self.release = self.managed.release = Release(self.count)
        self.object = new_capsule(ctypes.addressof(self.managed), name, None)

    def count(self, _: int) -> None:
        self.releases += 1

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.managed.array.device_type, 0

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.object


def capsule(is_versioned: bool, **fields: Any) -> Capsule:
    if is_versioned:
        return Capsule(b"dltensor_versioned", Versioned, **{"major": 1, **fields})
    return Capsule(b"dltensor", Managed, **fields)


layouts = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=3)
dtypes = st.sampled_from([("int", 8), ("uint", 16), ("int", 32), ("int", 64), ("float", 32),
                          ("bool", 8)])


@fuzz(300, is_versioned=st.booleans(), layout=layouts, dtype=dtypes, offset=st.integers(0, 3),
      is_plain=st.booleans())
def test_capsules_of_every_layout(is_versioned: bool, layout: list[tuple[int, int]],
                                  dtype: tuple[str, int], offset: int, is_plain: bool) -> None:
    kind, bits = dtype
    shape, strides = tuple(size for size, _ in layout), [step for _, step in layout]
    numpy_dtype = np.dtype("bool" if kind == "bool" else f"{kind}{bits}")
    memory = (MEMORY % 2 if kind == "bool" else MEMORY)[offset * numpy_dtype.itemsize:].view(
        numpy_dtype)
    expected = memory[:int(np.prod(shape))].reshape(shape) if is_plain else \
        np.lib.stride_tricks.as_strided(memory, shape, [step * numpy_dtype.itemsize
                                                        for step in strides])
    made = capsule(is_versioned, shape=shape, strides=None if is_plain else strides,
                   code=KINDS[kind], bits=bits, byte_offset=offset * numpy_dtype.itemsize)
    if kind == "bool":
        made.managed.array.data = memory.ctypes.data - offset
    tensor = pg.from_dlpack(made, copy=True)
    assert tensor.shape == shape and np.array_equal(tensor.numpy(), expected, equal_nan=True)
    assert made.releases == 1
    with pytest.raises(BufferError, match="used"):
        pg.from_dlpack(made)
    assert made.releases == 1


wrong_fields = st.sampled_from([
    {"device_type": 2}, {"device_type": -1}, {"device_type": 99}, {"code": 99}, {"code": 5},
    {"bits": 7}, {"bits": 128}, {"bits": 0}, {"lanes": 2}, {"lanes": 0}, {"data": None},
    {"ndim": -1}, {"shape": (-1,)}, {"shape": (2, -3)}, {"shape": (2**62, 2**62)},
    {"shape": (2**63 - 1, 3)}, {"shape": (2**61,)}, {"shape": (2**62,)}, {"major": 2}, {"major": 0}])


@fuzz(200, is_versioned=st.booleans(), wrong=wrong_fields, copy=st.sampled_from([None, True, False]))
def test_wrong_capsules_are_refused(is_versioned: bool, wrong: dict[str, Any],
                                    copy: bool | None) -> None:
    if "major" in wrong and not is_versioned:
        return
    fields = {"shape": (3,), "strides": None, "code": KINDS["float"], "bits": 32, **wrong}
    made = capsule(is_versioned, **fields)
    result = outcome(lambda: pg.from_dlpack(made, copy=copy))
    assert isinstance(result, (BufferError, TypeError, ValueError, MemoryError)), result
    assert made.releases <= 1


@pytest.mark.parametrize("name", [b"other", b"used_dltensor", b"used_dltensor_versioned", None])
def test_capsules_of_other_names_are_refused(name: bytes | None) -> None:
    made = Capsule(name, Managed, shape=(3,), strides=None, code=2, bits=32)
    with pytest.raises(BufferError):
        pg.from_dlpack(made)
    assert made.releases == 0

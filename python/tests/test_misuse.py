"""Wrong arguments raise the right class of exception, and never crash: about 2,500 calls, most of
them made from the signatures of the functions, the others listed."""
from __future__ import annotations

import functools
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from surface import creation, elementwise, functions, movement, reduce  # noqa: F401
from surface.harness import CASES, Case, Form, forms_of
from test_surface import FUNCTIONS, METHODS, OPERATORS, made

import plugrad as pg

T = pg.Tensor
TABLE: dict[str, Case] = {}
for each in CASES:
    TABLE.setdefault(each.name, each)
ALL = [("Tensor", name, METHODS[name]) for name in METHODS] + \
    [("plugrad", name, FUNCTIONS[name]) for name in FUNCTIONS]
ALIASED = {"axis", "axis0", "axis1"}
ENUMS = {"reduction", "mode", "how", "rounding", "indexing"}
Row = tuple[str, dict[str, Any], list[Any], Any]  # what is wrong, keywords, arguments, exception


def bound(function: Any, case: Case, method: bool) -> Iterator[tuple[Form, list[Any], dict]]:
    """The case's first arguments and the others by name, in every form without *arguments."""
    for form in forms_of(function):
        is_bound = method and not form.is_static
        args = case.args[1:] if is_bound else case.args
        if form.star or form.is_alias or not form.required <= len(args) <= len(form.names):
            continue
        if case.names and case.names != form.names[:len(case.names)]:
            continue
        first = [made(case.args[0])] if is_bound else []
        yield form, first, {name: made(value) for name, value in zip(form.names, args)}


def wrong_tensors(keywords: dict, first: list) -> Iterator[Row]:
    for key, value in keywords.items():
        if isinstance(value, pg.Tensor):
            for label, bad in (("object", object()), ("text", "text"), ("texts", np.array(["a"])),
                               ("objects", np.array([object()])), ("ragged", [[1], [2, 3]]),
                               ("complex", np.array([1j]))):
                yield f"{key}={label}", {**keywords, key: bad}, first, TypeError
            yield f"{key}=2**70", {**keywords, key: 2**70}, first, OverflowError


def wrong_axes(names: set[str], keywords: dict, first: list) -> Iterator[Row]:
    for key in sorted(ALIASED & names):
        for axis in (99, -99):
            yield f"{key}={axis}", {**keywords, key: axis}, first, IndexError
        for bad in ("x", 1.5, object()):
            yield f"{key}={type(bad).__name__}", {**keywords, key: bad}, first, TypeError
        yield f"{key}=2**70", {**keywords, key: 2**70}, first, IndexError
        both = {**keywords, key: 0, key.replace("axis", "dim"): 0}
        yield f"{key}_and_dim", both, first, TypeError


def wrong_settings(names: set[str], keywords: dict, first: list) -> Iterator[Row]:
    if "dtype" in names:
        for bad in ("nosuch", 3, []):
            yield f"dtype={bad!r}", {**keywords, "dtype": bad}, first, TypeError
    if "device" in names:
        yield "device=NOSUCH", {**keywords, "device": "NOSUCH"}, first, ValueError
        yield "device=3", {**keywords, "device": 3}, first, TypeError
    for key in sorted(ENUMS & names):
        yield f"{key}=nosuch", {**keywords, key: "nosuch"}, first, ValueError
        yield f"{key}=3", {**keywords, key: 3}, first, TypeError


def wrong_shapes(keywords: dict, first: list) -> Iterator[Row]:
    for label, shape, error in (("negative", (2, -1), ValueError), ("text", "a", TypeError),
                                ("float", (1.5,), TypeError), ("nested", (1, (2,)), TypeError),
                                ("huge", (2**62, 2**62), ValueError),
                                ("2**70", 2**70, OverflowError)):
        yield f"shape={label}", {**keywords, "shape": shape}, first, error


def misuses_of(owner: str, name: str, function: Any) -> Iterator[Row]:
    case = TABLE.get(name)
    if case is None:
        return
    has_star = any(form.star for form in forms_of(function))
    for form, first, keywords in bound(function, case, owner == "Tensor"):
        names = set(form.names)
        yield "too_many", keywords, first + [None] * 12, TypeError
        yield "unknown_keyword", {**keywords, "no_such": 1}, first, TypeError
        if form.required and not has_star:
            yield "nothing_given", {}, first, TypeError
        yield from wrong_tensors(keywords, first)
        yield from wrong_axes(names, keywords, first)
        yield from wrong_settings(names, keywords, first)
        if "shape" in names and form.is_static:
            yield from wrong_shapes(keywords, first)


GENERATED = {f"{owner}.{name}-{row[0]}": (function, *row[1:]) for owner, name, function in ALL
             for row in misuses_of(owner, name, function)}


@pytest.mark.parametrize("misuse", GENERATED)
def test_wrong_argument(misuse: str) -> None:
    function, keywords, args, error = GENERATED[misuse]
    with pytest.raises(error):
        function(*args, **keywords)


@pytest.mark.parametrize("name", [name for name in OPERATORS if name not in ("eq", "ne")])
def test_operators_refuse_other_objects(name: str) -> None:
    apply = eval(f"lambda a, b: a {OPERATORS[name]} b")
    x = T(np.ones((3, 4), np.int32))
    for bad in ("text", b"bytes", None, object(), {}, [1, 2], 1j, slice(1)):
        with pytest.raises(TypeError):
            apply(x, bad)
        if isinstance(bad, (str, bytes)):
            continue  # which format x, and join its bytes
        with pytest.raises(TypeError):
            apply(bad, x)
    for pair in ((x, 2**70), (2**70, x)):
        with pytest.raises(OverflowError):
            apply(*pair)
    with pytest.raises(ValueError):
        apply(x, T(np.ones((5, 3), np.int32)))


LISTED = {
    TypeError: """
        T([1, 'a'])
        T('abc')
        T(b'abc')
        T(None)
        T(object())
        T({1: 2})
        T({1, 2})
        T([None])
        T([object()])
        T(np.array([object()]))
        T(np.array(['a']))
        T(np.array([b'a']))
        T(np.array([1], 'datetime64[s]'))
        T(np.array([1 + 2j]))
        T([1 + 2j])
        T(1 + 2j)
        T(np.zeros(3, [('a', int)]))
        T(i for i in [1])
        T(slice(1))
        T(T)
        T()
        T([1], 'float32', 'CPU', False, 1)
        T([1], dtype='nosuch')
        T([1], dtype=3)
        T([1], device=3)
        T([1.5], requires_grad='x')
        T([1], requires_grad=True)
        T.zeros('a')
        T.zeros(1.5)
        T.zeros([1, [2]])
        T.zeros(None)
        T.full((2,), 'a')
        T.full((2,), None)
        T.manual_seed('a')
        T.set_random_state((1, -1))
        T.set_random_state(3)
        pg.dtype('nosuch')
        pg.dtype(3)
        x['a':]
        x[1.5:]
        x.rearrange(3)
        x.rearrange('a b -> b a', a='x')
        x.gather(0, T([[1.5]]))
        x.one_hot(3)
        x.masked_select(x)
        x.where(x, x)
        x << 1
        w.assign(x)
        w.__setitem__(0, 1.5)
        x.__setitem__(0, 'a')
        x.__setitem__(0, object())
        x.numpy(3)
        x.to(3)
        x.cast(None)
        x.pad((1, 'a'))
        x.pad(3)
        x.shrink(3)
        x.shrink(((0, 1, 2), None))
        x.split('a')
        x.repeat('a')
        x.backward(retain_graph='x')
        pg.cat(3)
        pg.cat([x, 'a'])
        pg.cat([x, None])
        pg.einsum(3, [w])
        pg.svd(w)
        pg.gradient(x, x.sum())
        pg.gradient('a', [x])
        pg.realize(3)
        pg.realize(x, None)
        pg.load_npz(3)
        pg.save_npz([x], 'x.npz')
        pg.set_default_device(3)
        pg.nn.Linear('a', 2)
        pg.nn.Linear()
        pg.nn.Linear(2, 2)('a')
        len(number)
        iter(number)
        [0, 1][T(1.5)]
        [0, 1][x]
        x(1)
        hash([x])""",
    ValueError: """
        T([[1, 2], [3]])
        T([1, [2]])
        T([[1], 2])
        T([[], [1]])
        T([[[1], [2]], [[3]]])
        T([np.zeros(2), np.zeros(3)])
        T(loop)
        T(deep)
        x[loop]
        T([math.nan], dtype='int32')
        T([1.0, math.nan], dtype='uint8')
        T(math.nan, dtype='int64')
        T([1], device='NOSUCH')
        T([1], device='cpu9')
        T.zeros(-1)
        T.zeros((2, -3))
        T.zeros(2**62, 2**62)
        T.zeros(2**61)
        T.zeros(2**40).numpy()
        T.arange(0, 10, 0)
        T.linspace(0, 1, -1)
        T.eye(-1)
        T.randint((2,), 5, 5)
        T.randint((2,), 5, 2)
        T.randint((2,), 0, 300, dtype='int8')
        T.randperm(-1)
        T.randperm(300, dtype='int8')
        x.sum((0, 0))
        x.sum((0, -2))
        x.reshape(5)
        x.reshape(-1, -1)
        x.reshape(-2, 6)
        x.reshape(0, -1)
        x[..., ...]
        x[:, ::0]
        x @ x
        x @ 2
        x @ T.zeros(3)
        x + T.zeros(5)
        x & 1
        ~x
        w & 1.5
        w + 2**40
        -T([True])
        T([True]) - T([False])
        bool(x)
        bool(T.zeros(0))
        int(x)
        float(x)
        x.item()
        T.zeros(0).item()
        x.to('NOSUCH')
        x.permute(0, 0)
        x.permute(0)
        x.permute(0, 1, 2)
        x.expand(2, 4)
        x.expand(4)
        x.expand(-1, -1, -1, -7)
        x.pad((1,))
        x.pad(((1, 1),))
        x.pad((-9, 0))
        x.pad(((5, 5), (5, 5)), 'reflect')
        x.pad(((1, 1), (1, 1)), 'nosuch')
        x.pad_to((2, 2))
        x.shrink(((2, 1), None))
        x.shrink(((0, 9), None))
        x.shrink_to((9, 9))
        x.split(0)
        x.split(-1)
        x.split([1, 1])
        x.chunk(0)
        x.unflatten(0, (2, 2))
        x.repeat(-1, 1)
        x.repeat_interleave(-1)
        x.unfold(0, 9, 1)
        x.unfold(0, 1, 0)
        x.topk(9)
        x.topk(-1)
        w.one_hot(-1)
        x.backward()
        T([1.0, 2.0], requires_grad=True).backward()
        x.sum().backward()
        pg.gradient(x, [x])
        x.multinomial(99)
        x.multinomial(-1)
        x.dropout(2.0)
        x.dropout(-1.0)
        x.dropout(math.nan)
        x.rearrange('a b ->')
        x.rearrange('(')
        x.rearrange('a b c -> c b a')
        x.rearrange('a b -> b a', q=3)
        x.rearrange('(a c) b -> a c b', c=2)
        x.assign(T.zeros(7))
        x.__setitem__(0, T.zeros(7))
        pg.einsum('ij,jk', [x])
        pg.einsum('ij', [w, w])
        pg.einsum('ij', w)
        pg.einsum('%', [x])
        pg.einsum('ijk', [x])
        pg.einsum('ij->ik', [x])
        pg.einsum('ij,ij->ij', [x, x.T])
        pg.cat([])
        pg.cat([x, T.zeros(3)])
        pg.stack([])
        pg.stack([x, T.zeros(3)])
        pg.conv2d(x, x)
        pg.conv2d(image, T.zeros(2, 3, 1, 1))
        pg.conv2d(image, T.zeros(2, 1, 9, 9))
        pg.conv2d(image, image, stride=0)
        pg.conv2d(image, image, dilation=0)
        pg.conv2d(image, image, groups=0)
        pg.conv2d(image, image, groups=3)
        pg.conv2d(image, image, padding=(1, 2, 3))
        pg.max_pool2d(image, 9)
        pg.max_pool2d(image, 0)
        pg.max_pool2d(image, 2, stride=0)
        pg.max_pool2d(image, (1, 2, 3))
        pg.mse_loss(x, x, 'nosuch')
        pg.mse_loss(x, T.zeros(9))
        pg.huber_loss(x, x, -1.0)
        pg.cross_entropy(x, w)
        pg.cross_entropy(x, T([0, 1]))
        pg.qr(T.zeros(3))
        pg.interpolate(image)
        pg.interpolate(image, (2, 2), (1.0, 1.0))
        pg.interpolate(image, (2, 2), mode='cubic')
        pg.scaled_dot_product_attention(x, x, T.zeros(7, 7))
        pg.groupnorm(image, 3)
        pg.load_npy('/no/such/file')
        pg.save_npy(x, '/no/such/file')
        pg.load_npz(__file__)
        pg.load_npy(__file__)
        pg.set_default_device('NOSUCH')
        pg.add_plugin('/no/such/file')
        pg.nn.Linear(-1, 2)
        pg.nn.Linear(2, 2)(T.zeros(3, 5))
        pg.nn.Conv2d(3, 4, 3, groups=2)
        pg.optim.SGD([x], lr=-1.0)
        pg.nn.load_state_dict(pg.nn.Linear(2, 2), {})""",
    IndexError: """
        x.sum((0, 2**70))
        x.argmax(2**70)
        x[[2**70]]
        x[[[0, 1], [2, 3]], [0, 1, 2]]
        x[3]
        x[-4]
        x[0, 4]
        x[0, 0, 0]
        x['a']
        x[1.5]
        x[object()]
        x[{}]
        x[2**70]
        x[T([1.5])]
        x[T(7)].numpy()
        x[np.array([7])].numpy()
        x[[0, 9]].numpy()
        x[[True]]
        x[np.ones((3, 3), bool)]
        x[np.ones((3, 4, 1), bool)]
        x[..., [True] * 3]
        x.__setitem__(9, 1)
        x.__setitem__((0, 0, 0), 1)
        x.__setitem__('a', 1)
        x.__setitem__([True], 1)
        number[0]
        x.transpose(0, 5)
        x.unsqueeze(4)
        x.flip(0, 5)
        x.size(2)
        pg.stack([x, x], 5)
        x.index_select(0, T([9])).numpy()""",
    OverflowError: """
        T(2**64)
        T(-2**63 - 1)
        T(10**400)
        T(10**10000)
        T([2**70])
        T([2**63, -1])
        T([[1, 2], [3, -2**64]])
        T([300], dtype='int8')
        T([-1], dtype='uint8')
        T(-1, dtype='uint16')
        T([2**40], dtype='int32')
        T([2**63], dtype='int64')
        T([2**64], dtype='uint64')
        T([128.0], dtype='int8')
        T([1e300], dtype='int64')
        T(math.inf, dtype='int32')
        T([-math.inf], dtype='int32')
        T.zeros(2**70)
        T.zeros((2, 2**70))
        T.arange(2**70)
        T.full((2,), 2**70)
        x.reshape(2**70, 1)
        x.split([2**70])
        x.rearrange('a b -> b a', a=2**70)
        x + 2**70
        x.clamp(2**70, 0)
        x.__setitem__(0, 2**70)
        x.assign(2**70)
        pg.maximum(x, 2**70)""",
    AttributeError: """
        x.nosuch
        x.T.nosuch()
        x.shape.append(1)
        setattr(x, 'shape', 3)
        setattr(x, 'dtype', 3)
        setattr(x, 'device', 3)
        pg.nosuch""",
    ZeroDivisionError: """
        x.sum(BadIndex())
        x[BadIndex()]
        x[:BadIndex()]
        T.zeros(BadIndex())
        T(BadArray())
        T(BadPack())
        x + BadArray()
        x.maximum(BadArray())
        T(BadLength())""",
}


class BadIndex:
    def __index__(self) -> int:
        raise ZeroDivisionError("index")


class BadArray:
    def __array__(self, *arguments: Any, **keywords: Any) -> None:
        raise ZeroDivisionError("array")


class BadPack:
    def __dlpack__(self, *arguments: Any, **keywords: Any) -> None:
        raise ZeroDivisionError("dlpack")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class BadLength(list):
    def __len__(self) -> int:
        raise ZeroDivisionError("length")


@functools.cache
def names() -> dict[str, Any]:
    loop: list = []
    loop.append(loop)
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    return {**globals(), "x": T(np.arange(12, dtype=np.float32).reshape(3, 4)), "loop": loop,
            "w": T(np.arange(12, dtype=np.int32).reshape(3, 4)), "number": T(1.0), "deep": deep,
            "image": T(np.ones((2, 2, 4, 4), np.float32))}


ROWS = [(error, line.strip()) for error, text in LISTED.items()
        for line in text.strip().splitlines()]


@pytest.mark.parametrize("error, call", ROWS, ids=[row[1] for row in ROWS])
def test_listed(error: type[Exception], call: str) -> None:
    with pytest.raises(error) as raised:
        eval(call, names())
    if error in (ValueError, IndexError) and isinstance(raised.value, pg.Error):
        assert isinstance(raised.value, pg.UserError)
    assert not isinstance(raised.value, pg.InternalError)


def test_there_are_more_than_a_thousand() -> None:
    assert len(GENERATED) + len(ROWS) > 1000


def test_an_error_leaves_the_tensor_as_it_was() -> None:
    x = T([1.0, 2.0])
    for wrong in (lambda: x.assign(T.zeros(7)), lambda: x.__setitem__(9, 1),
                  lambda: x.__iadd__(T.zeros(5)), lambda: x.__setitem__(0, 2**70)):
        with pytest.raises((ValueError, OverflowError)):
            wrong()
    assert x.tolist() == [1.0, 2.0]


def test_limits_of_integers_are_exact() -> None:
    for bits in (8, 16, 32, 64):
        low, high = -2**(bits - 1), 2**(bits - 1) - 1
        assert T([low, high], dtype=f"int{bits}").tolist() == [low, high]
        assert T([0, 2**bits - 1], dtype=f"uint{bits}").tolist() == [0, 2**bits - 1]
        for number in (low - 1, high + 1):
            with pytest.raises(OverflowError):
                T([number], dtype=f"int{bits}")
    assert T([127.9, -128.9], dtype="int8").tolist() == [127, -128]
    assert T([True], dtype="uint8").tolist() == [1]
    assert T([2, 0.0], dtype=bool).tolist() == [True, False]


def test_slices_clip_as_those_of_lists() -> None:
    x = T([1, 2, 3])
    assert x[:2**70].tolist() == x[-2**70:].tolist() == [1, 2, 3]
    assert x[::2**70].tolist() == [1] and x[::-2**70].tolist() == [3]


@pytest.mark.parametrize(("inputs", "result", "told"), [
    (T([1.0]), T([1.0]), "inputs is one tensor or array; give a list"),
    (np.ones(2), T([1.0]), "inputs is one tensor or array; give a list"),
    ([T([1.0]), np.ones(2)], T([1.0]), r"inputs\[1\] is of type ndarray; give a tensor"),
    ([T([1.0])], None, "the function returns nothing; an ONNX file needs one that returns a tensor"),
    ([T([1.0])], {}, "the function returns a dict"),
    ([T([1.0])], [], "the function returns a list"),
    ([T([1.0])], [T([1.0]), 2.0], "result 1 of the function is of type float, not a tensor"),
])
def test_exports_of_what_is_no_tensor(tmp_path: Path, inputs: Any, result: Any, told: str) -> None:
    with pytest.raises(TypeError, match=told):
        pg.onnx.export(lambda *given: result, inputs, tmp_path / "net.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_base_class_of_modules_is_not_there_and_not_needed() -> None:
    with pytest.raises(AttributeError, match="a module is an object of any class"):
        pg.nn.Module  # noqa: B018
    with pytest.raises(AttributeError, match="'plugrad.nn' has no attribute 'Modul'"):
        pg.nn.Modul  # noqa: B018
    assert not hasattr(pg.nn, "Module")


def test_objects_without_init_raise() -> None:
    program = """
import plugrad as pg
empty = pg.Tensor.__new__(pg.Tensor)
for use in (lambda: empty.shape, lambda: empty + 1, lambda: empty.numpy(), lambda: repr(empty),
            lambda: pg.cat([empty]), lambda: pg.Tensor([1.0]) + empty):
    try:
        use()
    except Exception:
        continue
    raise SystemExit("no error")
print("ok")
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True,
                          text=True)
    assert done.stdout == "ok\n", (done.returncode, done.stderr)


def test_messages_name_functions_as_python_does():
    with pytest.raises(pg.Error, match=r"pass nn\.parameters\(net\)"):
        pg.optim.SGD([])

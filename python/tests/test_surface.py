"""Every method of Tensor and every function of the module, by position and by name, against the
values of NumPy and PyTorch. A function or an overload without a case in surface/ fails here."""
from __future__ import annotations

import inspect
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from surface import creation, elementwise, functions, movement, reduce  # noqa: F401
from surface.harness import (CASES, Case, Form, arrays_of, calls, forms_of, from_record,
                             recorded_values, torch, torch_values)

import plugrad as pg

RECORDED = recorded_values()

TESTS = "".join(path.read_text() for path in sorted(Path(__file__).parent.glob("test_*.py")))


def is_called_in_a_test(name: str) -> bool:
    """For what has no table: another test calls it as plugrad's or as a tensor's."""
    return re.search(rf"\.{name}\b", TESTS) is not None


def functions_of(owner: Any) -> dict[str, Any]:
    return {name: each for name, each in vars(owner).items()
            if not name.startswith("_") and hasattr(inspect.unwrap(getattr(owner, name)),
                                                    "__nb_signature__")}


METHODS = {name: getattr(pg.Tensor, name) for name in functions_of(pg.Tensor)}
FUNCTIONS = functions_of(pg._plugrad)


def made(argument: Any) -> Any:
    """An argument of a case as the module takes it."""
    if isinstance(argument, np.ndarray):
        return pg.Tensor(argument)
    if isinstance(argument, list) and argument and isinstance(argument[0], np.ndarray):
        return [pg.Tensor(each) for each in argument]
    return argument


def forms_called(case: Case) -> Iterator[tuple[Any, Form, Any]]:
    for owner, table in (("Tensor", METHODS), ("plugrad", FUNCTIONS)):
        if function := table.get(case.name):
            for form, result in calls(function, case, made, owner == "Tensor"):
                yield owner, form, result
            if owner == "plugrad" and arrays_of(case.args):  # arrays of NumPy as they are
                for form, result in calls(function, case, lambda argument: argument, False):
                    yield owner, form, result


def compare(result: Any, expected: Any, case: Case) -> None:
    if isinstance(expected, (tuple, list)):
        assert isinstance(result, (tuple, list)) and len(result) == len(expected)
        for each, other in zip(result, expected):
            compare(each, other, case)
        return
    values = result.numpy() if isinstance(result, pg.Tensor) else np.asarray(result)
    assert values.shape == np.shape(expected)
    assert values.dtype.kind == np.asarray(expected).dtype.kind or values.dtype.kind in "iu"
    np.testing.assert_allclose(values, expected, case.rtol, case.atol)


def expectation(case: Case) -> Any:
    with np.errstate(all="ignore"):
        if case.numpy:
            return case.numpy(*arrays_of(case.args))
    return from_record(RECORDED[case.identity])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.identity)
def test_values(case: Case) -> None:
    called = list(forms_called(case))
    assert called, f"no overload of {case.name} takes this case"
    if not case.check:
        expected = expectation(case)
    for _, _, result in called:
        case.check(result) if case.check else compare(result, expected, case)


@pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
@pytest.mark.parametrize("case", [case for case in CASES if case.torch],
                         ids=lambda case: case.identity)
def test_recorded_values_are_those_of_pytorch(case: Case) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = torch_values(case)
    expected = from_record(RECORDED[case.identity])
    for each, other in zip(*([x] if isinstance(x, np.ndarray) else x for x in (values, expected))):
        np.testing.assert_allclose(each, other, 1e-5, 1e-6)


@pytest.mark.parametrize("owner, name", [("Tensor", name) for name in METHODS] +
                         [("plugrad", name) for name in FUNCTIONS])
def test_every_overload_has_a_case(owner: str, name: str) -> None:
    if not any(case.name == name for case in CASES):
        assert is_called_in_a_test(name), f"no test calls {name}"
        return
    function = (METHODS if owner == "Tensor" else FUNCTIONS)[name]
    covered: set[Form] = set()
    for case in CASES:
        if case.name == name:
            covered |= {form for form, _ in calls(function, case, made, owner == "Tensor")}
    missing = [form for form in forms_of(function) if form not in covered]
    assert not missing, f"surface/ has no case that calls {name} in these forms"


OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "eq": "==", "ne": "!=",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "matmul": "@",
}
WHOLE = {"and", "or", "xor", "lshift", "rshift"}


def operands(name: str) -> tuple[np.ndarray, np.ndarray]:
    left = np.array([[7, 2, 5], [1, 4, 9], [3, 8, 6]], np.int32)
    right = np.array([[2, 2, 1], [3, 1, 2], [1, 3, 2]], np.int32)
    return (left, right) if name in WHOLE else (left.astype(np.float32), right.astype(np.float32))


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_take_tensors_arrays_and_numbers(name: str) -> None:
    left, right = operands(name)
    both = eval(f"lambda a, b: a {OPERATORS[name]} b")
    expected = both(left, right)
    for a, b in ((pg.Tensor(left), pg.Tensor(right)), (pg.Tensor(left), right),
                 (left, pg.Tensor(right))):
        result = both(a, b)
        assert isinstance(result, pg.Tensor), (type(a), type(b))
        np.testing.assert_allclose(result.numpy(), expected, 1e-5)
    if name == "matmul":
        return
    number = 2 if name in WHOLE else 2.0
    np.testing.assert_allclose(both(pg.Tensor(left), number).numpy(), both(left, number), 1e-5)
    np.testing.assert_allclose(both(number, pg.Tensor(right)).numpy(), both(number, right), 1e-5)


@pytest.mark.parametrize("name", [n for n in OPERATORS if hasattr(pg.Tensor, f"__i{n}__")])
def test_operators_in_place_keep_the_tensor(name: str) -> None:
    left, right = operands(name)
    tensor = pg.Tensor(left)
    same = getattr(tensor, f"__i{name}__")(pg.Tensor(right))
    assert same is tensor or np.array_equal(same.numpy(), tensor.numpy())
    expected = eval(f"left {OPERATORS[name]} right")
    np.testing.assert_allclose(tensor.numpy(), expected.astype(left.dtype), 1e-5)


def test_unary_operators() -> None:
    x = np.array([1, -2, 3], np.int32)
    tensor = pg.Tensor(x)
    for function in (lambda t: -t, lambda t: +t, lambda t: ~t, abs):
        assert np.array_equal(function(tensor).numpy(), function(x))
    assert [float(row) for row in tensor] == [1, -2, 3] and len(tensor) == 3
    assert int(tensor[0]) == 1 and bool(tensor[1]) and float(tensor[2]) == 3
    assert list(range(5))[pg.Tensor(2)] == 2  # __index__
    assert {tensor: 1}[tensor] == 1  # by identity
    assert "3" in repr(tensor) and "3" in str(tensor)
    assert np.array_equal(np.asarray(tensor), x)


HANDLED = {"__add__", "__getitem__", "__setitem__", "__iter__", "__len__", "__init__", "__array__",
           "__neg__", "__pos__", "__invert__", "__abs__", "__hash__", "__bool__", "__int__",
           "__float__", "__index__", "__repr__", "__str__",
           "__reduce__", "__dlpack__"}  # pickle, from_dlpack


def test_every_operator_is_in_the_tables() -> None:
    known = HANDLED | {f"__{kind}{name}__" for name in OPERATORS for kind in ("", "r", "i")}
    ours = {name for name, each in vars(pg.Tensor).items()
            if name.startswith("__") and hasattr(each, "__nb_signature__")}
    assert not {name for name in ours - known if f"{name}(" not in TESTS
                and not is_called_in_a_test(name)}


def test_properties() -> None:
    x = pg.Tensor(np.ones((2, 3), np.int16))
    assert x.shape == (2, 3) and x.dtype == pg.int16 and x.ndim == 2
    assert x.device == pg.default_device()
    assert x.T.shape == (3, 2) and not (x + 1).is_realized and (x + 1).realize().is_realized
    assert not x.requires_grad and x.grad is None
    known = {"shape", "dtype", "ndim", "device", "T", "is_realized", "requires_grad", "grad"}
    properties = {name for name, each in vars(pg.Tensor).items() if isinstance(each, property)
                  and not name.startswith("_")}
    assert not {name for name in properties - known if not is_called_in_a_test(name)}


def test_gradients_are_added_up() -> None:
    x = pg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = pg.Tensor([4.0, 5.0, 6.0]).requires_grad_()
    (x * y).sum().backward()
    (x * x).sum().backward(retain_graph=True)
    assert x.grad.tolist() == [6.0, 9.0, 12.0] and y.grad.tolist() == [1.0, 2.0, 3.0]
    x.zero_grad()
    assert x.grad is None
    (x * 2).backward(gradient=np.array([1, 0, 2], np.float32))
    assert x.grad.tolist() == [2.0, 0.0, 4.0]
    x.grad = None
    x.requires_grad = False
    assert not x.requires_grad and x.requires_grad_(on=True).requires_grad
    z = pg.Tensor([2.0], requires_grad=True)
    (only,) = pg.gradient((z**3).sum(), [z])
    assert only.tolist() == [12.0]
    (seeded,) = pg.gradient(loss=z * 5, targets=[z], seed=np.float32([2]))
    assert seeded.tolist() == [10.0]


def test_assignment_keeps_earlier_results() -> None:
    x = pg.Tensor([1.0, 2.0])
    before = x + 0
    assert x.assign(value=np.float32([5, 6])) is not None
    assert x.tolist() == [5.0, 6.0] and before.tolist() == [1.0, 2.0]


def test_seeds_repeat_random_numbers() -> None:
    pg.Tensor.manual_seed(7)
    first = pg.Tensor.rand(5).tolist()
    state = pg.Tensor.random_state()
    second = pg.Tensor.rand(5).tolist()
    pg.Tensor.set_random_state(state)
    assert pg.Tensor.rand(5).tolist() == second != first
    pg.Tensor.manual_seed(seed=7)
    assert pg.Tensor.rand(5).tolist() == first
    dropped = pg.Tensor.ones(1000).dropout(p=0.25).numpy()
    assert 600 < np.count_nonzero(dropped) < 900 and np.isclose(dropped.max(), 4 / 3)


def test_forms_by_hand() -> None:
    x = pg.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert x.rearrange("a b -> b a").shape == (3, 2)
    assert x.rearrange(pattern="a (b c) -> a b c", c=3).shape == (2, 1, 3)
    assert x.to("int32").dtype == x.to(dtype=pg.int32).dtype == pg.int32
    assert x.to(device="CPU").device == x.to("CPU").device == "CPU"
    y, z = x + 1, x + 2
    assert pg.realize(y, z) is None and y.is_realized and z.is_realized
    assert (x * 2).realize().is_realized
    assert pg.data.mnist_cache_folder().endswith("mnist")


AFTER_SHUTDOWN = """
import plugrad as pg
x, y = (pg.Tensor([1.0]) + 1).realize(), (pg.Tensor.arange(1 << 16) * 2).realize()
pg.shutdown()
print(x.shape, flush=True)
for use in (lambda: x.tolist(), lambda: y.numpy(), lambda: x.item(),
            lambda: pg.Tensor(y.T).numpy(copy=None), lambda: (x * 2).realize(),
            lambda: pg.Tensor([1.0, 2.0]).exp().tolist()):
    try:
        print("computed", use())
    except pg.Error as error:
        print(type(error).__name__, "shut" in str(error), flush=True)
pg.shutdown()
"""


def test_after_shutdown_nothing_runs() -> None:
    done = subprocess.run([sys.executable, "-c", AFTER_SHUTDOWN], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["(1,)", *["UserError True"] * 6]


def test_devices_and_files(tmp_path: Path) -> None:
    device = pg.default_device()
    pg.set_default_device(name=device)
    assert pg.default_device() == device
    with pytest.raises(pg.UserError):
        pg.add_plugin(path=str(tmp_path / "no_such_plugin.so"))
    x = pg.Tensor([[1.0, 2.0]])
    pg.save_npy(x, tmp_path / "x.npy")
    assert np.load(tmp_path / "x.npy").tolist() == pg.load_npy(path=tmp_path / "x.npy").tolist()
    pg.save_npz({"a": x, "b": x + 1}, tmp_path / "x.npz", compressed=True)
    assert np.load(tmp_path / "x.npz")["b"].tolist() == [[2.0, 3.0]]
    assert pg.load_npz(tmp_path / "x.npz", device="CPU")["a"].tolist() == [[1.0, 2.0]]


# Results of other functions, and data sets of the same loader whose files are not here.
NOT_CALLED = {"BatchIterator", "Batches", "Split", "StateDifference", "cifar10", "fashion_mnist"}


@pytest.mark.parametrize("module", [pg.nn, pg.optim, pg.data], ids=lambda module: module.__name__)
def test_every_public_name_of_a_module_is_in_a_test(module: Any) -> None:
    names = {name for name, each in vars(module).items()
             if not name.startswith("_") and callable(each)
             and getattr(each, "__module__", "").startswith("plugrad")}
    assert not {name for name in names - NOT_CALLED if not re.search(rf"\b{name}\b", TESTS)}


def test_axes_that_are_no_axis_keep_their_name() -> None:
    a, b = pg.Tensor(np.ones((2, 3))), pg.Tensor(np.ones((3, 2)))
    assert pg.tensordot(a, b, axes=1).tolist() == [[3.0, 3.0], [3.0, 3.0]]
    rows, columns = pg.meshgrid(axes=[a[0], b[0]])
    assert rows.shape == columns.shape == (3, 2)

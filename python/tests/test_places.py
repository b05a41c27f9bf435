"""An error of an operation that fails when it is computed names the line that recorded it."""
import inspect

import numpy as np
import pytest

import plugrad as pg

HUGE = 1 << 44  # elements, more than any memory


def place(function: object, marker: str) -> str:
    """The line of the function that has the marker as a comment."""
    lines, first = inspect.getsourcelines(function)  # type: ignore[arg-type]
    line = first + next(i for i, text in enumerate(lines) if f"# {marker}" in text)
    return f"{__file__}:{line}, in {function.__name__}"  # type: ignore[attr-defined]


def too_large() -> pg.Tensor:
    x = pg.Tensor.arange(HUGE)
    return x * 3  # large


def test_too_large_for_the_device():
    y = too_large()
    with pytest.raises(pg.UnsupportedError) as info:
        y.realize()
    assert info.value.recorded_at == (place(too_large, "large"),)
    assert str(info.value).endswith(f"recorded at {place(too_large, 'large')}")


def three_kernels(x: pg.Tensor) -> pg.Tensor:
    fine = (x * 2).sum(0)  # fine
    broken = pg.UserKernel("broken", sources={"CPU": "void broken( {", "REFERENCE": "("}, groups=(1, 1, 1))
    last = broken([fine], (4,))  # broken
    return last.exp() + 1  # last


def test_kernel_that_does_not_compile():
    if pg.default_device() not in ("CPU", "CPU:0"):
        pytest.skip("the kernel is for CPU")
    y = three_kernels(pg.Tensor(np.ones((3, 4), np.float32)))
    with pytest.raises(pg.CompileError) as info:
        y.tolist()
    assert info.value.recorded_at == (place(three_kernels, "broken"),)


def test_error_where_it_is_recorded_has_no_place():
    with pytest.raises(pg.UserError) as info:
        pg.Tensor([1, 2]).reshape(5)
    assert info.value.recorded_at == () and "recorded at" not in str(info.value)


def test_code_made_at_run_time():
    names: dict[str, object] = {"x": pg.Tensor.arange(HUGE)}
    exec(compile("\n\ny = x + 1", "<made>", "exec"), names)
    with pytest.raises(pg.UnsupportedError) as info:
        names["y"].realize()  # type: ignore[attr-defined]
    assert info.value.recorded_at == ("<made>:3, in <module>",)


def through_the_package() -> pg.Tensor:
    xp = pg.Tensor([1]).__array_namespace__()
    return xp.add(pg.Tensor.arange(HUGE), 2)  # through


def test_files_of_the_package_are_passed_over():
    y = through_the_package()
    with pytest.raises(pg.UnsupportedError) as info:
        y.realize()
    assert info.value.recorded_at == (place(through_the_package, "through"),)

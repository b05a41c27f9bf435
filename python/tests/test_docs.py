"""The Python blocks of pages, from top to bottom, and what they print; and the docstrings of all public names."""
import contextlib
import inspect
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import plugrad as pg
from plugrad import array_api, data, nn, optim

ROOT = Path(__file__).parents[2]
PAGES = {ROOT / "README.md": 1, ROOT / "docs/python.md": 8}  # and the least number of blocks
BLOCK = re.compile(r"^```python\n(.*?)^```", re.S | re.M)
# What a comment of the C++ headers says, and a docstring must not: see generate/wording.py.
CPP = re.compile(r"::|\bstd\b|nullopt|\bconst\b|&|\{\}|Errors: User\b|\bundefined\b|\boperator\W|"
                 r"\b[iu]?int\d+_t\b|\b[iufIUF](8|16|32|64)\b|\bbf16\b|\bBF16\b|(?<!x )// |auto ?\[|\bvoid\b|"
                 r"(?<![\w\"])(true|false)\b|numel\(\) const|PLUGRAD_(API|FIELDS)|lambda \[|nullptr|"
                 r"\bdoes not compile|\b(a|the) handle\b")
QUOTED = re.compile(r'"[^"]*"')  # such as what is printed, where dtypes have their short names


def expected(block: str) -> list[str]:
    """The comments behind the calls of print."""
    return [line.split("  # ", 1)[1] for line in block.splitlines()
            if line.lstrip().startswith("print(")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks(page):
    blocks = BLOCK.findall(page.read_text())
    assert len(blocks) >= PAGES[page]
    names: dict[str, object] = {"__name__": page.name}
    for block in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, page.name, "exec"), names)
        if page.name != "README.md":  # which prints random numbers
            assert printed.getvalue().splitlines() == expected(block), block



def members(module: object, prefix: str) -> Iterator[tuple[str, object]]:
    for name, value in vars(module).items():
        if name.startswith("_") or inspect.ismodule(value):
            continue
        owner = getattr(value, "__module__", None)
        if owner is None or not str(owner).startswith("plugrad"):
            continue
        if not callable(value):  # a constant, such as plugrad.float32
            continue
        yield f"{prefix}.{name}", value
        if inspect.isclass(value):
            for part, member in vars(value).items():
                if not part.startswith("_") and (callable(member) or isinstance(
                        member, (property, staticmethod, classmethod))):
                    yield f"{prefix}.{name}.{part}", member


def public() -> dict[str, object]:
    found: dict[str, object] = {}
    for module, prefix in ((pg, "plugrad"), (nn, "plugrad.nn"), (optim, "plugrad.optim"),
                           (data, "plugrad.data"), (array_api, "plugrad.array_api"),
                           (array_api.linalg, "plugrad.array_api.linalg")):
        found |= members(module, prefix)
    return found


def signatures(item: object) -> str:
    return "|".join(each[0] for each in getattr(item, "__nb_signature__", ()) or ())


def doc_of(item: object) -> str:
    """The docstring without the signatures that nanobind writes before it."""
    overloads = getattr(item, "__nb_signature__", None)
    if overloads is None and isinstance(item, property):
        return str(item.__doc__ or "")
    if isinstance(overloads, tuple):  # of a class it is text
        return "\n".join(each[1] or "" for each in overloads).strip()
    return inspect.getdoc(item) or ""


def test_every_public_name_has_a_docstring():
    names = public()
    assert len(names) > 400, "the names are found"
    assert [name for name, item in names.items() if len(doc_of(item).strip()) < 4] == []


def test_docstrings_speak_python():
    found = {name: match[0] for name, item in public().items()
             if (match := CPP.search(QUOTED.sub("", doc_of(item))))}
    assert found == {}


def test_docstrings_name_exceptions_of_python():
    known = {name for name, item in vars(pg).items() if inspect.isclass(item)
             and issubclass(item, Exception)}
    for name, item in public().items():
        for error in re.findall(r"\b[A-Z]\w*Error\b", doc_of(item)):
            assert error in known or issubclass(getattr(__builtins__, error, None)
                                                or __builtins__[error], Exception), (name, error)

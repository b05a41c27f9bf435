"""The Python blocks of pages, from top to bottom, and what they print."""
import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = {ROOT / "README.md": 1, ROOT / "docs/python.md": 8}  # and the least number of blocks
BLOCK = re.compile(r"^```python\n(.*?)^```", re.S | re.M)


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

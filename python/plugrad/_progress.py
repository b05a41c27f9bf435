"""A progress bar for loops: a line on a terminal, a bar in a notebook, plain lines elsewhere."""
from __future__ import annotations

import html
import importlib
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from ._plugrad import ProgressBar

Item = TypeVar("Item")
_SECONDS_BETWEEN_UPDATES = 0.1


class _Bar(Protocol):
    def update(self, done: int, note: str = "") -> None: ...
    def close(self) -> None: ...


def _in_notebook() -> bool:
    """Whether the output of this process is a notebook's. Imports nothing."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return type(shell).__name__ == "ZMQInteractiveShell"


class _NotebookBar:
    """ProgressBar as an element of a notebook's page."""

    def __init__(self, total: int, label: str, unit: str, units_a_step: int):
        shown: Any = importlib.import_module("IPython.display")
        self._html = shown.HTML
        self._total, self._label, self._unit, self._units = total, label, unit, units_a_step
        self._start = self._shown = time.monotonic()
        self._done, self._note = 0, ""
        self._handle = shown.display(shown.HTML(self._page()), display_id=True)

    def update(self, done: int, note: str = "") -> None:
        self._done, self._note = done, note or self._note
        now = time.monotonic()
        if now - self._shown >= _SECONDS_BETWEEN_UPDATES or done >= self._total:
            self._shown = now
            self._handle.update(self._html(self._page()))

    def close(self) -> None:
        self._handle.update(self._html(self._page()))

    def _page(self) -> str:
        seconds = time.monotonic() - self._start
        texts = [f"{self._done}/{self._total}", self._note]
        if self._unit and self._done:
            texts.append(f"{self._done * self._units / max(seconds, 1e-9):.0f} {self._unit}/s")
        if 0 < self._done < self._total:
            left = round(seconds / self._done * (self._total - self._done))
            texts.append(f"{left // 60}:{left % 60:02} left")
        text = html.escape(" · ".join(filter(None, texts)))
        return (f"{html.escape(self._label)} <progress value='{self._done}' "
                f"max='{max(self._total, 1)}'></progress> {text}")


def notebook_bar(total: int, label: str, unit: str, units_a_step: int) -> _NotebookBar | None:
    """A bar in the page, where the output is a notebook's; C++ calls it for optim.Progress."""
    return _NotebookBar(total, label, unit, units_a_step) if _in_notebook() else None


class progress(Generic[Item]):
    """The items of `iterable`, with a bar that shows how many were taken.

        for x, y in plugrad.progress(train.batches(512), label="train", unit="images",
                                     units_a_step=512):

    total: number of items, where len() does not say it; without either there is no bar.
    unit: of the rate that is shown, e.g. "images"; empty: no rate.
    `note(text)` shows a text behind the bar, e.g. the loss.
    """

    def __init__(self, iterable: Iterable[Item], total: int | None = None, label: str = "",
                 unit: str = "", units_a_step: int = 1, quiet: bool = False):
        if total is None:
            try:
                total = len(iterable)  # type: ignore[arg-type]
            except TypeError:
                quiet = True
        self._iterable, self._total = iterable, total or 0
        self._options: dict[str, Any] = {"label": label, "unit": unit,
                                         "units_a_step": units_a_step}
        self._quiet, self._note = quiet, ""

    def note(self, text: str) -> None:
        """Shows this text from the next item on, e.g. "loss 0.1234"."""
        self._note = text

    def __len__(self) -> int:
        return self._total

    def __iter__(self) -> Iterator[Item]:
        if self._quiet:
            yield from self._iterable
            return
        bar: _Bar = notebook_bar(self._total, **self._options) or \
            ProgressBar(self._total, **self._options)
        try:
            for done, item in enumerate(self._iterable, 1):
                yield item
                bar.update(done, self._note)
        finally:
            bar.close()

"""Scopes that are decorators, too."""
from __future__ import annotations

import functools
from collections.abc import Callable

from ._plugrad import _NoGradScope
from .typing import P, R


class no_grad:
    """Within it, results of this thread's tensor functions and the values that it assigns are detached:
    no gradient flows through them. requires_grad_() still marks leaves.

        with plugrad.no_grad():
            average.assign(average * 0.9 + weight * 0.1)

        @plugrad.no_grad()
        def evaluate(net, x): ...
    """

    def __init__(self) -> None:
        self._scope = _NoGradScope()

    def __enter__(self) -> None:
        self._scope.__enter__()

    def __exit__(self, *error: object) -> None:
        self._scope.__exit__(*error)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def detached(*arguments: P.args, **keywords: P.kwargs) -> R:
            with _NoGradScope():
                return function(*arguments, **keywords)

        return detached

"""Plans of tinygrad's engine."""
from typing import Any

from ..uop.ops import skip


def run_linear(*args: Any, **keywords: Any) -> Any:
    return skip("plans of tinygrad's engine")

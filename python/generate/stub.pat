plugrad\._plugrad\.__prefix__:
    from collections.abc import Sequence
    from typing import Any
    from plugrad.typing import (
        AxisLike, BoxLike, DTypeLike, IndexLike, PaddingLike, PadsLike, ShapeLike, TensorLike)


plugrad\._plugrad\.__prefix__:
    from collections.abc import Callable, Sequence
    from typing import Any, Generic
    from plugrad.typing import (
        AxisLike, BoxLike, DTypeLike, IndexLike, P, PaddingLike, PadsLike, R, ShapeLike, TensorLike)
    from typing_extensions import Self

plugrad\._plugrad\._nn\.__prefix__:
    from typing import Any
    from plugrad._plugrad import Tensor, dtype
    from plugrad.typing import AxisLike, DTypeLike, PaddingLike, ShapeLike, TensorLike

plugrad\._plugrad\._optim\.__prefix__:
    from collections.abc import Sequence
    from typing import Any
    from plugrad._plugrad import Tensor
    from plugrad.typing import ShapeLike, TensorLike
    from typing_extensions import Self

plugrad\._plugrad\._data\.__prefix__:
    from collections.abc import Callable, Iterator, Sequence
    from plugrad.data import Batch, Split
    from plugrad.typing import ShapeLike


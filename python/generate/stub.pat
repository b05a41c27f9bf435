plugrad\._plugrad\.__prefix__:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, Generic
    from numpy.typing import NDArray
    from plugrad._size import Size
    from plugrad.typing import (
        AxisLike, BoxLike, DType, DTypeLike, IndexLike, P, PaddingLike, PadsLike, R, ShapeLike,
        SizeLike, SpecLike, TensorLike)
    from typing_extensions import Self

plugrad\._plugrad\._nn\.__prefix__:
    from collections.abc import Sequence
    from typing import Any
    from plugrad._plugrad import Mesh, ShardSpec, Tensor, dtype
    from plugrad.typing import AxisLike, DTypeLike, PaddingLike, ShapeLike, SpecLike, TensorLike

plugrad\._plugrad\._optim\.__prefix__:
    from collections.abc import Sequence
    from typing import Any
    from plugrad._plugrad import Tensor
    from plugrad.typing import ShapeLike, TensorLike
    from typing_extensions import Self

plugrad\._plugrad\._onnx\.__prefix__:
    from collections.abc import Callable, Sequence
    import os
    from typing import Any
    from plugrad.typing import TensorLike

plugrad\._plugrad\._data\.__prefix__:
    from collections.abc import Callable, Iterator, Sequence
    from plugrad.data import Batch, Split
    from plugrad.typing import ShapeLike


# Comparisons of elements: object's compare objects.
plugrad\._plugrad\.Tensor\.__(eq|ne)__:
    def __\1__(self, other: TensorLike, /) -> Tensor: ... # type: ignore[override]

# In the class, `dtype` is the property.
plugrad\._plugrad\.(Tensor|UOp)\.dtype:
    @property
    def dtype(self) -> DType:
        \doc

plugrad\._plugrad\.dtype\.__reduce__:
    def __reduce__(self) -> tuple[Any, ...]: ...

# The generator of stubs would import P.
plugrad\._plugrad\.(Bound)?Jit\.__call__:
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        \doc

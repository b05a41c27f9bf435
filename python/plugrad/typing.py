"""The types of arguments that plugrad's functions take."""
from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any, ParamSpec, Protocol, SupportsIndex, TypeAlias, TypeVar, Union

from ._plugrad import ShardSpec, Tensor, dtype

#: The parameters and the result of a function that is wrapped.
P = ParamSpec("P")
R = TypeVar("R")


class ArrayLike(Protocol):
    """An object that gives its memory away, such as NumPy's and PyTorch's arrays."""

    def __dlpack__(self, *arguments: Any, **keywords: Any) -> Any: ...


class NumberLike(Protocol):
    """A number of NumPy."""

    def __array__(self, *arguments: Any, **keywords: Any) -> Any: ...


#: The class dtype, by a name that classes with a property `dtype` can use.
DType: TypeAlias = dtype
#: What stands where a tensor does: numbers take the dtype and device of the other operand.
TensorLike = Union[Tensor, bool, int, float, ArrayLike, NumberLike]
#: A dtype of plugrad or NumPy, its name, or one of Python's types of numbers.
DTypeLike = Union[dtype, str, type, Any]
#: A size of an axis: an integer, or a tensor of one, which stays variable if a Variable is bound to it.
SizeLike = Union[int, SupportsIndex]
#: Sizes of axes; one for one axis.
ShapeLike = Union[int, SupportsIndex, Sequence[SizeLike]]
#: One axis, several, or all (None).
AxisLike = Union[int, Sequence[int], None]
#: Pairs (before, after) for each axis, None for an axis without padding; or numbers for the last
#: axes, the last axis first.
PadsLike = Union[Sequence[int], Sequence[Union[tuple[int, int], None]]]
#: One number, one for each axis, a pair for each axis, or "same" or "valid".
PaddingLike = Union[int, Sequence[int], Sequence[tuple[int, int]], str]
#: Begin and end for each axis, None for the whole axis.
BoxLike = Sequence[Union[tuple[SizeLike, SizeLike], None]]
#: How a tensor lies on a mesh: for each dimension the axes that cut it, or None.
SpecLike = Union[ShardSpec, Sequence[Union[str, None]]]
#: What stands between the brackets of x[…].
IndexPart = Union[int, slice, EllipsisType, None, Tensor, Sequence[Any], ArrayLike]
IndexLike = Union[IndexPart, tuple[IndexPart, ...]]

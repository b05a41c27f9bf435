"""Layers, and the state of modules.

A module is any Python object: its tensors are found, nothing is registered.

    class Net:
        def __init__(self):
            self.conv, self.out = nn.Conv2d(1, 32, 5), nn.Linear(576, 10)
            self.blocks = [Block(), Block()]

    nn.state_dict(Net())  # "conv.weight", "conv.bias", "out.weight", …, "blocks.0.…"

Tensors are looked for in layers, lists, tuples, dictionaries, and the attributes of objects
(`__dict__` and `__slots__`), in their order. An object that computes the names of its fields defines
`__fields__()`, which returns pairs of a name and a value. Functions, classes and modules of Python
are not searched. What lies in a set, a generator or a view of a dictionary has no name: it is an error.
"""
from __future__ import annotations

import collections
import copy
import copyreg
import os
import types
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence, ValuesView
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from . import _plugrad
from ._plugrad import Mesh, ShardSpec, Tensor
from ._plugrad._nn import *  # noqa: F403
from ._plugrad._nn import (Linear, StateDifference, _convert_state, _load_sharded, _load_state, _save_sharded,
                          _shard_state, _tensor_parallel_rules, _trained, _update_average, safe_load, safe_save,
                          training)
from .errors import UserError as _UserError

if TYPE_CHECKING:
    from .data import Dataset
    from .typing import SpecLike

_Module = TypeVar("_Module")
StateDict = dict[str, Tensor]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name == "Module":
            raise AttributeError("plugrad.nn has no Module: a module is an object of any class with tensors, without a base "
                                 "class; write class Net: with __init__ and __call__")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

_NOT_SEARCHED = (type, types.ModuleType, types.FunctionType, types.MethodType,
                 types.BuiltinFunctionType, str, bytes, bytearray, int, float, complex)
_UNNAMED = (set, frozenset, collections.deque, KeysView, ValuesView, ItemsView)
_READ_ONCE = (map, filter, zip)

# Functions such as plugrad.relu, as layers of a module that is copied or pickled.
for _function in (_plugrad.relu, Tensor.relu):
    copyreg.pickle(type(_function), lambda function: function.__qualname__)


def _pickled(layer: Any) -> tuple[Any, ...]:
    """How a layer is pickled: its numbers and its tensors."""
    _, numbers, names = layer._parts()
    values = {name: getattr(layer, name) for name in numbers}
    if "dtype" in values:
        values["dtype"] = values["dtype"] and values["dtype"].name
    parts = {name: getattr(layer, name) for name in names or dict(layer._state())}
    return _unpickled, (type(layer), values, parts), getattr(layer, "__dict__", None)


def _unpickled(kind: Any, values: dict[str, Any], parts: dict[str, Any]) -> Any:
    base = next(each for each in kind.__mro__ if each.__module__ == Linear.__module__)
    unit = values.get("groups", values.get("heads", 1))  # sizes are multiples of it
    sizes = {name: unit for name in base._parts()[0] if name not in values}
    layer = kind.__new__(kind)
    state = Tensor.random_state()  # initial weights are not used
    base.__init__(layer, **sizes, **{name: value for name, value in values.items()
                                     if value is not None})
    Tensor.set_random_state(state)
    for name, part in parts.items():
        setattr(layer, name, part)
    return layer


for _layer in vars(_plugrad._nn).values():
    if isinstance(_layer, type) and hasattr(_layer, "_parts"):
        _layer.__reduce__ = _pickled  # type: ignore[method-assign, assignment]


def _slots(item: object) -> Iterator[tuple[str, object]]:
    """The attributes in __slots__, those of base classes first."""
    for base in reversed(type(item).__mro__):
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name.startswith("__") and not name.endswith("__"):
                name = f"_{base.__name__.lstrip('_')}{name}"
            if name not in ("__dict__", "__weakref__") and hasattr(item, name):
                yield name, getattr(item, name)


class _NoName:
    """The key of what lies in such a collection."""

    def __init__(self, collection: object):
        self.kind = type(collection).__name__


def _fields(item: object) -> Iterable[tuple[object, object]]:
    """The names and values in which the tensors of an object are looked for."""
    if isinstance(item, (list, tuple)):
        names = getattr(item, "_fields", None)  # of a named tuple
        return zip(names, item) if isinstance(names, tuple) else enumerate(item)
    if isinstance(item, Mapping):
        return item.items()
    if isinstance(item, _NOT_SEARCHED):
        return ()
    if isinstance(item, _UNNAMED):
        return [(_NoName(item), value) for value in item]
    if isinstance(item, _READ_ONCE) or (isinstance(item, types.GeneratorType) and item.__name__ == "<genexpr>"):
        raise TypeError(f"a {type(item).__name__} gives its layers once, and so none to train or save: use a list")
    fields: list[tuple[object, object]] = []
    if hasattr(type(item), "__fields__"):
        return item.__fields__()  # type: ignore[attr-defined, no-any-return]
    if hasattr(type(item), "_state"):  # a layer or optimiser of C++
        fields += item._state()  # type: ignore[attr-defined]
    fields += _slots(item)
    fields += getattr(item, "__dict__", {}).items()
    return fields


def state_dict(module: object) -> StateDict:
    """Every tensor of the module by name, trained or not, in the order of its attributes.

    The values denote the module's own tensors: assigning to them changes the module. A tensor or a
    layer that the module holds twice has both names. An object that contains itself is searched
    once. Errors: TypeError for a single tensor, for a number, text or None, for keys that are no
    strings or integers, and for tensors in sets or generators, ValueError for two tensors of one name, and
    for a dictionary or list with a value that is neither None nor a tensor, module or optimiser, such
    as {"net": net, "step": 3}.
    """
    if module is None or isinstance(module, (str, bytes, bytearray, int, float, complex)):
        raise TypeError(f"{module!r:.40} has no tensors: pass a module, or {{\"name\": tensor}}")
    state = _tensors(module)
    if isinstance(module, (Mapping, list, tuple)):
        _refuse_values(module, state)
    return state


def _tensors(module: object) -> StateDict:
    if isinstance(module, Tensor):
        raise TypeError("a single tensor has no name: pass a module, or {\"name\": tensor}")
    state: StateDict = {}
    path: set[int] = set()  # objects that contain the present one
    waiting: list[tuple[tuple[object, ...], object, bool]] = [((), module, False)]
    while waiting:
        keys, item, is_done = waiting.pop()
        if is_done:
            path.discard(id(item))
        elif isinstance(item, Tensor):
            name = _name(keys)
            if name in state:
                raise _UserError(f"two tensors of the module are called {name!r}")
            state[name] = item
        elif item is not None and id(item) not in path:
            path.add(id(item))
            waiting.append((keys, item, True))
            parts = [((*keys, key), value, False) for key, value in _fields(item)]
            waiting += reversed(parts)
    return state


def _refuse_values(module: object, state: StateDict) -> None:
    """Errors: UserError for a value of the dictionary or list, or of those in it, that a state leaves out."""
    seen: set[int] = set()
    waiting: list[tuple[tuple[object, ...], object]] = [((), module)]
    while waiting:
        keys, item = waiting.pop()
        if isinstance(item, (Mapping, list, tuple)):
            if id(item) not in seen:
                seen.add(id(item))
                waiting += [((*keys, key), value) for key, value in _fields(item)]
        elif not (item is None or isinstance(item, Tensor) or callable(item)
                  or hasattr(type(item), "_state") or hasattr(type(item), "__fields__")):
            name = ".".join(map(str, keys))
            if not any(known.startswith(name + ".") for known in state):
                raise _UserError(f"the value of {name!r} is of the type {type(item).__name__}, which is neither a tensor nor a "
                                 "module or optimiser, so that it would not be saved: give a Tensor of it, plugrad.Tensor(…)")


def _name(keys: tuple[object, ...]) -> str:
    for key in keys:
        if isinstance(key, _NoName):
            raise TypeError(f"a tensor or layer lies in a {key.kind}, which gives it no name: use a list")
        if not isinstance(key, (str, int)):
            raise TypeError(f"a tensor lies under the key {key!r}, which is neither a string nor an "
                            "integer: it has no name")
    return ".".join(map(str, keys))


def parameters(module: object) -> list[Tensor]:
    """The tensors of the module that require gradients, each once."""
    return _trained(_tensors(module))


def load_state_dict(module: object, state: Mapping[str, Any],
                    strict: bool = True) -> list[StateDifference]:
    """Assigns the tensors (or arrays) of `state` to those of the module with the same names.

    Floats are cast to the module's dtypes. Returns the differences that it skipped. Errors:
    ValueError when strict and there is a difference, with the table of them; then nothing is
    assigned.
    """
    return _load_state(state_dict(module), dict(state), strict)


def from_torch_state(state: Mapping[str, Any]) -> StateDict:
    """The tensors of a state_dict() of PyTorch, under the same names.

    nn.load_state_dict takes such a state as it is, too. Layers of the same kind have the same names
    and shapes in both, except nn.MultiHeadAttention, whose q_proj, k_proj and v_proj are PyTorch's
    in_proj_weight and in_proj_bias in three parts.
    """
    return {name: Tensor(value) for name, value in state.items()}


def save(module: object, path: str | os.PathLike[str]) -> None:
    """Writes the state of a module, an optimiser or a dictionary of tensors as safetensors."""
    safe_save(state_dict(module), path)


def load(module: object, path: str | os.PathLike[str],
         strict: bool = True) -> list[StateDifference]:
    """Reads a safetensors file into a module or optimiser, as load_state_dict does."""
    return load_state_dict(module, safe_load(path), strict)


def save_sharded(module: object, folder: str | os.PathLike[str]) -> None:
    """Saves a module, an optimiser or a dictionary of them in a folder, with a file of each process.

        nn.save_sharded({"net": net, "opt": opt}, "checkpoint")

    Each process writes the parts of sharded tensors that it has; what several have is written by one
    of them. All processes of the program call it; tensors on no mesh must be equal in all. The folder
    is one that all see, and is created if its parent exists. It has the former checkpoint until this
    one is complete: a process that is killed at any time leaves one of the two. Errors: in every
    process, with the rank, the file and the reason, if one of them fails; then the folder is as
    before.
    """
    _save_sharded(state_dict(module), folder)


def load_sharded(module: object, folder: str | os.PathLike[str],
                 strict: bool = True) -> list[StateDifference]:
    """Reads the folder of save_sharded into a module or optimiser, as load_state_dict does.

    Tensors keep their device or their mesh and spec, which may be others than when they were saved,
    as may the number of processes. A process reads the bytes of its own parts alone. If a tensor is
    on a mesh, all processes call it. Errors: ValueError, with the file and the reason, in every
    process if one of them fails; then nothing is assigned.
    """
    return _load_sharded(state_dict(module), folder, strict)


@overload
def to(module: _Module, dtype: _plugrad.dtype, /) -> _Module: ...
@overload
def to(module: _Module, target: str, /) -> _Module: ...
@overload
def to(module: _Module, *, dtype: Any = None, device: str | None = None) -> _Module: ...
def to(module: Any, target: Any = None, *, dtype: Any = None, device: str | None = None) -> Any:
    """Casts the floats of a module to a dtype, or moves it to a device, in place.

        nn.to(net, "float16");  nn.to(net, "CUDA");  nn.to(net, dtype="float16", device="CUDA")

    Returns the module. Drops gradients. Optimisers that hold its tensors are not converted:
    create them afterwards. Jitted functions are recorded again. Errors: ValueError for a dtype that is no float and an
    unknown device.
    """
    state = _tensors(module)
    for wanted in (target, None if dtype is None else _plugrad.dtype(dtype), device):
        if wanted is not None:
            _convert_state(state, wanted)
    return module


_ShardRules = Iterable[tuple[str, "SpecLike | None"]]


def shard(module: _Module, mesh: Mesh,
          rules: Mapping[str, SpecLike | None] | _ShardRules = ()) -> _Module:
    """Moves the tensors of a module or an optimiser to a mesh of devices, in place.

        nn.shard(net, mesh, {"blocks.*.up.weight": ("model",), "*.down.weight": (None, "model")})

    The first rule whose pattern matches a tensor's name says how it lies, `*` standing for any
    characters; without one every device has all of it, and always of a tensor without dimensions,
    such as BatchNorm's num_batches_tracked. Returns the module. Drops gradients.
    Optimisers that hold tensors of the module are not moved: create them afterwards. Jitted
    functions are recorded again. Errors: ValueError for a rule that matches no name, for values
    that differ between processes, and for specs that do not fit, listed by name; then nothing is
    moved.
    """
    pairs = rules.items() if isinstance(rules, Mapping) else rules
    _shard_state(_tensors(module), mesh, list(cast(_ShardRules, pairs)))
    return module


def data_parallel(module: _Module, mesh: Mesh) -> _Module:
    """Every device has all parameters and takes a part of each batch: x.shard(mesh, ("data",)).

    Losses and gradients are those of the whole batch. Returns the module.
    """
    return shard(module, mesh)


def tensor_parallel(module: object, axis: str) -> list[tuple[str, ShardSpec]]:
    """Rules that cut the matrices of a module along an axis of a mesh.

        nn.shard(net, mesh, nn.tensor_parallel(net, "model"))

    MultiHeadAttention is cut by heads; of two Linear that follow each other in one module, the
    second taking as many values as the first returns, the first by outputs and the second by
    inputs; every other Linear by outputs, and Embedding by rows. To keep a tensor whole, put a rule
    of its own in front: [("place.weight", None), *rules]. Of a weight with two names, put one in front
    for each name, since rules for both may differ. Shoeybi et al. 2019.
    """
    return _tensor_parallel_rules(_tensors(module), axis)


def clone(module: _Module) -> _Module:
    """A copy of the module with tensors of its own, at their present values: copy.deepcopy.

    Tensors that the module holds twice (tied weights) are one tensor in the copy, too.
    """
    return copy.deepcopy(module)


def accuracy(net: Callable[[Tensor], Tensor], dataset: Dataset, batch_size: int = 500) -> float:
    """The fraction of the data set whose label is the argmax of `net`, in evaluation mode.

    The last batch may be smaller than `batch_size`.
    """
    correct = 0
    with training(False):
        for x, y in dataset.batches(min(batch_size, len(dataset)), keep_partial=True):
            correct += int((net(x).argmax(-1) == y).sum().item())
    return correct / len(dataset)


class Sequential:
    """Calls its layers in order: layers, functions and other callables of one tensor.

        net = nn.Sequential(nn.Linear(784, 128), plugrad.relu, nn.Linear(128, 10))

    The state is named by index: "0.weight", "0.bias", "2.weight", "2.bias".
    """

    def __init__(self, *layers: Callable[[Tensor], Tensor]):
        self.layers: list[Callable[[Tensor], Tensor]] = []
        for layer in layers:
            self.append(layer)

    def append(self, layer: Callable[[Tensor], Tensor]) -> Sequential:
        """Adds a layer at the end. Errors: TypeError for what is not callable."""
        if not callable(layer):
            raise TypeError(f"a layer of Sequential is callable; {layer!r} is not")
        self.layers.append(layer)
        return self

    def __call__(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Iterator[Callable[[Tensor], Tensor]]:
        return iter(self.layers)

    def __getitem__(self, index: int) -> Callable[[Tensor], Tensor]:
        return self.layers[index]

    def __fields__(self) -> Iterable[tuple[int, object]]:
        return enumerate(self.layers)

    def __repr__(self) -> str:
        return f"Sequential({', '.join(map(repr, self.layers))})"


class Ema:
    """A copy of a module whose parameters are the exponential moving average of the original's.

        ema = nn.Ema(net, 0.999)
        … each step: optimizer.step(); ema.update(net)
        ema.module(x)

    They need no gradients; other tensors are copied. Polyak and Juditsky 1992.
    """

    def __init__(self, source: Any, decay: float = 0.999):
        self.module = clone(source)
        self.decay = decay
        for tensor in parameters(self.module):
            tensor.requires_grad = False

    def update(self, source: object) -> None:
        """average = decay * average + (1 - decay) * source, at least in float32."""
        _update_average(state_dict(self.module), state_dict(source), self.decay)


class Pipeline:
    """The layers of a Sequential in stages, each on a device or a mesh of its own.

        net = nn.Pipeline(nn.Sequential(block1, block2, block3, head), [(0, "CPU"), (2, "CUDA")], 8)
        loss = net.loss(x, y, plugrad.sparse_categorical_crossentropy)
        loss.backward()

    A stage is the number of its first layer and its place: the name of a device, or a Mesh. A
    batch is cut into micro-batches along its first axis; all go forwards before the first goes
    backwards, and gradients are added over them. State is named as that of the Sequential. Errors:
    ValueError unless the layers are a Sequential and the stages begin at layer 0 and ascend within the layers. Huang et al. 2019
    (GPipe).
    """

    def __init__(self, layers: Sequential, stages: Sequence[tuple[int, str | Mesh]], micro_batches: int):
        if not isinstance(layers, Sequential):
            raise _UserError(f"[Pipeline] the layers are of the type {type(layers).__name__}; give an nn.Sequential, which has "
                             "the layers that stages name by number")
        firsts = [first for first, _ in stages]
        ends = [*firsts[1:], len(layers.layers)]
        if not firsts or firsts[0] != 0 or any(begin >= end for begin, end in zip(firsts, ends)):
            raise _UserError(f"[Pipeline] stages begin at the layers {firsts}; the first is 0, and each has one or more of "
                             f"{len(layers.layers)} layers")
        if micro_batches < 1:
            raise _UserError(f"[Pipeline] {micro_batches} micro-batches; give 1 or more")
        self.layers = layers.layers
        self.micro_batches = micro_batches
        self._stages = [(begin, end, place.device if isinstance(place, Mesh) else place)
                        for (begin, place), end in zip(stages, ends)]
        for begin, end, place in self._stages:
            to(self.layers[begin:end], device=place)

    def __call__(self, x: Tensor) -> Tensor:
        """The result for a whole batch, on the last stage's place."""
        for begin, end, place in self._stages:
            x = x.to(place)
            for layer in self.layers[begin:end]:
                x = layer(x)
        return x

    def loss(self, x: Tensor, y: Tensor, loss: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """The loss of a batch from its micro-batches.

        `loss` returns the mean over the samples that it is given. Layers that mix samples
        (BatchNorm) see a micro-batch at a time. Errors: ValueError unless x and y have the same
        number of samples, one or more for each micro-batch.
        """
        count = x.shape[0]
        if y.shape[0] != count or count < self.micro_batches:
            raise ValueError(f"x is {tuple(x.shape)} and y is {tuple(y.shape)}; the first axes are equal, and at least "
                             f"{self.micro_batches}, the number of micro-batches")
        bounds = [count * i // self.micro_batches for i in range(self.micro_batches + 1)]
        terms = [loss(self(x[begin:end]), y[begin:end].to(self._stages[-1][2])) * ((end - begin) / count)
                 for begin, end in zip(bounds, bounds[1:])]
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total

    def __fields__(self) -> Iterable[tuple[int, object]]:
        return enumerate(self.layers)

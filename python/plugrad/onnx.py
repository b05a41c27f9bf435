"""Models from ONNX files, and functions of tensors as ONNX files.

    model = plugrad.onnx.load("model.onnx")
    print(model.inputs)
    (scores,) = model(image)

    plugrad.onnx.export(net, [image], "net.onnx", input_names=["image"])
"""
from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import nn
from ._plugrad import Tensor
from ._plugrad._onnx import Model as Model, ValueInfo as ValueInfo, _save, load as load


def _tensors(inputs: Any) -> list[Tensor]:
    if isinstance(inputs, Tensor) or hasattr(inputs, "__array__"):
        raise TypeError("inputs is one tensor or array; give a list of the tensors that the function takes, such as [x]")
    tensors = list(inputs)
    for number, given in enumerate(tensors):
        if not isinstance(given, Tensor):
            raise TypeError(f"inputs[{number}] is of type {type(given).__name__}; give a tensor: plugrad.Tensor(…)")
    return tensors


def _outputs(results: Any) -> list[Tensor]:
    if isinstance(results, Tensor):
        return [results]
    if isinstance(results, (list, tuple)) and results:
        for number, result in enumerate(results):
            if not isinstance(result, Tensor):
                raise TypeError(f"result {number} of the function is of type {type(result).__name__}, not a tensor")
        return list(results)
    raise TypeError(f"the function returns {'nothing' if results is None else f'a {type(results).__name__}'}; an ONNX file needs "
                    "one that returns a tensor, or a list or tuple of tensors")


def export(function: Callable[..., Any], inputs: Sequence[Tensor], path: str | os.PathLike[str], *,
           input_names: Sequence[str] = (), output_names: Sequence[str] = (),
           parameters: Mapping[str, Tensor] | None = None, external_data: bool = False) -> None:
    """Writes a function of tensors, such as a module, as an ONNX file (opset 21, IR version 10).

    The function is called once, in evaluation mode, with tensors of the shapes and dtypes of `inputs`, whose elements do
    not matter, and returns a tensor or a sequence of tensors. Other tensors that it reads become initialisers; `parameters` names
    them, by default those of a module. With `external_data`, and beyond 2 GB, large initialisers are in `path`.data.
    Errors: TypeError for inputs and results that are no tensors, ValueError for a file that cannot be written,
    NotImplementedError, with all of it, for what ONNX does not have.
    """
    if parameters is None:
        parameters = nn.state_dict(function)
    _save(lambda *given: _outputs(function(*given)), _tensors(inputs), path, list(input_names), list(output_names),
          list(parameters.items()), external_data)
